// The work stream through a real server: its protocol, its answers, cancels and losses, re-attaching, the half-close.

import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { type Claim, type HelloSchema, LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { type Event, Worker, accepted, completed, running, started, submitted } from './lifecycle-driver.js';
import { refusedOf, tasks, workers } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const get = async (taskId: string) => (await fixture.client.unary(tasks.get, { taskId })).task;

describe('Hello', () => {
  const helloOf = (value: MessageInitShape<typeof HelloSchema>) => {
    const stream = fixture.client.bidi(workers.work);
    stream.send({ frameId: 1n, frame: { case: 'hello', value } });
    return stream;
  };
  const hello = { workerName: 'w', actionKinds: ['*'] };

  it('is answered by the rules that hold', async () => {
    const stream = helloOf({ ...hello, ttl: { seconds: 1n } });
    const first = await stream.next();
    expect(first).toMatchObject({ frameId: 1n, frame: { case: 'welcome' } });
    const welcome = first?.frame.case === 'welcome' ? first.frame.value : undefined;
    expect(welcome?.ttl).toMatchObject({ seconds: 2n });
    expect(welcome?.acceptTimeout).toMatchObject({ seconds: 5n });
    expect(welcome).toMatchObject({ attachment: 1n, limits: { maxFrameBytes: 1_500_000, maxResultBytes: 1_048_576 } });
    expect(welcome?.sessionAlias).not.toBe(welcome?.sessionId);
    stream.half();
    expect(await stream.ended).toBeNull();
  });

  it.each<[string, MessageInitShape<typeof HelloSchema>, string]>([
    ['no name', { ...hello, workerName: '' }, 'hello.worker_name'],
    ['no kinds', { workerName: 'w' }, 'hello.action_kinds'],
    ['a kind that is no name', { ...hello, actionKinds: ['*', 'agent'] }, 'hello.action_kinds[0]'],
    ['a bad namespace', { ...hello, namespaces: ['N'] }, 'hello.namespace'],
    ['an unknown target', { ...hello, executionTargets: [77 as 1] }, 'hello.execution_targets[0]'],
    ['a capability with a space', { ...hello, capabilities: ['a b'] }, 'hello.capabilities[0]'],
    ['101 queues', { ...hello, queues: Array<string>(101).fill('q') }, 'hello.queues'],
    ['10,001 slots', { ...hello, slots: 10_001 }, 'hello.slots'],
    ['a negative TTL', { ...hello, ttl: { seconds: -1n } }, 'hello.ttl'],
  ])('with %s ends the stream', async (_, value, field) => {
    expect(refusedOf(await helloOf(value).ended)).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });

  it('must come first, and once', async () => {
    const silent = fixture.client.bidi(workers.work);
    silent.send({ frameId: 1n, frame: { case: 'slots', value: { slots: 1 } } });
    expect(refusedOf(await silent.ended)).toMatchObject({ code: 3, reason: 'MALFORMED' });
    const twice = helloOf(hello);
    await twice.next();
    twice.send({ frameId: 2n, frame: { case: 'hello', value: hello } });
    expect(refusedOf(await twice.ended)).toMatchObject({ code: 3, reason: 'MALFORMED' });
  });

  it('with a session that cannot be attached is SESSION_GONE, whatever the reason', async () => {
    const reattach = { sessionId: 'unknown', sessionSecret: 'wrong' };
    expect(refusedOf(await helloOf({ ...hello, reattach }).ended)).toMatchObject({ code: 9, reason: 'SESSION_GONE' });
  });
});

describe('frames', () => {
  it('that are unknown or break their contract are rejected by their id and nothing else', async () => {
    const { claim, worker } = await running(fixture.client);
    const nothing = worker.send({ case: undefined });
    expect(await worker.frame('rejection')).toMatchObject({ frameId: nothing, refusal: { grpcCode: 12 } });
    const slots = worker.send({ case: 'slots', value: { slots: -1 } });
    expect(await worker.frame('rejection')).toMatchObject({
      frameId: slots,
      refusal: { metadata: { field: 'slots' } },
    });
    const unnumbered = worker.send({ case: 'events', value: { events: [{ taskId: claim.taskId, epoch: 1n }] } });
    const rejected = await worker.frame('rejection');
    expect(rejected).toMatchObject({ frameId: unnumbered, refusal: { metadata: { field: 'events[0].event_seq' } } });
    const release = worker.send({ case: 'release', value: { claims: [{ taskId: claim.taskId, epoch: 1n }] } });
    expect(await worker.frame('rejection')).toMatchObject({ frameId: release, refusal: { reason: 7 } });
    expect(await worker.say(claim, [completed], 3)).toMatchObject({ judgedThrough: 3n, rejected: [] });
    worker.stop();
  });

  it('of heartbeats are answered once the session is renewed', async () => {
    const { claim, worker } = await running(fixture.client);
    const frameId = worker.send({ case: 'heartbeat', value: { held: [{ taskId: claim.taskId, epoch: 1n }] } });
    expect(await worker.frame('heartbeat')).toMatchObject({ heartbeatFrameId: frameId });
    worker.stop();
  });
});

describe('events', () => {
  const wrong: readonly (readonly [string, Event, string])[] = [
    ['progress above 1', { case: 'progress', value: { fraction: 1.01 } }, 'progress.fraction'],
    ['progress of NaN', { case: 'progress', value: { fraction: Number.NaN } }, 'progress.fraction'],
    ['an empty output', { case: 'output', value: {} }, 'output'],
    [
      'an output that is no JSON',
      { case: 'output', value: { content: { case: 'outputJson', value: 'x' } } },
      'output.output_json',
    ],
    [
      'bytes without a type',
      { case: 'output', value: { content: { case: 'binary', value: {} } } },
      'output.binary.content_type',
    ],
    ['a checkpoint of nothing', { case: 'checkpoint', value: {} }, 'checkpoint.checkpoint_json'],
    ['a result that is no JSON', { case: 'completed', value: { resultJson: '{' } }, 'completed.result_json'],
    ['a failure without a code', { case: 'failed', value: { error: {} } }, 'failed.error.code'],
    ['a failure without an error', { case: 'failed', value: {} }, 'failed.error'],
    [
      'a retry in the past',
      { case: 'failed', value: { error: { code: 'c' }, retryAfter: { seconds: -1n } } },
      'failed.retry_after',
    ],
  ];
  it.each(wrong)('%s is refused and uses up its number', async (_, event, field) => {
    const { claim, worker } = await running(fixture.client);
    const verdict = await worker.say(claim, [event, { case: 'progress', value: {} }], 3);
    expect(verdict).toMatchObject({ judgedThrough: 4n, rejected: [{ eventSeq: 3n, refusal: { grpcCode: 3 } }] });
    expect(verdict.rejected[0]?.refusal?.metadata['field']).toBe(field);
    expect(verdict.rejected[0]?.error).toMatchObject({ code: 'malformed', retryable: false });
    worker.stop();
  });

  it('that AEP forbids, that leave a gap, or that are repeated', async () => {
    const worker = await Worker.start(fixture.client);
    await submitted(fixture.client, { queue: worker.queue });
    const claim = await worker.claim();
    const illegal = await worker.say(claim, [completed, accepted]);
    expect(illegal).toMatchObject({ judgedThrough: 2n, rejected: [{ eventSeq: 1n, refusal: { reason: 8 } }] });
    expect(illegal.rejected[0]?.refusal?.metadata).toMatchObject({ attempt_state: 'submitted', event: 'completed' });
    const gap = await worker.say(claim, [started], 4);
    expect(gap).toMatchObject({ judgedThrough: 2n, rejected: [{ eventSeq: 4n, refusal: { reason: 19 } }] });
    expect(gap.rejected[0]?.refusal?.metadata['expected_event_seq']).toBe('3');
    const done = await worker.say(claim, [started, completed], 3);
    expect(done).toMatchObject({ judgedThrough: 4n, rejected: [] });
    expect(done.committedSequence).toBeGreaterThan(0n);
    expect(await worker.say(claim, [started, completed], 3)).toMatchObject({ judgedThrough: 4n, rejected: [] });
    worker.stop();
  });

  it('of an unknown task and of a lost lease are told as such', async () => {
    const { claim, worker } = await running(fixture.client);
    const unknown = await worker.say({ ...claim, taskId: 'nobody' }, [accepted]);
    expect(unknown).toMatchObject({ judgedThrough: 0n, rejected: [{ eventSeq: 1n, refusal: { reason: 3 } }] });
    const lost = await worker.say({ ...claim, epoch: 9n }, [accepted]);
    expect(lost).toMatchObject({ rejected: [{ refusal: { reason: 11, metadata: { current_epoch: '1' } } }] });
    worker.stop();
  });

  it('of many claims in one frame have a verdict each', async () => {
    const worker = await Worker.start(fixture.client, { slots: 100 });
    const ids = new Set<string>();
    for (let index = 0; index < 20; index += 1)
      ids.add((await submitted(fixture.client, { queue: worker.queue })).taskId);
    const claims: Claim[] = [];
    while (claims.length < ids.size) claims.push(...(await worker.frame('claims')).claims);
    const says = [accepted, started, completed].flatMap((event, index) =>
      claims.map(({ taskId, generation, epoch }) => ({
        taskId,
        generation,
        epoch,
        eventSeq: BigInt(index + 1),
        event,
      })),
    );
    worker.send({ case: 'events', value: { events: says } });
    const verdicts = [];
    while (verdicts.length < ids.size) verdicts.push(...(await worker.frame('verdicts')).verdicts);
    expect(new Set(verdicts.map((verdict) => verdict.taskId))).toEqual(ids);
    expect(verdicts.every((verdict) => verdict.judgedThrough === 3n && verdict.rejected.length === 0)).toBe(true);
    worker.stop();
  });

  it('whose texts are too long are cut with a flag, and the failure commits', async () => {
    const { task, claim, worker } = await running(fixture.client, { policy: { retry: { maxAttempts: 1 } } });
    const error = { code: 'c', message: 'ü'.repeat(9_000), detailsJson: '{not json' };
    const detail = {
      exitCode: 3,
      errorDetail: `${'head '.repeat(20_000)}tail`,
      invocationId: 'run-1',
      evidenceRefs: ['https://e'],
    };
    expect(await worker.say(claim, [{ case: 'failed', value: { error, detail } }], 3)).toMatchObject({ rejected: [] });
    const failed = await get(task.taskId);
    expect(failed).toMatchObject({ status: TaskStatus.FAILED, exitCode: 3, invocationId: 'run-1' });
    expect(failed?.error).toMatchObject({ truncated: true, detailsJson: '"{not json"' });
    expect(Buffer.byteLength(failed?.error?.message ?? '')).toBeLessThanOrEqual(8_192);
    expect(failed?.errorDetail.endsWith('tail')).toBe(true);
    expect(failed?.reason?.evidenceRefs).toEqual(['https://e']);
    worker.stop();
  });
});

describe('claims that end', () => {
  it('are handed back by a draining worker with their checkpoint and their attempt', async () => {
    const { task, claim, worker } = await running(fixture.client);
    worker.send({ case: 'drain', value: {} });
    const { taskId, generation, epoch } = claim;
    worker.send({ case: 'release', value: { claims: [{ taskId, generation, epoch, checkpointJson: '{"at":3}' }] } });
    const { losses } = await worker.frame('leasesLost');
    expect(losses).toMatchObject([{ taskId, epoch, cause: LeaseLossCause.RELEASED }]);
    expect(await get(task.taskId)).toMatchObject({ status: TaskStatus.QUEUED, attempt: 0 });
    worker.stop();
  });

  it('are lost to an operator who holds the task, and the worker is told', async () => {
    const { task, worker } = await running(fixture.client);
    const intent = { case: 'suspend' as const, value: {} };
    await fixture.client.unary(tasks.transition, { taskId: task.taskId, idempotencyKey: freshKey(), intent });
    const { losses } = await worker.frame('leasesLost');
    expect(losses).toMatchObject([{ taskId: task.taskId, cause: LeaseLossCause.SUSPENDED }]);
    worker.stop();
  });

  it('are kept over a re-attach, with the cancel that is pending; the older stream ends', async () => {
    const queue = freshKey('queue');
    const hello = { workerName: 'w', actionKinds: ['*'], slots: 5, queues: [queue] };
    const first = fixture.client.bidi(workers.work);
    first.send({ frameId: 1n, frame: { case: 'hello', value: hello } });
    const welcome = (await first.next())?.frame;
    if (welcome?.case !== 'welcome') throw new Error('no welcome');
    const { taskId } = await submitted(fixture.client, { queue });
    await first.next();
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
    await first.next();
    const { sessionId, sessionSecret } = welcome.value;
    const held = [
      { taskId, epoch: 1n, answeredThrough: 0n },
      { taskId: 'other', epoch: 4n, answeredThrough: 1n },
    ];
    const second = fixture.client.bidi(workers.work);
    const reattach = { sessionId, sessionSecret, held };
    second.send({ frameId: 1n, frame: { case: 'hello', value: { ...hello, reattach } } });
    const again = (await second.next())?.frame;
    expect(again).toMatchObject({ case: 'welcome', value: { sessionId, attachment: 2n } });
    expect(again?.value).toMatchObject({
      leasesKept: [{ taskId, epoch: 1n }],
      leasesLost: [{ taskId: 'other', epoch: 4n }],
    });
    expect((await second.next())?.frame).toMatchObject({ case: 'cancels', value: { cancels: [{ taskId }] } });
    expect(refusedOf(await first.ended)).toMatchObject({
      code: 9,
      reason: 'SESSION_GONE',
      metadata: { attachment: '2' },
    });
    second.half();
    expect(await second.ended).toBeNull();
  });
});

describe('the half-close', () => {
  it('means no more claims: what is outstanding is answered and the stream ends OK', async () => {
    const { claim, worker } = await running(fixture.client);
    const { taskId, generation, epoch } = claim;
    const events = [{ taskId, generation, epoch, eventSeq: 3n, event: completed }];
    worker.send({ case: 'events', value: { events } });
    worker.stop();
    expect(await worker.frame('verdicts')).toMatchObject({ verdicts: [{ taskId, judgedThrough: 3n }] });
    expect(await worker.stream.ended).toBeNull();
    expect(await get(taskId)).toMatchObject({ status: TaskStatus.COMPLETED });
  });

  it('of a worker that will not come back gives its claims to others at once', async () => {
    const worker = await Worker.start(fixture.client, { linger: { seconds: 0n } });
    const { taskId } = await submitted(fixture.client, { queue: worker.queue });
    const claim = await worker.claim();
    await worker.say(claim, [accepted, started]);
    const other = await Worker.start(fixture.client, { queues: [worker.queue] });
    worker.stream.cancel();
    expect(await other.claim()).toMatchObject({ taskId, epoch: 2n });
    other.stop();
  });
});
