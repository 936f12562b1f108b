// Cancel through a real server: the three states, repeats, receipts, the waits for them, and its refusals.

import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CancellationState, OwnerStopped, ReceiptKind, TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { type CancelRequestSchema, CancelState } from '../../src/gen/reeve/v1/task_service_pb.js';
import { completed, running, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const cancel = (request: MessageInitShape<typeof CancelRequestSchema>) =>
  fixture.client.unary(tasks.cancel, { requestId: freshKey('cancel'), ...request });

describe('Cancel', () => {
  it('ends at once what is not running; request and settlement are two facts, the settlement is named', async () => {
    const { taskId } = await submitted(fixture.client);
    const answer = await cancel({ taskId, reason: { code: 'run.cancelled.user', summary: 'enough' } });
    expect(answer).toMatchObject({
      state: CancelState.CANCELLED,
      replayed: false,
      generation: { number: 1 },
      transitionId: `${taskId}~r3`,
      event: { eventNumber: 3n },
      task: {
        status: TaskStatus.CANCELLED,
        cancellation: { state: CancellationState.SETTLED, ownerStopped: OwnerStopped.CONFIRMED },
        reason: { code: 'run.cancelled.user', summary: 'enough' },
      },
    });
    expect(answer.receipts?.settledTime).toBeDefined();
  });

  it('names the task by its key', async () => {
    const key = freshKey();
    const { taskId } = await submitted(fixture.client, { idempotencyKey: key, namespace: 'cancel' });
    const answer = await cancel({ namespace: 'cancel', idempotencyKey: key });
    expect(answer).toMatchObject({ state: CancelState.CANCELLED, task: { taskId } });
  });

  it('asks a running task, whose completion then still counts', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const { taskId } = task;
    const requestId = freshKey('cancel');
    const asked = await cancel({ taskId, requestId });
    expect(asked).toMatchObject({ state: CancelState.CANCELLATION_REQUESTED, task: { status: TaskStatus.RUNNING } });
    expect(asked.transitionId).toBe(`${taskId}~r3`);
    const { cancels } = await worker.frame('cancels');
    expect(cancels[0]).toMatchObject({ taskId, epoch: 1n, cancellationToken: claim.cancellationToken });
    const other = await cancel({ taskId });
    expect(other).toMatchObject({ state: CancelState.CANCELLATION_REQUESTED, replayed: false, transitionId: '' });
    await worker.say(claim, [completed], 3);
    const again = await cancel({ taskId, requestId });
    expect(again).toMatchObject({
      state: CancelState.CANCELLATION_REQUESTED,
      replayed: true,
      transitionId: asked.transitionId,
      event: asked.event,
      task: { status: TaskStatus.COMPLETED },
    });
    worker.stop();
  });

  it('says that it was over, and says so again', async () => {
    const { taskId } = await submitted(fixture.client);
    await cancel({ taskId });
    const requestId = freshKey('cancel');
    const late = await cancel({ taskId, requestId });
    expect(late).toMatchObject({ state: CancelState.ALREADY_TERMINAL, replayed: false, transitionId: '' });
    await fixture.client.unary(tasks.resume, { taskId, idempotencyKey: freshKey('resume') });
    const again = await cancel({ taskId, requestId });
    expect(again).toMatchObject({ state: CancelState.ALREADY_TERMINAL, replayed: true, generation: { number: 1 } });
    expect(again.task).toMatchObject({ status: TaskStatus.QUEUED, generation: { number: 2 } });
    expect(again.generation?.id).toBe(late.task?.generation?.id);
    expect(again.receipts).toMatchObject({});
  });

  it('lets concurrent requests of one key be one request', async () => {
    const { taskId } = await submitted(fixture.client);
    const requestId = freshKey('cancel');
    const answers = await Promise.all(Array.from({ length: 30 }, () => cancel({ taskId, requestId })));
    expect(new Set(answers.map((answer) => answer.state))).toEqual(new Set([CancelState.CANCELLED]));
    expect(new Set(answers.map((answer) => answer.transitionId)).size).toBe(1);
    expect(answers.filter((answer) => !answer.replayed)).toHaveLength(1);
  });

  it('waits for the receipt that was asked for', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const { taskId, generation, epoch, cancellationToken } = claim;
    const settling = cancel({ taskId: task.taskId, waitFor: ReceiptKind.SETTLED });
    await worker.frame('cancels');
    const acknowledging = cancel({ taskId: task.taskId, waitFor: ReceiptKind.ACKNOWLEDGED });
    const receipt = { taskId, generation, epoch, cancellationToken };
    worker.send({ case: 'cancelReceipts', value: { receipts: [{ ...receipt, kind: ReceiptKind.DELIVERED }] } });
    worker.send({ case: 'cancelReceipts', value: { receipts: [{ ...receipt, kind: ReceiptKind.ACKNOWLEDGED }] } });
    const { receipts } = await acknowledging;
    expect(receipts?.deliveredTime).toBeDefined();
    expect(receipts?.acknowledgedTime).toBeDefined();
    expect(receipts?.settledTime).toBeUndefined();
    await worker.say(claim, [{ case: 'cancelled', value: { reason: 'stopped' } }], 3);
    const settled = await settling;
    expect(settled).toMatchObject({
      state: CancelState.CANCELLATION_REQUESTED,
      task: { status: TaskStatus.CANCELLED },
    });
    expect(settled.receipts?.settledTime).toBeDefined();
    worker.stop();
  });

  it('answers without the receipt when patience runs out, and releases the wait of a caller who leaves', async () => {
    const { task, worker } = await running(fixture.client);
    const answer = await cancel({
      taskId: task.taskId,
      waitFor: ReceiptKind.SETTLED,
      waitTimeout: { nanos: 50_000_000 },
    });
    expect(answer).toMatchObject({ state: CancelState.CANCELLATION_REQUESTED });
    const request = { taskId: task.taskId, requestId: freshKey('cancel'), waitFor: ReceiptKind.SETTLED };
    const gone = await refusal(fixture.client.unary(tasks.cancel, request, { deadline: Date.now() + 50 }));
    expect(gone.code).toBe(4);
    worker.stop();
  });

  it('asked again with a grace, ends what did not obey; the worker is told what is left', async () => {
    const { task, worker } = await running(fixture.client);
    const asked = await cancel({ taskId: task.taskId });
    expect((await worker.frame('cancels')).cancels[0]?.grace).toBeUndefined();
    const hastened = { taskId: task.taskId, requestId: freshKey('cancel'), grace: { seconds: 60n } };
    const answer = await cancel(hastened);
    expect(answer).toMatchObject({
      state: CancelState.CANCELLATION_REQUESTED,
      transitionId: asked.transitionId,
      event: asked.event,
      task: { revision: asked.task?.revision, lastEventNumber: (asked.task?.lastEventNumber ?? 0n) + 1n },
    });
    expect(await cancel(hastened)).toMatchObject({ replayed: true, transitionId: asked.transitionId });
    expect((await worker.frame('cancels')).cancels[0]?.grace?.seconds).toBeGreaterThan(50n);
    const ended = await cancel({ taskId: task.taskId, grace: {}, waitFor: ReceiptKind.SETTLED });
    expect(ended.task).toMatchObject({
      status: TaskStatus.CANCELLED,
      cancellation: { ownerStopped: OwnerStopped.UNCONFIRMED },
    });
    worker.stop();
  });

  it('enforces its grace on a worker that goes on', async () => {
    const { task, worker } = await running(fixture.client);
    const answer = await cancel({
      taskId: task.taskId,
      grace: { nanos: 100_000_000 },
      waitFor: ReceiptKind.SETTLED,
    });
    expect(answer.task).toMatchObject({
      status: TaskStatus.CANCELLED,
      reason: { code: 'run.cancelled.grace_expired' },
      cancellation: { ownerStopped: OwnerStopped.UNCONFIRMED },
    });
    const { losses } = await worker.frame('leasesLost');
    expect(losses[0]).toMatchObject({ taskId: task.taskId, cause: 7 });
    worker.stop();
  });
});

