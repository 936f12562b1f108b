// Every frame of a worker has its answer: what could not be kept is told, a half-close waits for all of them, and
// numbers that cannot be what they say are refused by name.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { ReceiptKind, TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { type HelloSchema, LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { StoreError } from '../../src/store/store-error.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { Worker, accepted, running, submitted } from './lifecycle-driver.js';
import { refusedOf, tasks, workers } from './reeve-client.js';
import { ManualClock } from '../support/manual-clock.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

const script: Partial<TaskStore> = {};
let fixture: Fixture;
beforeAll(async () => {
  const wrap = (store: TaskStore): TaskStore =>
    new Proxy(store, { get: (target, name: keyof TaskStore) => Reflect.get(name in script ? script : target, name) });
  fixture = await startFixture({}, { wrap });
});
afterAll(() => fixture.close());

const get = async (taskId: string) => (await fixture.client.unary(tasks.get, { taskId })).task;

const failCommits = (): void => {
  script.commit = () => Promise.reject(new StoreError('unavailable', 'told to fail'));
};

describe('a frame that could not be kept', () => {
  it('of a release is rejected, and taken when it is said again', async () => {
    const { task, claim, worker } = await running(fixture.client);
    worker.send({ case: 'drain', value: {} });
    worker.send({ case: 'heartbeat', value: { held: [] } });
    await worker.frame('heartbeat');
    failCommits();
    const { taskId, generation, epoch } = claim;
    const release = { case: 'release' as const, value: { claims: [{ taskId, generation, epoch }] } };
    const frameId = worker.send(release);
    expect(await worker.frame('rejection')).toMatchObject({
      frameId,
      refusal: { reason: ErrorReason.STORE_UNAVAILABLE, grpcCode: 14 },
    });
    delete script.commit;
    worker.send(release);
    expect(await worker.frame('leasesLost')).toMatchObject({ losses: [{ taskId, cause: LeaseLossCause.RELEASED }] });
    expect(await get(task.taskId)).toMatchObject({ status: TaskStatus.QUEUED });
    worker.stop();
  });

  it('of a receipt is rejected, and kept when it is said again', async () => {
    const { task, claim, worker } = await running(fixture.client);
    await fixture.client.unary(tasks.cancel, { taskId: task.taskId, requestId: freshKey() });
    await worker.frame('cancels');
    failCommits();
    const { taskId, generation, epoch, cancellationToken } = claim;
    const receipt = { taskId, generation, epoch, cancellationToken, kind: ReceiptKind.DELIVERED };
    const frameId = worker.send({ case: 'cancelReceipts', value: { receipts: [receipt] } });
    expect(await worker.frame('rejection')).toMatchObject({
      frameId,
      refusal: { reason: ErrorReason.STORE_UNAVAILABLE },
    });
    delete script.commit;
    worker.send({ case: 'cancelReceipts', value: { receipts: [receipt] } });
    worker.stop();
    expect(await worker.stream.ended).toBeNull();
    expect((await get(task.taskId))?.cancellation?.deliveredTime).toBeDefined();
    expect(worker.stream.messages.filter(({ frame }) => frame.case === 'rejection')).toHaveLength(1);
  });
});

describe('the half-close', () => {
  it('waits for the answer to a release', async () => {
    const worker = await Worker.start(fixture.client);
    const { taskId } = await submitted(fixture.client, { queue: worker.queue });
    const claim = await worker.claim();
    await worker.say(claim, [accepted]);
    const { generation, epoch } = claim;
    worker.send({ case: 'drain', value: {} });
    worker.send({ case: 'release', value: { claims: [{ taskId, generation, epoch }] } });
    worker.stop();
    expect(await worker.stream.ended).toBeNull();
    expect(worker.stream.messages.at(-1)?.frame).toMatchObject({ case: 'leasesLost', value: { losses: [{ taskId }] } });
  });

  it('waits for the answer to a heartbeat', async () => {
    const worker = await Worker.start(fixture.client);
    const frameId = worker.send({ case: 'heartbeat', value: { held: [] } });
    worker.stop();
    expect(await worker.stream.ended).toBeNull();
    expect(worker.stream.messages.at(-1)?.frame).toMatchObject({
      case: 'heartbeat',
      value: { heartbeatFrameId: frameId },
    });
  });
});

