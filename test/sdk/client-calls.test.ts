import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { ReceiptKind, TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { CancelState, Conflict, IntentKind } from '../../src/gen/reeve/v1/task_service_pb.js';
import { connect, type ReeveClient } from '../../src/sdk/client.js';
import { FakeServer, Refused } from './fake-server.js';

let server: FakeServer;
let client: ReeveClient;

beforeEach(async () => {
  server = await FakeServer.start();
  client = connect(server.address, { retry: { initialMs: 1 } });
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

test('a task reads in words, dates and values', async () => {
  server.unary.get = async ({ taskId, view }) => {
    expect(view).toBe(TaskView.FULL);
    return {
      task: {
        taskId,
        status: TaskStatus.COMPLETED,
        revision: 7n,
        generation: { id: 'g', number: 2 },
        application: { actionKind: 'agent', argsJson: '{"n":1}', executionTarget: 1 },
        resultJson: '{"big":9007199254740993}',
        createTime: { seconds: 1n, nanos: 500_000_000 },
        policy: { timeout: { seconds: 2n, nanos: 0 } },
      },
    };
  };
  const task = await client.get('t1');
  expect(task).toMatchObject({
    id: 't1',
    status: 'completed',
    revision: 7,
    generation: { id: 'g', number: 2 },
    kind: 'agent',
    args: { n: 1 },
    target: 'host',
    resultJson: '{"big":9007199254740993}',
    createTime: new Date(1_500),
    policy: { timeoutMs: 2_000 },
    outcome: undefined,
  });
});

test('a status that a newer server knows reads as unknown', async () => {
  server.unary.get = async ({ idempotencyKey }) => ({ task: { idempotencyKey, status: 77 as TaskStatus } });
  expect(await client.getByKey('k')).toMatchObject({ key: 'k', status: 'unknown' });
});

test('errors carry reason, metadata and status', async () => {
  server.unary.get = async () => {
    throw new Refused({ code: status.NOT_FOUND, reason: 'TASK_NOT_FOUND', metadata: { task_id: 't1' } });
  };
  await expect(client.get('t1')).rejects.toMatchObject({
    name: 'ReeveError',
    reason: 'TASK_NOT_FOUND',
    code: status.NOT_FOUND,
    metadata: { task_id: 't1' },
    retryable: false,
  });
});

test('a call is tried again with the same key while the server says that it may', async () => {
  const keys: string[] = [];
  server.unary.cancel = async ({ requestId }) => {
    keys.push(requestId);
    if (keys.length === 1) throw new Refused({ code: status.UNAVAILABLE, reason: 'OUTCOME_UNKNOWN', retryAfterMs: 2 });
    if (keys.length === 2) throw new Refused({ code: status.ABORTED, reason: 'CONTENTION' });
    if (keys.length === 3)
      throw new Refused({ code: status.RESOURCE_EXHAUSTED, reason: 'OVERLOADED', retryAfterMs: 1 });
    return { state: CancelState.CANCELLATION_REQUESTED, generation: { id: 'g', number: 1 }, task: { taskId: 't1' } };
  };
  const answer = await client.cancel('t1', { reason: 'enough', graceMs: 0, waitFor: 'delivered' });
  expect(answer).toMatchObject({ state: 'cancellation_requested', generation: { number: 1 } });
  expect(keys).toHaveLength(4);
  expect(new Set(keys).size).toBe(1);
});

test('tries are bounded by number and by the time the call has', async () => {
  let calls = 0;
  server.unary.get = async () => {
    calls += 1;
    throw new Refused({ code: status.UNAVAILABLE, reason: 'STORE_UNAVAILABLE', retryAfterMs: calls > 8 ? 60_000 : 0 });
  };
  await expect(client.get('t1')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE', retryable: true });
  expect(calls).toBe(8);
  // The hint lies beyond the deadline: it is not waited for.
  await expect(client.get('t1')).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE', retryAfterMs: 60_000 });
  expect(calls).toBe(9);
});

test('an aborted call throws the reason of its signal', async () => {
  const stop = new AbortController();
  server.unary.get = () => {
    stop.abort(new Error('no longer wanted'));
    return new Promise(() => undefined);
  };
  await expect(client.get('t1', { signal: stop.signal })).rejects.toThrow('no longer wanted');
});

test('cancel says what it was given and nothing more', async () => {
  server.unary.cancel = async (request) => {
    expect(request).toMatchObject({
      taskId: 't1',
      requestId: 'r1',
      generationId: 'g',
      reason: { code: 'app.shop.closed', summary: '' },
      actor: { type: 3, id: 'ann' },
      waitFor: ReceiptKind.SETTLED,
    });
    expect(request.grace).toBeUndefined();
    return {
      state: CancelState.ALREADY_TERMINAL,
      replayed: true,
      receipts: { settledTime: { seconds: 3n, nanos: 0 } },
    };
  };
  const answer = await client.cancel('t1', {
    requestId: 'r1',
    generationId: 'g',
    reason: { code: 'app.shop.closed' },
    actor: { type: 'operator', id: 'ann' },
    waitFor: 'settled',
  });
  expect(answer).toMatchObject({ state: 'already_terminal', replayed: true, settledTime: new Date(3_000) });
});

test('a transition carries its intent and guards; a guard that does not hold is an answer', async () => {
  server.unary.transition = async (request) => {
    expect(request).toMatchObject({
      taskId: 't1',
      expectedRevision: 4n,
      fromStatus: TaskStatus.RUNNING,
      lease: { epoch: 9n, leaseToken: 'secret' },
      intent: { case: 'settleFailure', value: { error: { code: 'boom', retryable: false, detailsJson: '{"a":1}' } } },
    });
    const refusal = { reason: ErrorReason.LEASE_REQUIRED, grpcCode: status.FAILED_PRECONDITION };
    return {
      conflict: Conflict.REVISION,
      currentStatus: TaskStatus.QUEUED,
      allowed: [{ intent: IntentKind.SETTLE_COMPLETION, refusal }],
    };
  };
  const answer = await client.transition(
    't1',
    { type: 'settle_failure', code: 'boom', retryable: false, details: { a: 1 } },
    { expectedRevision: 4, fromStatus: 'running', lease: { epoch: 9, token: 'secret' } },
  );
  expect(answer).toMatchObject({ applied: false, conflict: 'revision', currentStatus: 'queued' });
  expect(answer.allowed[0]).toMatchObject({ intent: 'settle_completion', refusal: { reason: 'LEASE_REQUIRED' } });
});

test('resume carries its input as text', async () => {
  server.unary.resume = async ({ inputJson, idempotencyKey }) => {
    expect(inputJson).toBe('{"turn":2}');
    expect(idempotencyKey).not.toBe('');
    return { applied: true, conflict: Conflict.NONE, task: { taskId: 't1', generation: { id: 'g2', number: 2 } } };
  };
  const answer = await client.resume('t1', { input: { turn: 2 } });
  expect(answer).toMatchObject({ applied: true, conflict: undefined, task: { generation: { number: 2 } } });
});

test('lists read page after page, and only as far as they are read', async () => {
  const tokens: string[] = [];
  server.unary.list = async ({ pageToken, filter }) => {
    expect(filter).toMatchObject({ statuses: [TaskStatus.QUEUED], labels: { team: 'a' } });
    tokens.push(pageToken);
    return { tasks: [{ taskId: `t${tokens.length}` }], nextPageToken: tokens.length < 9 ? `p${tokens.length}` : '' };
  };
  const ids: string[] = [];
  for await (const { id } of client.list({ statuses: ['queued'], labels: { team: 'a' } })) {
    ids.push(id);
    if (ids.length === 3) break;
  }
  expect(ids).toEqual(['t1', 't2', 't3']);
  expect(tokens).toEqual(['', 'p1', 'p2']);
});

test('a history pages by the number of its last event', async () => {
  server.unary.listEvents = async ({ afterEventNumber }) => ({
    events: [1n, 2n].map((step) => ({
      eventNumber: afterEventNumber + step,
      payloadJson: '{"x":1}',
      type: 'task.output',
    })),
    hasMore: afterEventNumber < 4n,
  });
  const events = [];
  for await (const event of client.events('t1')) events.push([event.eventNumber, event.payload]);
  expect(events.map(([number]) => number)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(events[0]?.[1]).toEqual({ x: 1 });
});

test('a batch gives a verdict per item', async () => {
  server.unary.submitBatch = async ({ submissions }) => ({
    verdicts: submissions.map(({ idempotencyKey }, index) =>
      index === 0
        ? { idempotencyKey, verdict: { case: 'accepted', value: { task: { taskId: 't' }, outcome: 1 } } }
        : { idempotencyKey, verdict: { case: 'refused', value: { reason: ErrorReason.MALFORMED, grpcCode: 3 } } },
    ),
  });
  const [good, bad] = await client.submitBatch([
    { kind: 'agent', key: 'a' },
    { kind: '', key: 'b' },
  ]);
  expect(good).toMatchObject({ key: 'a', accepted: { created: true }, refused: undefined });
  expect(bad).toMatchObject({ key: 'b', accepted: undefined, refused: { reason: 'MALFORMED' } });
});

test('a batch of cancels gives a verdict per task, and its request id for the next page', async () => {
  server.unary.cancelBatch = async ({ taskIds, filter, requestId, pageToken }) => {
    if (filter !== undefined) {
      expect(filter).toMatchObject({ queue: 'q', statuses: [TaskStatus.RUNNING] });
      return { nextPageToken: pageToken === '' ? `after ${requestId}` : '' };
    }
    return {
      verdicts: taskIds.map((taskId) =>
        taskId === 't1'
          ? { taskId, verdict: { case: 'accepted', value: { state: CancelState.CANCELLED } } }
          : { taskId, verdict: { case: 'refused', value: { reason: ErrorReason.TASK_NOT_FOUND, grpcCode: 5 } } },
      ),
    };
  };
  const { verdicts, nextPageToken } = await client.cancelBatch(['t1', 't2']);
  expect(verdicts).toMatchObject([
    { taskId: 't1', accepted: { state: 'cancelled' }, refused: undefined },
    { taskId: 't2', accepted: undefined, refused: { reason: 'TASK_NOT_FOUND' } },
  ]);
  expect(nextPageToken).toBeUndefined();
  const scope = { queue: 'q', statuses: ['running'] } as const;
  const page = await client.cancelBatch(scope);
  expect(page.nextPageToken).toBe(`after ${page.requestId}`);
  const { requestId, nextPageToken: pageToken = '' } = page;
  expect(await client.cancelBatch(scope, { requestId, pageToken })).toMatchObject({ nextPageToken: undefined });
});

test('workers read page after page, and drain by name or by session', async () => {
  server.unary.listWorkers = async ({ pageToken, queue }) => ({
    workers: [
      { workerName: `w${pageToken}`, state: 1, slots: 2, queues: [queue], ttl: { seconds: 30n }, attachment: 3n },
    ],
    nextPageToken: pageToken === '' ? '2' : '',
  });
  const names: string[] = [];
  for await (const worker of client.listWorkers({ queue: 'q' })) {
    expect(worker).toMatchObject({ state: 'live', slots: 2, queues: ['q'], ttlMs: 30_000, attachment: 3 });
    names.push(worker.workerName);
  }
  expect(names).toEqual(['w', 'w2']);
  server.unary.drainWorker = async ({ sessionAlias, workerName, idempotencyKey, reason }) => {
    expect(idempotencyKey).not.toBe('');
    expect(reason).toMatchObject({ code: 'app.sdk.drain', summary: 'maintenance' });
    return { workers: [{ sessionAlias, workerName, state: 2 }], replayed: true };
  };
  expect(await client.drainWorker({ sessionAlias: 'a' }, { reason: 'maintenance' })).toMatchObject({
    workers: [{ sessionAlias: 'a', workerName: '', state: 'draining' }],
    replayed: true,
  });
});

test('a change of policy names what it changes: what is given, and what returns to its default', async () => {
  server.unary.updatePolicy = async ({ taskId, policy, updateMask, expectedRevision, idempotencyKey }) => {
    expect(taskId).toBe('t1');
    expect(idempotencyKey).not.toBe('');
    expect(expectedRevision).toBe(4n);
    expect(updateMask?.paths).toEqual(['priority', 'timeout', 'labels']);
    expect(policy).toMatchObject({ priority: 0, labels: { team: 'a' } });
    expect(policy?.timeout).toBeUndefined();
    return { applied: true, conflict: Conflict.NONE, transitionId: 't1~r5' };
  };
  const applied = await client.updatePolicy(
    't1',
    { priority: 0, timeoutMs: null, labels: { team: 'a' } },
    { expectedRevision: 4 },
  );
  expect(applied).toMatchObject({ applied: true, conflict: undefined, transitionId: 't1~r5' });
});

test('the generated clients are at hand', async () => {
  server.unary.explain = async ({ taskId }) => ({ task: { taskId } });
  expect((await client.raw.tasks.explain({ taskId: 't1' })).task?.taskId).toBe('t1');
});
