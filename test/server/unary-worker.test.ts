// Workers without a stream through a real server: Transition{claim} gives a lease, Report renews, tells and settles.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ReceiptKind, TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { Conflict, type LeaseGrant, type TransitionRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { type ReportRequestSchema, SessionState } from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { Fields } from '../../src/wire/message-fields.js';
import { type Event, accepted, completed, running, started, submitted } from './lifecycle-driver.js';
import { refusal, tasks, workers } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const transition = (request: Fields<typeof TransitionRequestSchema>) =>
  fixture.client.unary(tasks.transition, { idempotencyKey: freshKey('claim'), ...request });
const claimOf = (taskId: string, ttlMs?: number, workerName = 'curl') => {
  const ttl = ttlMs === undefined ? {} : { ttl: { seconds: BigInt(ttlMs / 1_000) } };
  return transition({ taskId, intent: { case: 'claim', value: { workerName, ...ttl } } });
};
const get = async (taskId: string) => (await fixture.client.unary(tasks.get, { taskId })).task;
const numbered = (events: readonly Event[], from = 1) =>
  events.map((event, index) => ({ eventSeq: BigInt(from + index), event }));

interface Claimed {
  readonly taskId: string;
  readonly lease: LeaseGrant;
  readonly report: (request?: Fields<typeof ReportRequestSchema>) => ReturnType<typeof report>;
}

const report = (request: Fields<typeof ReportRequestSchema>) => fixture.client.unary(workers.report, request);

async function claimed(ttlMs?: number): Promise<Claimed> {
  const { taskId } = await submitted(fixture.client, { queue: freshKey('queue') });
  const { lease } = await claimOf(taskId, ttlMs);
  if (lease === undefined) throw new Error('a claim without its lease');
  const proof = { taskId, generation: lease.generation?.number ?? 0, epoch: lease.epoch, leaseToken: lease.leaseToken };
  return { taskId, lease, report: (request = {}) => report({ ...proof, ...request }) };
}

describe('Transition{claim}', () => {
  it('takes a queued task, with its args, and gives the lease to its caller alone', async () => {
    const { taskId } = await submitted(fixture.client, {
      queue: freshKey('queue'),
      argsForm: { case: 'argsJson', value: '{"n":1}' },
    });
    const answer = await claimOf(taskId);
    expect(answer).toMatchObject({
      applied: true,
      conflict: Conflict.NONE,
      previousStatus: TaskStatus.QUEUED,
      currentStatus: TaskStatus.RUNNING,
      transitionId: `${taskId}~r2`,
      lease: { epoch: 1n, generation: { number: 1 } },
      task: { attempt: 1, lease: { workerName: 'curl' }, application: { argsJson: '{"n":1}' } },
    });
    expect(answer.lease?.leaseToken).toMatch(/^[\w-]{20,}$/);
    expect(answer.lease?.expireTime).toEqual(answer.task?.lease?.expireTime);
    expect((await get(taskId))?.lease).not.toHaveProperty('leaseToken');
  });

  it('of a task that is held is refused, and leaves no session behind', async () => {
    const name = freshKey('late');
    const { taskId } = await claimed();
    expect(await refusal(claimOf(taskId, undefined, name))).toMatchObject({ reason: 'INVALID_TRANSITION' });
    expect(await refusal(claimOf('nobody', undefined, name))).toMatchObject({ reason: 'TASK_NOT_FOUND' });
    const guarded = await transition({
      taskId,
      expectedRevision: 9n,
      intent: { case: 'claim', value: { workerName: name } },
    });
    expect(guarded).toMatchObject({ applied: false, conflict: Conflict.REVISION });
    expect(guarded.lease).toBeUndefined();
    expect((await fixture.client.unary(workers.listWorkers, { workerName: name })).workers).toEqual([]);
  });

  it('with its key again gives the same lease while that is in force, and none after', async () => {
    const { taskId } = await submitted(fixture.client, { queue: freshKey('queue') });
    const request = { taskId, idempotencyKey: freshKey('claim'), intent: { case: 'claim', value: {} } } as const;
    const first = await transition(request);
    const again = await transition(request);
    expect(again).toMatchObject({ applied: true, replayed: true, transitionId: first.transitionId });
    expect(again.lease?.leaseToken).toBe(first.lease?.leaseToken);
    expect((await get(taskId))?.attempt).toBe(1);
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('c'), grace: { seconds: 0n } });
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('c'), waitFor: ReceiptKind.SETTLED });
    expect((await transition(request)).lease).toBeUndefined();
  });

  it('is judged dry without a session', async () => {
    const { taskId } = await submitted(fixture.client, { queue: freshKey('queue') });
    const dry = await transition({ taskId, validateOnly: true, intent: { case: 'claim', value: {} } });
    expect(dry).toMatchObject({ applied: false, conflict: Conflict.NONE, currentStatus: TaskStatus.RUNNING });
    expect((await get(taskId))?.status).toBe(TaskStatus.QUEUED);
  });

  it.each([
    [500, 2],
    [undefined, 30],
    [60_000, 60],
    [7_200_000, 3_600],
  ])('a TTL of %s ms holds as %d s', async (asked, seconds) => {
    const { report: renew } = await claimed(asked === 500 ? 1_000 : asked);
    expect((await renew()).ttl?.seconds).toBe(BigInt(seconds));
  });

  it('is a session like any other for those who look', async () => {
    const name = freshKey('unary');
    const { taskId } = await submitted(fixture.client, { queue: freshKey('queue') });
    const { task } = await claimOf(taskId, undefined, name);
    const { workers: found } = await fixture.client.unary(workers.listWorkers, { workerName: name });
    expect(found).toMatchObject([
      { unary: true, attached: false, held: 1, slots: 1, attachment: 0n, state: SessionState.LIVE },
    ]);
    expect(found[0]?.sessionAlias).toBe(task?.lease?.sessionAlias);
  });
});