describe('refusals of Cancel', () => {
  it.each<[string, MessageInitShape<typeof CancelRequestSchema>, string]>([
    ['no request id', { taskId: 't', requestId: '' }, 'request_id'],
    ['no task', {}, 'task_id'],
    ['two names', { taskId: 't', idempotencyKey: 'k' }, 'idempotency_key'],
    ['a bad namespace', { idempotencyKey: 'k', namespace: 'N!' }, 'namespace'],
    ['a receipt of no kind', { taskId: 't', waitFor: 9 as 1 }, 'wait_for'],
    ['a wait of six minutes', { taskId: 't', waitTimeout: { seconds: 360n } }, 'wait_timeout'],
    ['a grace of 11 years', { taskId: 't', grace: { seconds: 346_896_000n } }, 'grace'],
    ['a reason of the authority', { taskId: 't', reason: { code: 'run.cancelled.acknowledged' } }, 'reason.code'],
    ['an actor of the authority', { taskId: 't', actor: { type: 2 } }, 'actor.type'],
    ['a generation id with ~', { taskId: 't', generationId: 'a~1' }, 'generation_id'],
  ])('MALFORMED: %s', async (_, request, field) => {
    expect(await refusal(cancel(request))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });

  it('TASK_NOT_FOUND by id and by key, STALE_GENERATION, IDEMPOTENCY_CONFLICT', async () => {
    expect(await refusal(cancel({ taskId: 'no-such' }))).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
    const byKey = await refusal(cancel({ idempotencyKey: 'no-such' }));
    expect(byKey.metadata).toMatchObject({ namespace: 'default', idempotency_key: 'no-such' });
    const { taskId } = await submitted(fixture.client);
    const stale = await refusal(cancel({ taskId, generationId: 'older' }));
    expect(stale).toMatchObject({ code: 9, reason: 'STALE_GENERATION' });
    const requestId = freshKey('cancel');
    await cancel({ taskId, requestId });
    const conflict = await refusal(cancel({ taskId, requestId, grace: { seconds: 1n } }));
    expect(conflict).toMatchObject({ code: 6, reason: 'IDEMPOTENCY_CONFLICT', metadata: { task_id: taskId } });
  });
});