describe('numbers', () => {
  const huge = 2n ** 53n;

  it.each([0n, -1n, huge, 2n ** 63n - 1n])('that are no epoch are refused by name: %d', async (epoch) => {
    const { claim, worker } = await running(fixture.client);
    const { taskId, generation, cancellationToken } = claim;
    const refusedField = async (): Promise<string | undefined> =>
      (await worker.frame('rejection')).refusal?.metadata['field'];
    worker.send({
      case: 'heartbeat',
      value: {
        held: [
          { taskId, epoch: 1n },
          { taskId, epoch },
        ],
      },
    });
    expect(await refusedField()).toBe('heartbeat.held[1].epoch');
    const receipt = { taskId, generation, epoch, cancellationToken, kind: ReceiptKind.DELIVERED };
    worker.send({ case: 'cancelReceipts', value: { receipts: [receipt] } });
    expect(await refusedField()).toBe('receipts[0].epoch');
    worker.send({ case: 'events', value: { events: [{ taskId, generation, epoch, eventSeq: 3n, event: accepted }] } });
    expect(await refusedField()).toBe('events[0].epoch');
    worker.send({
      case: 'events',
      value: { events: [{ taskId, generation, epoch: 1n, eventSeq: epoch, event: accepted }] },
    });
    expect(await refusedField()).toBe('events[0].event_seq');
    worker.send({ case: 'drain', value: {} });
    worker.send({ case: 'release', value: { claims: [{ taskId, generation, epoch }] } });
    expect(await refusedField()).toBe('claims[0].epoch');
    worker.stop();
  });

  const hello = { workerName: 'w', actionKinds: ['*'] };
  const reattach = { sessionId: 's', sessionSecret: 't' };
  it.each<[string, MessageInitShape<typeof HelloSchema>, string]>([
    [
      'a negative mark',
      { ...hello, reattach: { ...reattach, held: [{ taskId: 't', epoch: 1n, answeredThrough: -1n }] } },
      'hello.reattach.held[0].answered_through',
    ],
    [
      'a mark beyond every event',
      { ...hello, reattach: { ...reattach, held: [{ taskId: 't', epoch: 1n, answeredThrough: huge }] } },
      'hello.reattach.held[0].answered_through',
    ],
    [
      'an epoch of nothing',
      { ...hello, reattach: { ...reattach, held: [{ taskId: 't', epoch: 0n }] } },
      'hello.reattach.held[0].epoch',
    ],
    ['101 features', { ...hello, features: Array<string>(101).fill('f') }, 'hello.features'],
    ['a feature of 129 bytes', { ...hello, features: ['f', 'x'.repeat(129)] }, 'hello.features[1]'],
  ])('of a Hello: %s', async (_, value, field) => {
    const stream = fixture.client.bidi(workers.work);
    stream.send({ frameId: 1n, frame: { case: 'hello', value } });
    expect(refusedOf(await stream.ended)).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });
});

it('says of a lost lease what the record says, when a worker attaches again', async () => {
  const queue = freshKey('queue');
  const hello = { workerName: 'w', actionKinds: ['*'], slots: 5, queues: [queue] };
  const first = fixture.client.bidi(workers.work);
  first.send({ frameId: 1n, frame: { case: 'hello', value: hello } });
  const welcome = (await first.next())?.frame;
  if (welcome?.case !== 'welcome') throw new Error('no welcome');
  const { taskId } = await submitted(fixture.client, { queue });
  await first.next();
  first.cancel();
  await first.ended;
  const intent = { case: 'suspend' as const, value: {} };
  await fixture.client.unary(tasks.transition, { taskId, idempotencyKey: freshKey(), intent });
  const { sessionId, sessionSecret } = welcome.value;
  const held = [{ taskId, epoch: 1n, answeredThrough: 0n }];
  const second = fixture.client.bidi(workers.work);
  const reattach = { sessionId, sessionSecret, held };
  second.send({ frameId: 1n, frame: { case: 'hello', value: { ...hello, reattach } } });
  const again = (await second.next())?.frame;
  expect(again).toMatchObject({
    case: 'welcome',
    value: { leasesLost: [{ taskId, epoch: 1n, generation: 1, cause: LeaseLossCause.SUSPENDED }] },
  });
  second.half();
  expect(await second.ended).toBeNull();
});

describe('sizes that one claim must hold', () => {
  const text = (bytes: number): string => JSON.stringify('ü'.repeat(bytes / 2 - 1));

  it('a checkpoint of 128 KiB is kept, a byte more is refused', async () => {
    const { claim, worker } = await running(fixture.client);
    const checkpoint = (checkpointJson: string) => ({ case: 'checkpoint' as const, value: { checkpointJson } });
    const verdict = await worker.say(claim, [checkpoint(text(131_072)), checkpoint(`${text(131_072)} `)], 3);
    expect(verdict).toMatchObject({ judgedThrough: 4n, rejected: [{ eventSeq: 4n }] });
    expect(verdict.rejected[0]?.refusal?.metadata['field']).toBe('checkpoint.checkpoint_json');
    worker.send({ case: 'drain', value: {} });
    const { taskId, generation, epoch } = claim;
    const claims = [{ taskId, generation, epoch, checkpointJson: `${text(131_072)} ` }];
    worker.send({ case: 'release', value: { claims } });
    expect((await worker.frame('rejection')).refusal?.metadata['field']).toBe('claims[0].checkpoint_json');
    worker.stop();
  });

  it('an input of 128 KiB is taken, a byte more is refused', async () => {
    const { taskId } = await submitted(fixture.client);
    const suspend = { case: 'suspend' as const, value: {} };
    await fixture.client.unary(tasks.transition, { taskId, idempotencyKey: freshKey(), intent: suspend });
    const resume = (inputJson: string) =>
      fixture.client.unary(tasks.resume, { taskId, idempotencyKey: freshKey(), inputJson });
    const refused = refusedOf(await resume(`${text(131_072)} `).catch((error: unknown) => error));
    expect(refused).toMatchObject({ code: 3, field: 'input_json' });
    expect(await resume(text(131_072))).toMatchObject({ applied: true });
  });
});

it('a stream that never says Hello is ended', async () => {
  const clock = new ManualClock();
  const other = await startFixture({}, { clock });
  const silent = other.client.bidi(workers.work);
  // The call has reached its handler once a later call on the same connection is answered.
  await other.client.unary(tasks.list, {});
  await clock.advance(10_000);
  expect(refusedOf(await silent.ended)).toMatchObject({ code: 3, reason: 'MALFORMED', field: 'frame' });
  await other.close();
});
