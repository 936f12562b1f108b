// A handler that stops its whole loop, in a process of its own, against a real server on SQLite: what becomes of its
// lease. Sessions live two seconds, and every block is longer than that.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ServerProcess } from '../chaos/server-process.js';
import { connect, type ReeveClient, type TaskEvent, type WorkerSession } from '../../src/sdk/client.js';
import { WorkerProcess } from './worker-process.js';

const TTL_MS = 2_000;
/** Three times the TTL, and longer than a claim may go unaccepted. */
const BLOCK_MS = 6_500;

let folder: string;
let server: ServerProcess;
let client: ReeveClient;
let workers: WorkerProcess[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-renewal-'));
  server = new ServerProcess(join(folder, 'reeve.db'));
  await server.start();
  client = connect(server.address);
  workers = [];
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop('SIGKILL')));
  await client.close();
  await server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

type Options = ConstructorParameters<typeof WorkerProcess>[2];

async function worker(name: string, options: Options = {}): Promise<WorkerProcess> {
  const started = new WorkerProcess(server.address, name, { ttlMs: TTL_MS, ...options });
  workers.push(started);
  await started.next('attached');
  return started;
}

/** Begun by `a`, which then says nothing for so long; `b` is there for whatever `a` loses. */
async function blocked(blockMs: number, options: Options = {}) {
  const a = await worker('a', options);
  const { task } = await client.submit({ kind: 'agent', key: 'k', args: { blockMs: { a: blockMs } } });
  await a.next('began');
  return { a, b: await worker('b'), taskId: task.id };
}

/** What the server knows of the worker, once it is so: its answers are what is waited for. */
async function seen(name: string, fits: (session: WorkerSession) => boolean): Promise<WorkerSession> {
  for (;;) for await (const session of client.listWorkers({ workerName: name })) if (fits(session)) return session;
}

async function eventsOf(taskId: string): Promise<{ types: string[]; at: (type: string) => number }> {
  const events: TaskEvent[] = [];
  for await (const event of client.events(taskId)) events.push(event);
  const at = (type: string) => events.find((event) => event.type === type)?.time?.getTime() ?? Number.NaN;
  return { types: events.map(({ type }) => type), at };
}

test('renewed in a thread, it keeps its lease, and what it says meanwhile is heard', { timeout: 40_000 }, async () => {
  const { a, b, taskId } = await blocked(BLOCK_MS);
  expect(await client.result(taskId)).toMatchObject({ result: { by: 'a' }, attempt: 1 });
  expect(b.said('began')).toEqual([]);
  expect(a.said('began')).toHaveLength(1);
  expect((await a.next('stalled')).silentMs).toBeGreaterThan(BLOCK_MS - 1_000);
  const { types, at } = await eventsOf(taskId);
  expect(types).toEqual([
    'task.submitted',
    'reeve.task.claimed',
    'task.accepted',
    'task.started',
    'task.progress',
    'task.progress',
    'task.completed',
  ]);
  expect(at('task.completed') - at('task.accepted')).toBeGreaterThan(BLOCK_MS - 2_000);
  expect(at('task.completed') - at('task.progress')).toBeGreaterThan(BLOCK_MS - 2_000);
});

test(
  'renewed on the main loop, it loses its lease cleanly, and another does the task',
  { timeout: 40_000 },
  async () => {
    const { a, b, taskId } = await blocked(BLOCK_MS, { renewal: 'main' });
    expect(await client.result(taskId)).toMatchObject({ result: { by: 'b' } });
    expect(await b.next('began')).toMatchObject({ taskId, epoch: 2 });
    expect(await a.next('refused')).toMatchObject({ error: 'LeaseLost' });
    const { types } = await eventsOf(taskId);
    expect(types.filter((type) => type === 'task.completed')).toHaveLength(1);
  },
);

test('wedged beyond the limit it is renewed no more', { timeout: 40_000 }, async () => {
  const { a, b, taskId } = await blocked(BLOCK_MS + 2_000, { wedgedAfterMs: 1_000 });
  expect(await b.next('began')).toMatchObject({ taskId, epoch: 2, attempt: 2 });
  expect(await client.result(taskId)).toMatchObject({ result: { by: 'b' } });
  expect(await a.next('session_lost')).toBeDefined();
  expect(await a.next('refused')).toMatchObject({ error: 'LeaseLost', why: 'session_expired' });
  // It is a worker again.
  await a.next('attached');
});

test('while blocked it attracts no claims, and none is burnt', { timeout: 40_000 }, async () => {
  const a = await worker('a', { slots: 4 });
  await client.submit({ kind: 'agent', key: 'k', args: { blockMs: { a: BLOCK_MS } } });
  await a.next('began');
  await seen('a', ({ slots }) => slots === 0);
  const waiting = await Promise.all(['x', 'y', 'z'].map((key) => client.submit({ kind: 'agent', key })));
  await a.next('stalled');
  for (const { task } of waiting) {
    expect(await client.result(task.id)).toMatchObject({ attempt: 1 });
    expect((await eventsOf(task.id)).types.filter((type) => type === 'reeve.task.claimed')).toHaveLength(1);
  }
  expect((await seen('a', ({ slots }) => slots === 4)).held).toBeLessThan(4);
});

test('a cut while it is blocked costs nothing: the thread attaches for it', { timeout: 60_000 }, async () => {
  const { a, b, taskId } = await blocked(BLOCK_MS + 2_000);
  await server.kill('SIGKILL');
  await server.start();
  // Attached by the thread, with nothing asked for; the worker itself says nothing yet.
  const { attachment } = await seen('a', ({ attached, slots }) => attached && slots === 0);
  expect(a.said('detached')).toEqual([]);
  expect(await client.result(taskId)).toMatchObject({ result: { by: 'a' }, attempt: 1 });
  expect(b.said('began')).toEqual([]);
  await a.next('attached');
  expect((await seen('a', ({ slots }) => slots > 0)).attachment).toBeGreaterThan(attachment);
});
