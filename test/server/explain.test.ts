// Explain through a real server: the workers that are connected, the one that holds, and what comes next.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ReceiptKind } from '../../src/gen/reeve/v1/task_pb.js';
import { BlockerKind, TimerKind } from '../../src/gen/reeve/v1/task_service_pb.js';
import { Worker, accepted, completed, running, started, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const explain = (taskId: string) => fixture.client.unary(tasks.explain, { taskId });
const kindsOf = async (taskId: string) => (await explain(taskId)).blockers.map(({ kind }) => kind);

it('tells which worker is missing, step by step, until it runs', async () => {
  const queue = freshKey('queue');
  const { taskId } = await submitted(fixture.client, { queue, requiredCapabilities: ['gpu'] });
  const opened: Worker[] = [];
  const open = async (hello: object) => opened.push(await Worker.start(fixture.client, { queues: [queue], ...hello }));
  expect(await kindsOf(taskId)).toEqual([BlockerKind.NO_WORKER_FOR_QUEUE]);
  await open({ actionKinds: ['flow'] });
  expect(await kindsOf(taskId)).toEqual([BlockerKind.NO_WORKER_FOR_KIND]);
  await open({ executionTargets: [5] });
  expect(await kindsOf(taskId)).toEqual([BlockerKind.NO_WORKER_FOR_TARGET]);
  await open({});
  const { blockers } = await explain(taskId);
  expect(blockers).toMatchObject([{ kind: BlockerKind.NO_WORKER_WITH_CAPABILITIES }]);
  expect(blockers[0]?.detail).toMatch(/gpu/);
  await open({ capabilities: ['gpu'], slots: 0, workerName: 'full' });
  const full = await explain(taskId);
  expect(full.blockers).toMatchObject([
    { kind: BlockerKind.NO_FREE_SLOT, holders: [{ workerName: 'full' }], holderCount: 1 },
  ]);
  expect(full.nextTimer).toBeUndefined();
  const last = opened.at(-1);
  last?.send({ case: 'slots', value: { slots: 1 } });
  const claim = await last?.claim();
  const held = await explain(taskId);
  expect(held.blockers).toMatchObject([{ kind: BlockerKind.AWAITING_ACCEPT, holders: [{ workerName: 'full' }] }]);
  expect(held.blockers[0]?.until).toEqual(held.nextTimer?.dueTime);
  expect(held.nextTimer?.kind).toBe(TimerKind.ACCEPT);
  if (claim !== undefined) await last?.say(claim, [accepted, started, completed]);
  expect(await kindsOf(taskId)).toEqual([BlockerKind.TERMINAL]);
  for (const worker of opened) worker.stop();
});

it('of a running task tells its worker, its session as the next timer, and how far a cancel has come', async () => {
  const { task, worker, claim } = await running(fixture.client);
  const { taskId } = task;
  const at = await explain(taskId);
  expect(at.blockers).toMatchObject([{ kind: BlockerKind.RUNNING, holders: [{ workerName: 'worker' }] }]);
  expect(at.nextTimer?.kind).toBe(TimerKind.SESSION);
  expect(at.task?.lease?.sessionAlias).toBe(at.blockers[0]?.holders[0]?.sessionAlias);
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  expect(await kindsOf(taskId)).toEqual([BlockerKind.CANCEL_UNDELIVERED, BlockerKind.RUNNING]);
  const { cancellationToken, epoch, generation } = claim;
  const receipt = { taskId, epoch, generation, cancellationToken, kind: ReceiptKind.ACKNOWLEDGED };
  worker.send({ case: 'cancelReceipts', value: { receipts: [receipt] } });
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('c'), waitFor: ReceiptKind.ACKNOWLEDGED });
  expect(await kindsOf(taskId)).toEqual([BlockerKind.CANCEL_UNSETTLED, BlockerKind.RUNNING]);
  worker.stop();
});

it('names a task by its key, and refuses what it does not know', async () => {
  const { idempotencyKey, taskId } = await submitted(fixture.client, { queue: freshKey('queue') });
  const answer = await fixture.client.unary(tasks.explain, { idempotencyKey });
  expect(answer.task?.taskId).toBe(taskId);
  expect(await refusal(explain('nobody'))).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
  expect(await refusal(explain(''))).toMatchObject({ code: 3, reason: 'MALFORMED', field: 'task_id' });
});