describe('Report', () => {
  it('tells what happens and settles, and its session is over with it', async () => {
    const { taskId, report: say, lease } = await claimed();
    const first = await say({ events: numbered([accepted, started]) });
    expect(first).toMatchObject({ verdict: { taskId, epoch: lease.epoch, judgedThrough: 2n, rejected: [] } });
    expect(Number(first.verdict?.committedSequence)).toBeGreaterThan(0);
    expect(first.expireTime).toBeDefined();
    const last = await say({ events: numbered([completed], 3), answeredThrough: 2n });
    expect(last).toMatchObject({ verdict: { judgedThrough: 3n, rejected: [] } });
    expect(last.expireTime).toBeUndefined();
    expect(await get(taskId)).toMatchObject({ status: TaskStatus.COMPLETED });
    const { workers: found } = await fixture.client.unary(workers.listWorkers, { workerName: 'curl' });
    const { events } = await fixture.client.unary(tasks.listEvents, { taskId });
    expect(events.at(-1)?.actor).toMatchObject({ type: 2, id: 'curl' });
    const claimEvent = events.find(({ type }) => type === 'reeve.task.claimed');
    const { session_alias: alias } = JSON.parse(claimEvent?.payloadJson ?? '{}') as { session_alias?: string };
    expect(alias).toBeDefined();
    expect(found.map(({ sessionAlias }) => sessionAlias)).not.toContain(alias);
  });

  it('said again after a lost answer is answered again and judged once, also the last words', async () => {
    const { taskId, report: say } = await claimed();
    const events = numbered([accepted, started, completed]);
    const first = await say({ events });
    const again = await say({ events });
    expect(first.verdict).toMatchObject({ judgedThrough: 3n, rejected: [] });
    expect(again.verdict).toMatchObject({ judgedThrough: 3n, rejected: [], committedSequence: 0n });
    expect((await fixture.client.unary(tasks.listEvents, { taskId })).events).toHaveLength(5);
  });

  it('refuses single events in its verdict: a gap, an illegal one; a refused number is used up', async () => {
    const { report: say } = await claimed();
    const gap = await say({ events: numbered([accepted], 4) });
    expect(gap.verdict).toMatchObject({ judgedThrough: 0n, rejected: [{ eventSeq: 4n, refusal: { grpcCode: 9 } }] });
    const illegal = await say({ events: numbered([started, accepted]) });
    expect(illegal.verdict).toMatchObject({ judgedThrough: 2n, rejected: [{ eventSeq: 1n }] });
    const after = await say({ events: numbered([started], 3), answeredThrough: 2n });
    expect(after.verdict).toMatchObject({ judgedThrough: 3n, rejected: [] });
  });

  it('what follows a settlement in one report is refused, and the settlement stands', async () => {
    const { taskId, report: say } = await claimed();
    const answer = await say({ events: numbered([accepted, started, completed, started]) });
    expect(answer.verdict).toMatchObject({ judgedThrough: 3n, rejected: [{ eventSeq: 4n }] });
    expect((await get(taskId))?.status).toBe(TaskStatus.COMPLETED);
  });

  it('renews the lease: nothing but Report keeps it', async () => {
    const { report: say, lease } = await claimed(60_000);
    const renewed = await say();
    const ms = (time: { seconds: bigint; nanos: number } | undefined) =>
      Number(time?.seconds) * 1_000 + (time?.nanos ?? 0) / 1e6;
    expect(ms(renewed.expireTime)).toBeGreaterThanOrEqual(ms(lease.expireTime));
    expect(ms(renewed.expireTime) - ms(renewed.serverTime)).toBeGreaterThan(59_000);
  });

  it('tells a pending cancel until it settles, and takes its receipts', async () => {
    const { taskId, report: say } = await claimed();
    await say({ events: numbered([accepted, started]) });
    expect((await say()).cancel).toBeUndefined();
    const reason = { code: 'run.cancelled.user', summary: 'enough' };
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('c'), reason, grace: { seconds: 60n } });
    const { cancel } = await say();
    expect(cancel).toMatchObject({ taskId, reason });
    expect(Number(cancel?.grace?.seconds)).toBeGreaterThan(50);
    const wrong = [{ cancellationToken: 'wrong', kind: ReceiptKind.DELIVERED }];
    expect(await refusal(say({ receipts: wrong }))).toMatchObject({
      reason: 'MALFORMED',
      field: 'receipts[0].cancellation_token',
    });
    const { cancellationToken = '' } = cancel ?? {};
    await say({ receipts: [{ cancellationToken, kind: ReceiptKind.ACKNOWLEDGED }] });
    expect((await get(taskId))?.cancellation?.acknowledgedTime).toBeDefined();
    await say({ events: numbered([{ case: 'cancelled', value: {} }], 3) });
    expect(await get(taskId)).toMatchObject({ status: TaskStatus.CANCELLED, cancellation: { ownerStopped: 1 } });
  });

  it('of a claim that is lost is refused, and what it said is kept as a diagnostic', async () => {
    const { taskId, report: say } = await claimed();
    await say({ events: numbered([accepted, started]) });
    await transition({ taskId, intent: { case: 'suspend', value: {} } });
    expect(await refusal(say())).toMatchObject({ code: 9, reason: 'LEASE_LOST' });
    expect(await refusal(say({ events: numbered([completed], 3) }))).toMatchObject({ code: 9, reason: 'LEASE_LOST' });
    const { diagnostics } = await fixture.client.unary(tasks.listEvents, { taskId, includeDiagnostics: true });
    expect(diagnostics).toHaveLength(1);
    expect((await get(taskId))?.status).toBe(TaskStatus.SUSPENDED);
  });

  it('without the token of the claim is refused', async () => {
    const { taskId, lease, report: say } = await claimed();
    expect(await refusal(say({ leaseToken: 'guessed' }))).toMatchObject({ code: 9, reason: 'LEASE_LOST' });
    expect(await refusal(say({ epoch: 2n }))).toMatchObject({ reason: 'LEASE_LOST' });
    const elsewhere = { taskId: 'nobody', generation: 1, epoch: 1n, leaseToken: lease.leaseToken };
    expect(await refusal(report(elsewhere))).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
    expect((await get(taskId))?.status).toBe(TaskStatus.RUNNING);
  });

  it('goes on where a stream stopped: what one judged the other does not judge again', async () => {
    const { task, worker, claim } = await running(fixture.client);
    const { taskId } = task;
    const proof = { taskId, generation: claim.generation, epoch: claim.epoch, leaseToken: claim.leaseToken };
    const progress: Event = { case: 'progress', value: { fraction: 0.5 } };
    const answer = await report({ ...proof, events: numbered([accepted, started, progress]) });
    expect(answer.verdict).toMatchObject({ judgedThrough: 3n, rejected: [] });
    expect((await worker.say(claim, [progress, completed], 3)).judgedThrough).toBe(4n);
    expect((await get(taskId))?.status).toBe(TaskStatus.COMPLETED);
    const { workers: found } = await fixture.client.unary(workers.listWorkers, { queue: worker.queue });
    expect(found).toMatchObject([{ attached: true, state: SessionState.LIVE, held: 0 }]);
    worker.stop();
  });

  it.each<[string, Fields<typeof ReportRequestSchema>]>([
    ['task_id', { taskId: '' }],
    ['generation', { generation: 0 }],
    ['epoch', { epoch: 0n }],
    ['lease_token', { leaseToken: '' }],
    ['events[0].event_seq', { events: [{ event: accepted }] }],
    ['events[0].task_id', { events: [{ eventSeq: 1n, taskId: 'other', event: accepted }] }],
    ['events[0].epoch', { events: [{ eventSeq: 1n, epoch: 7n, event: accepted }] }],
    ['events[0].generation', { events: [{ eventSeq: 1n, generation: 7, event: accepted }] }],
    ['events', { events: Array.from({ length: 1_001 }, () => ({ eventSeq: 1n, event: accepted })) }],
    ['receipts[0].kind', { receipts: [{ kind: ReceiptKind.SETTLED }] }],
    ['answered_through', { answeredThrough: -1n }],
  ])('MALFORMED: %s (case %#)', async (field, request) => {
    const { report: say } = await claimed();
    expect(await refusal(say(request))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });
});

