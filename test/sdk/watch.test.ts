import { status } from '@grpc/grpc-js';
import { setMaxListeners } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import {
  connect,
  type ReeveClient,
  TaskCancelled,
  TaskFailed,
  TaskPurged,
  TaskSkipped,
  TaskTimedOut,
  type WatchedEvent,
} from '../../src/sdk/client.js';
import { FakeServer } from './fake-server.js';

let server: FakeServer;
let client: ReeveClient;

beforeEach(async () => {
  server = await FakeServer.start();
  client = connect(server.address);
});

afterEach(async () => {
  await client.close();
  await server.stop();
});

function event(number: number, type = 'task.progress', toStatus = TaskStatus.UNSPECIFIED) {
  const fact = toStatus === TaskStatus.UNSPECIFIED ? {} : { fromStatus: TaskStatus.RUNNING, toStatus };
  const value = { eventNumber: BigInt(number), sequence: BigInt(number * 10), type, taskId: 't1', ...fact };
  return { cursor: `c${number}`, item: { case: 'event' as const, value } };
}

const bookmark = (cursor: string) => ({ cursor, item: { case: 'bookmark' as const, value: {} } });

function collect(events: AsyncIterable<WatchedEvent>, into: number[]): Promise<void> {
  return (async () => {
    for await (const { eventNumber } of events) into.push(eventNumber);
  })();
}

test('a broken watch goes on from its last cursor, tells nothing twice, and ends with the task', async () => {
  const numbers: number[] = [];
  const done = collect(client.watch('t1', { aepOnly: true }), numbers);
  const first = await server.watches.next();
  expect(first.request).toMatchObject({ scope: { case: 'taskId', value: 't1' }, cursor: '', aepOnly: true });
  first.send(event(1));
  first.send(event(2));
  first.send(bookmark('b2'));
  first.fail({ code: status.UNAVAILABLE, reason: 'DRAINING', retryAfterMs: 1 });
  const second = await server.watches.next();
  expect(second.request.cursor).toBe('b2');
  second.send(event(2));
  second.send(event(3));
  second.fail({ code: status.RESOURCE_EXHAUSTED, reason: 'SLOW_READER', metadata: { cursor: 'c3' }, retryAfterMs: 1 });
  const third = await server.watches.next();
  expect(third.request.cursor).toBe('c3');
  third.send(event(4, 'task.completed', TaskStatus.COMPLETED));
  third.end();
  await done;
  expect(numbers).toEqual([1, 2, 3, 4]);
});

test('a cut connection is no end', async () => {
  const watch = client.watch('t1');
  const told = watch.next();
  const first = await server.watches.next();
  first.send(event(1));
  expect((await told).value).toMatchObject({ eventNumber: 1, cursor: 'c1' });
  server.cut();
  const end = watch.next();
  const second = await server.watches.next();
  expect(second.request.cursor).toBe('c1');
  second.end();
  expect((await end).done).toBe(true);
});

test('a server that answers and tells nothing is asked after growing pauses, and not for ever', async () => {
  const done = collect(client.watch({ namespace: 'n' }, { reconnectMs: 400 }), []).catch((error: unknown) => error);
  let streams = 0;
  let over = false;
  void done.then(() => (over = true));
  const serve = async (): Promise<void> => {
    while (!over) {
      const peer = await server.watches.next();
      streams += 1;
      peer.send(bookmark(`b${streams}`));
      peer.fail({ code: status.UNAVAILABLE, reason: 'STORE_UNAVAILABLE' });
    }
  };
  void serve();
  expect(await done).toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  // 50, 100, 200, 400 … ms, of which half is chance.
  expect(streams).toBeLessThanOrEqual(8);
});

