// The service over its embedded store: the whole way of a task, and what a restart on the same file keeps.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { SessionState } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { SubmitOutcome } from '../../src/gen/reeve/v1/task_service_pb.js';
import { loadConfig } from '../../src/server/load-config.js';
import { type RunningServer, startServer } from '../../src/server/start-server.js';
import { Worker, accepted, completed, started, submitted } from './lifecycle-driver.js';
import { ReeveClient, refusal, tasks, workers } from './reeve-client.js';
import { freshKey } from './server-fixture.js';

let folder: string;
let server: RunningServer;
let client: ReeveClient;

async function start(): Promise<void> {
  const store = `sqlite:${join(folder, 'reeve.db')}`;
  server = await startServer({ ...loadConfig({ env: {} }), listen: '127.0.0.1:0', store, logLevel: 'silent' });
  client = new ReeveClient(server.address);
}

async function stop(): Promise<void> {
  client.close();
  await server.stop(0);
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-server-'));
  await start();
});
afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

it('carries a task from its submission to its result, watched from beginning to end', async () => {
  const worker = await Worker.start(client);
  const argsForm = { case: 'argsJson' as const, value: '{"page":1}' };
  const { taskId } = await submitted(client, { queue: worker.queue, argsForm });
  const watch = client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId } });
  const claim = await worker.claim();
  expect(claim).toMatchObject({ taskId, argsJson: '{"page":1}' });
  expect(await worker.say(claim, [accepted, started, completed])).toMatchObject({ judgedThrough: 3n, rejected: [] });
  expect(await watch.ended).toBeNull();
  expect(watch.messages.filter(({ item }) => item.case === 'event')).toHaveLength(5);
  const { task } = await client.unary(tasks.get, { taskId, view: TaskView.FULL });
  expect(task).toMatchObject({ status: TaskStatus.COMPLETED, resultJson: '{"ok":true}' });
  worker.stop();
});

it('keeps keys, answers, cursors and sessions over a restart', async () => {
  const idempotencyKey = freshKey();
  const queue = freshKey('queue');
  const request = { idempotencyKey, queue };
  const { taskId } = await submitted(client, request);
  const cancelled = await submitted(client);
  const cancel = { taskId: cancelled.taskId, requestId: freshKey('cancel') };
  const first = await client.unary(tasks.cancel, cancel);
  const hello = { workerName: 'w', actionKinds: ['*'], slots: 1, queues: [queue] };
  const stream = client.bidi(workers.work);
  stream.send({ frameId: 1n, frame: { case: 'hello', value: hello } });
  const welcome = (await stream.next())?.frame;
  if (welcome?.case !== 'welcome') throw new Error('no welcome');
  await stream.next();
  const watch = client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId } });
  const cursor = (await watch.next())?.cursor ?? '';
  await stop();
  await start();
  const again = await client.unary(tasks.submit, { ...request, actionKind: 'agent', executionTarget: 1 });
  expect(again).toMatchObject({ outcome: SubmitOutcome.REPLAYED, task: { taskId, status: TaskStatus.RUNNING } });
  const replayed = await client.unary(tasks.cancel, cancel);
  expect(replayed).toMatchObject({ replayed: true, state: first.state, transitionId: first.transitionId });
  const { sessionId, sessionSecret } = welcome.value;
  const held = [{ taskId, epoch: 1n, answeredThrough: 0n }];
  const back = client.bidi(workers.work);
  back.send({
    frameId: 1n,
    frame: { case: 'hello', value: { ...hello, reattach: { sessionId, sessionSecret, held } } },
  });
  expect((await back.next())?.frame).toMatchObject({ case: 'welcome', value: { leasesKept: [{ taskId }] } });
  const events = [accepted, started, completed].map((event, index) => ({
    taskId,
    generation: 1,
    epoch: 1n,
    eventSeq: BigInt(index + 1),
    event,
  }));
  back.send({ frameId: 2n, frame: { case: 'events', value: { events } } });
  expect((await back.next())?.frame).toMatchObject({ case: 'verdicts', value: { verdicts: [{ judgedThrough: 3n }] } });
  const rest = client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId }, cursor });
  expect(await rest.ended).toBeNull();
  expect(rest.messages).toHaveLength(4);
  back.half();
});

it('judges a drain with its key again as before a restart, and what drains goes on draining', async () => {
  const workerName = freshKey('w');
  const queue = freshKey('queue');
  const hello = { workerName, actionKinds: ['*'], slots: 1, queues: [queue] };
  const open = async (more: object = {}) => {
    const stream = client.bidi(workers.work);
    stream.send({ frameId: 1n, frame: { case: 'hello', value: { ...hello, ...more } } });
    const frame = (await stream.next())?.frame;
    if (frame?.case !== 'welcome') throw new Error('no welcome');
    return { stream, welcome: frame.value };
  };
  const { welcome } = await open();
  const request = { workerName, idempotencyKey: freshKey('drain'), reason: { code: 'app.test.drain' } };
  const first = await client.unary(workers.drainWorker, request);
  expect(first).toMatchObject({ replayed: false, workers: [{ state: SessionState.DRAINING }] });
  await stop();
  await start();
  const fresh = await open();
  const again = await client.unary(workers.drainWorker, request);
  const alias = welcome.sessionAlias;
  expect(again).toMatchObject({ replayed: true, workers: [{ sessionAlias: alias, state: SessionState.DRAINING }] });
  expect(again.workers).toHaveLength(1);
  const other = await refusal(client.unary(workers.drainWorker, { ...request, workerName: 'other' }));
  expect(other).toMatchObject({ code: 6, reason: 'IDEMPOTENCY_CONFLICT' });
  const { sessionId, sessionSecret } = welcome;
  const back = await open({ reattach: { sessionId, sessionSecret, held: [] } });
  const { taskId } = await submitted(client, { queue });
  expect(await fresh.stream.next()).toMatchObject({
    frame: { case: 'claims', value: { claims: [{ taskId }] } },
  });
  const next = await submitted(client, { queue });
  const shown = (await client.unary(workers.listWorkers, { workerName })).workers;
  expect(shown.find(({ sessionAlias }) => sessionAlias === alias)).toMatchObject({
    state: SessionState.DRAINING,
    attached: true,
    attachment: 2n,
    held: 0,
  });
  expect((await client.unary(tasks.get, { taskId: next.taskId })).task?.status).toBe(TaskStatus.QUEUED);
  fresh.stream.half();
  back.stream.half();
});

it('knows no cursor of another store', async () => {
  const filter = { namespace: 'default' };
  await submitted(client);
  await submitted(client);
  const { nextPageToken: pageToken } = await client.unary(tasks.list, { filter, pageSize: 1 });
  expect(pageToken).not.toBe('');
  await stop();
  rmSync(folder, { recursive: true });
  folder = mkdtempSync(join(tmpdir(), 'reeve-server-'));
  await start();
  const refused = await refusal(client.unary(tasks.list, { filter, pageSize: 1, pageToken }));
  expect(refused).toMatchObject({ reason: 'CURSOR_INVALID' });
});