it('a lease that is not renewed is lost: the task goes to another', async () => {
  const short = await startFixture();
  const { taskId } = await submitted(short.client);
  const ttl = { seconds: 2n };
  const taking = { taskId, idempotencyKey: 'first', intent: { case: 'claim', value: { ttl } } } as const;
  const { lease } = await short.client.unary(tasks.transition, taking);
  const watch = short.client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId } });
  for (let item = await watch.next(); item !== undefined; item = await watch.next()) {
    if (item.item.case === 'event' && item.item.value.type === 'reeve.task.requeued') break;
  }
  watch.cancel();
  const late = { taskId, generation: 1, epoch: lease?.epoch ?? 0n, leaseToken: lease?.leaseToken ?? '' };
  const lost = await refusal(short.client.unary(workers.report, { ...late, events: numbered([accepted]) }));
  expect(lost).toMatchObject({ reason: 'LEASE_LOST' });
  const next = await short.client.unary(tasks.transition, { ...taking, idempotencyKey: 'second' });
  expect(next.lease?.epoch).toBe(2n);
  await short.close();
});

it('words that were judged are answered as that, however many claims ago it was', async () => {
  const { taskId, report: first } = await claimed();
  const words = numbered([accepted, started, { case: 'suspended', value: {} }]);
  expect((await first({ events: words })).verdict).toMatchObject({ judgedThrough: 3n, rejected: [] });
  for (let epoch = 2n; epoch <= 3n; epoch++) {
    await fixture.client.unary(tasks.resume, { taskId, idempotencyKey: freshKey('resume') });
    const { lease } = await claimOf(taskId);
    if (lease === undefined) throw new Error('a claim without its lease');
    const proof = { taskId, generation: 1, epoch, leaseToken: lease.leaseToken };
    if (epoch === 2n) await report({ ...proof, events: words });
  }
  // Its answer was lost, and it says its last words once more.
  const again = await first({ events: words, answeredThrough: 2n });
  expect(again.verdict).toMatchObject({ judgedThrough: 3n, rejected: [] });
  const { diagnostics } = await fixture.client.unary(tasks.listEvents, { taskId, includeDiagnostics: true });
  expect(diagnostics).toEqual([]);
  expect(await refusal(first({ events: numbered([completed], 4) }))).toMatchObject({ reason: 'LEASE_LOST' });
});