test('what is told anew begins the pauses and the patience anew', async () => {
  const numbers: number[] = [];
  const done = collect(client.watch('t1', { reconnectMs: 400 }), numbers);
  for (let number = 1; number <= 12; number += 1) {
    const peer = await server.watches.next();
    peer.send(event(number));
    peer.fail({ code: status.UNAVAILABLE, reason: 'STORE_UNAVAILABLE' });
  }
  const last = await server.watches.next();
  last.send(event(13, 'task.completed', TaskStatus.COMPLETED));
  last.end();
  await done;
  expect(numbers).toHaveLength(13);
});

test('a refusal for good is thrown', async () => {
  const done = collect(client.watch({ namespace: 'n' }, { cursor: 'old' }), []);
  const peer = await server.watches.next();
  expect(peer.request).toMatchObject({ scope: { case: 'namespace', value: 'n' }, cursor: 'old' });
  peer.fail({ code: status.OUT_OF_RANGE, reason: 'CURSOR_EXPIRED', metadata: { earliest_cursor: 'e' } });
  await expect(done).rejects.toMatchObject({ reason: 'CURSOR_EXPIRED', metadata: { earliest_cursor: 'e' } });
});

test('who stops reading cancels the stream', async () => {
  const read = (async () => {
    for await (const _ of client.watch({ queue: 'q' })) break;
  })();
  const peer = await server.watches.next();
  peer.send(event(1));
  await read;
  await peer.cancelled;
});

test('two hundred watches do not keep a call waiting', async () => {
  server.unary.get = async ({ taskId }) => ({ task: { taskId } });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const watches = Array.from({ length: 200 }, (_, index) =>
    collect(client.watch(`t${index}`, { signal: stop.signal }), []).catch((error: unknown) => error),
  );
  for (const _ of watches) await server.watches.next();
  expect((await client.get('t1')).id).toBe('t1');
  stop.abort(new Error('enough'));
  for (const watch of watches) expect(await watch).toMatchObject({ message: 'enough' });
});

test('result waits for the end that comes, also when it came while the watch was being opened', async () => {
  let now = TaskStatus.RUNNING;
  server.unary.get = async ({ taskId }) => ({ task: { taskId, status: now, resultJson: '{"n":1}' } });
  const first = client.result('t1');
  const peer = await server.watches.next();
  expect(peer.request.fromStart).toBe(false);
  peer.send(bookmark('b'));
  now = TaskStatus.COMPLETED;
  peer.send(event(5, 'task.completed', TaskStatus.COMPLETED));
  expect((await first).result).toEqual({ n: 1 });
  now = TaskStatus.RUNNING;
  const second = client.result('t1');
  const late = await server.watches.next();
  now = TaskStatus.COMPLETED;
  late.send(bookmark('b'));
  expect((await second).status).toBe('completed');
  await late.cancelled;
});

test('result throws how it ended', async () => {
  const ends = [
    [TaskStatus.FAILED, TaskFailed],
    [TaskStatus.CANCELLED, TaskCancelled],
    [TaskStatus.TIMED_OUT, TaskTimedOut],
    [TaskStatus.SKIPPED, TaskSkipped],
  ] as const;
  for (const [end, error] of ends) {
    server.unary.get = async ({ taskId }) => ({
      task: { taskId, status: end, error: { code: 'boom', message: 'it broke', detailsJson: '[1]' } },
    });
    const thrown = await client.result('t1').catch((caught: unknown) => caught);
    expect(thrown).toBeInstanceOf(error);
    expect(thrown).toMatchObject({ task: { id: 't1', error: { code: 'boom', details: [1] } } });
  }
});

test('result of what completed and was purged is no result', async () => {
  server.unary.get = async ({ taskId }) => ({ task: { taskId, status: TaskStatus.COMPLETED, purged: true } });
  await expect(client.result('t1')).rejects.toBeInstanceOf(TaskPurged);
});

test('result gives up after its time', async () => {
  server.unary.get = async ({ taskId }) => ({ task: { taskId, status: TaskStatus.RUNNING } });
  await expect(client.result('t1', { timeoutMs: 30 })).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
});
