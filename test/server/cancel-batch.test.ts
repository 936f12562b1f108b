// CancelBatch through a real server: by ids and by filter, a verdict for each, keys per task, pages.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import {
  type CancelBatchRequestSchema,
  type CancelBatchResponse,
  CancelState,
} from '../../src/gen/reeve/v1/task_service_pb.js';
import type { Fields } from '../../src/wire/message-fields.js';
import { running, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const cancelBatch = (request: Fields<typeof CancelBatchRequestSchema>) =>
  fixture.client.unary(tasks.cancelBatch, { requestId: freshKey('request'), ...request });

const states = ({ verdicts }: CancelBatchResponse) =>
  verdicts.map(({ verdict }) => (verdict.case === 'accepted' ? verdict.value.state : verdict.value?.reason));

async function many(count: number, queue: string): Promise<string[]> {
  const made = await Promise.all(Array.from({ length: count }, () => submitted(fixture.client, { queue })));
  const { tasks: listed } = await fixture.client.unary(tasks.list, { filter: { queue }, order: 2, pageSize: 1_000 });
  expect(listed).toHaveLength(made.length);
  return listed.map(({ taskId }) => taskId);
}

const statusOf = async (taskId: string) => (await fixture.client.unary(tasks.get, { taskId })).task?.status;

describe('by ids', () => {
  it('judges each alone, in their order, and tells why one is refused', async () => {
    const [queued = ''] = await many(1, freshKey('queue'));
    const { task: held, worker } = await running(fixture.client);
    const [over = ''] = await many(1, freshKey('queue'));
    await fixture.client.unary(tasks.cancel, { taskId: over, requestId: freshKey('cancel') });
    const answer = await cancelBatch({ taskIds: [held.taskId, 'nobody', queued, 'not an id', over] });
    expect(answer.verdicts.map(({ taskId }) => taskId)).toEqual([held.taskId, 'nobody', queued, 'not an id', over]);
    expect(answer.verdicts.map(({ verdict }) => verdict.case)).toEqual([
      'accepted',
      'refused',
      'accepted',
      'refused',
      'accepted',
    ]);
    expect(answer.verdicts[1]?.verdict.value).toMatchObject({ grpcCode: 5 });
    expect(answer.verdicts[3]?.verdict.value).toMatchObject({ grpcCode: 3, metadata: { field: 'task_ids[3]' } });
    const accepted = [answer.verdicts[0], answer.verdicts[2], answer.verdicts[4]];
    expect(accepted.map((one) => one?.verdict.value)).toMatchObject([
      { state: CancelState.CANCELLATION_REQUESTED },
      { state: CancelState.CANCELLED, transitionId: `${queued}~r3` },
      { state: CancelState.ALREADY_TERMINAL },
    ]);
    expect(await statusOf(queued)).toBe(TaskStatus.CANCELLED);
    expect((await worker.frame('cancels')).cancels).toMatchObject([{ taskId: held.taskId }]);
    worker.stop();
  });

  it('carries reason, actor and grace to every task', async () => {
    const { task, worker } = await running(fixture.client);
    const [queued = ''] = await many(1, freshKey('queue'));
    const taskIds = [task.taskId, queued];
    const reason = { code: 'app.ops.sweep', summary: 'swept' };
    await cancelBatch({ taskIds, reason, actor: { type: 3, id: 'ann' }, grace: { seconds: 100n } });
    const { cancels } = await worker.frame('cancels');
    expect(cancels[0]).toMatchObject({ reason });
    expect(Number(cancels[0]?.grace?.seconds)).toBeGreaterThan(90);
    const { task: swept } = await fixture.client.unary(tasks.get, { taskId: queued });
    expect(swept?.cancellation).toMatchObject({ requestedBy: { id: 'ann' } });
    worker.stop();
  });

  it('names each by its id alone unless another view is asked for', async () => {
    const [first = '', second = ''] = await many(2, freshKey('queue'));
    const plain = await cancelBatch({ taskIds: [first] });
    const basic = await cancelBatch({ taskIds: [second], view: TaskView.BASIC });
    const taskOf = ({ verdicts }: CancelBatchResponse) =>
      verdicts[0]?.verdict.case === 'accepted' ? verdicts[0].verdict.value.task : undefined;
    expect(taskOf(plain)).toMatchObject({ taskId: first, status: TaskStatus.CANCELLED });
    expect(taskOf(plain)?.application).toBeUndefined();
    expect(taskOf(basic)?.application).toMatchObject({ actionKind: 'agent' });
  });

  it('keeps the answer within one message: what has no room is told by name', async () => {
    const queue = freshKey('queue');
    const argsForm = { case: 'argsJson', value: JSON.stringify({ text: 'x'.repeat(900_000) }) } as const;
    const taskIds: string[] = [];
    for (let made = 0; made < 6; made++) taskIds.push((await submitted(fixture.client, { queue, argsForm })).taskId);
    const { verdicts } = await cancelBatch({ taskIds, view: TaskView.FULL });
    const whole = verdicts.map(({ verdict }) =>
      verdict.case === 'accepted' ? verdict.value.task?.application !== undefined : undefined,
    );
    expect(whole).toEqual([true, true, true, true, false, false]);
  });
});

describe('the request id', () => {
  it('is the key of each task: a repetition is a replay, and so is the same Cancel', async () => {
    const taskIds = await many(3, freshKey('queue'));
    const request = { taskIds, requestId: freshKey('request') };
    const first = await cancelBatch(request);
    const again = await cancelBatch({ ...request, taskIds: [...taskIds].reverse() });
    expect(states(first)).toEqual(states(again));
    for (const { verdict } of again.verdicts) expect(verdict.value).toMatchObject({ replayed: true });
    const [taskId = ''] = taskIds;
    const single = await fixture.client.unary(tasks.cancel, { taskId, requestId: request.requestId });
    expect(single).toMatchObject({ replayed: true, state: CancelState.CANCELLED });
    const other = await cancelBatch({ ...request, reason: { code: 'app.ops.other' } });
    for (const { verdict } of other.verdicts) expect(verdict.value).toMatchObject({ grpcCode: 6 });
  });

  it('a task named twice is cancelled once', async () => {
    const [taskId = ''] = await many(1, freshKey('queue'));
    const { verdicts } = await cancelBatch({ taskIds: [taskId, taskId] });
    expect(verdicts.map(({ verdict }) => verdict.value)).toMatchObject([{ replayed: false }, { replayed: true }]);
    const { events } = await fixture.client.unary(tasks.listEvents, { taskId });
    expect(events).toHaveLength(3);
  });
});

describe('by filter', () => {
  it('cancels what fits and is not over, page after page, oldest first', async () => {
    const queue = freshKey('queue');
    const [done = '', ...ids] = await many(8, queue);
    await fixture.client.unary(tasks.cancel, { taskId: done, requestId: freshKey('cancel') });
    const [elsewhere = ''] = await many(1, freshKey('queue'));
    const request = { requestId: freshKey('request'), filter: { queue }, pageSize: 3 };
    const found: string[] = [];
    let pages = 0;
    for (let pageToken = ''; pages === 0 || pageToken !== ''; pages += 1) {
      const page = await cancelBatch({ ...request, pageToken });
      expect(page.verdicts.length).toBeLessThanOrEqual(3);
      for (const state of states(page)) expect(state).toBe(CancelState.CANCELLED);
      found.push(...page.verdicts.map(({ taskId }) => taskId));
      pageToken = page.nextPageToken;
    }
    expect(found).toEqual(ids);
    expect(pages).toBeGreaterThan(1);
    expect(await statusOf(elsewhere)).toBe(TaskStatus.QUEUED);
    expect((await cancelBatch(request)).verdicts).toEqual([]);
  });

  it('holds every condition of the filter', async () => {
    const queue = freshKey('queue');
    const { taskId } = await submitted(fixture.client, { queue, policy: { labels: { team: 'a' } } });
    const { taskId: other } = await submitted(fixture.client, { queue, policy: { labels: { team: 'b' } } });
    const before = { seconds: 1n, nanos: 0 };
    expect((await cancelBatch({ filter: { queue, createdBefore: before } })).verdicts).toEqual([]);
    expect((await cancelBatch({ filter: { queue, statuses: [TaskStatus.RUNNING] } })).verdicts).toEqual([]);
    expect((await cancelBatch({ filter: { queue, statuses: [TaskStatus.COMPLETED] } })).verdicts).toEqual([]);
    const { verdicts } = await cancelBatch({ filter: { queue, labels: { team: 'a' }, statuses: [TaskStatus.QUEUED] } });
    expect(verdicts.map((one) => one.taskId)).toEqual([taskId]);
    expect(await statusOf(other)).toBe(TaskStatus.QUEUED);
  });

  it('a page token is bound to its filter and its request id', async () => {
    const queue = freshKey('queue');
    await many(3, queue);
    const request = { requestId: freshKey('request'), filter: { queue }, pageSize: 1 };
    const { nextPageToken: pageToken } = await cancelBatch(request);
    for (const other of [{ filter: { queue: 'x' } }, { requestId: 'another' }, { pageToken: `${pageToken}A` }]) {
      const refused = await refusal(cancelBatch({ ...request, pageToken, ...other }));
      expect(refused).toMatchObject({ code: 3, reason: 'CURSOR_INVALID', metadata: { field: 'page_token' } });
    }
    expect((await cancelBatch({ ...request, pageToken })).verdicts).toHaveLength(1);
  });
});

it.each<[string, Fields<typeof CancelBatchRequestSchema>]>([
  ['task_ids', {}],
  ['task_ids', { taskIds: Array.from({ length: 1_001 }, () => 'x') }],
  ['task_ids', { taskIds: ['x'], filter: {} }],
  ['page_size', { taskIds: ['x'], pageSize: 3 }],
  ['page_token', { taskIds: ['x'], pageToken: 'x' }],
  ['page_size', { filter: {}, pageSize: 1_001 }],
  ['request_id', { taskIds: ['x'], requestId: '' }],
  ['grace', { taskIds: ['x'], grace: { seconds: -1n } }],
  ['view', { taskIds: ['x'], view: 77 as TaskView }],
])('MALFORMED as a whole: %s (case %#)', async (field, request) => {
  expect(await refusal(cancelBatch(request))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
});
