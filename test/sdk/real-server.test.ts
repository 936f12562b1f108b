// The SDK against the server it is for: what the scripted one takes on trust is shown here.

import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, type ReeveClient, TaskCancelled, TaskFailed, type TaskEvent } from '../../src/sdk/client.js';
import { type Claim, createWorker, NonRetryable, Suspend, type TaskWorker } from '../../src/sdk/worker.js';
import { type Fixture, startFixture } from '../server/server-fixture.js';
import { Incoming } from './incoming.js';

let fixture: Fixture;
let client: ReeveClient;
let worker: TaskWorker | undefined;

beforeEach(async () => {
  fixture = await startFixture();
  client = connect(fixture.server.address);
  worker = undefined;
});

afterEach(async () => {
  await worker?.stop();
  await client.close();
  await fixture.close();
});

async function collect(events: AsyncIterable<TaskEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

/** What a page costs. */
async function crawl(page: string, signal: AbortSignal): Promise<string> {
  await delay(1, undefined, { signal });
  return `text of ${page}`;
}

test('the sample of the contract: submit, watch, result; run ends after a drained signal', async () => {
  worker = createWorker<{ agent: { pages: string[] } }>({
    address: fixture.server.address,
    slots: 10,
    signals: ['SIGUSR2'],
    handlers: {
      agent: async (claim, { signal, progress, output, checkpoint }) => {
        for (const [i, page] of claim.args.pages.entries()) {
          signal.throwIfAborted();
          await output({ page, text: await crawl(page, signal) });
          await progress((i + 1) / claim.args.pages.length, page);
          await checkpoint({ next: i + 1 });
        }
        return { pages: claim.args.pages.length };
      },
    },
  });
  const ran = worker.run();
  await worker.start();
  const { task, created } = await client.submit({ kind: 'agent', key: 'order-17', args: { pages: ['a', 'b'] } });
  expect(created).toBe(true);
  const watched = collect(client.watch(task.id));
  const done = await client.result(task.id);
  expect(done).toMatchObject({ status: 'completed', result: { pages: 2 }, attempt: 1, key: 'order-17' });
  const types = await watched;
  expect(types).toEqual([
    'task.submitted',
    'reeve.task.claimed',
    'task.accepted',
    'task.started',
    'task.output',
    'task.progress',
    'reeve.task.checkpoint',
    'task.output',
    'task.progress',
    'reeve.task.checkpoint',
    'task.completed',
  ]);
  expect(await collect(client.events(task.id, { pageSize: 3 }))).toEqual(types);
  expect((await client.getByKey('order-17')).id).toBe(task.id);
  const replay = await client.submit({ kind: 'agent', key: 'order-17', args: { pages: ['a', 'b'] } });
  expect(replay).toMatchObject({ created: false, task: { id: task.id } });
  await expect(client.submit({ kind: 'agent', key: 'order-17', args: {} })).rejects.toMatchObject({
    reason: 'IDEMPOTENCY_CONFLICT',
    metadata: { task_id: task.id },
  });
  process.kill(process.pid, 'SIGUSR2');
  await ran;
});

test('a cancel reaches the handler, with receipts, and result throws', async () => {
  const begun = new Incoming<Claim>();
  worker = createWorker({
    address: fixture.server.address,
    handlers: {
      agent: (claim, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
          begun.push(claim);
        }),
    },
  });
  await worker.start();
  const { task } = await client.submit({ kind: 'agent', key: 'c' });
  const result = client.result(task.id).catch((error: unknown) => error);
  await begun.next();
  const answer = await client.cancel(task.id, { reason: 'enough', waitFor: 'settled' });
  expect(answer).toMatchObject({ state: 'cancellation_requested', task: { status: 'cancelled' } });
  expect(answer.deliveredTime).toBeInstanceOf(Date);
  expect(answer.acknowledgedTime).toBeInstanceOf(Date);
  expect(answer.task?.cancellation).toMatchObject({ ownerStopped: 'confirmed' });
  expect(await result).toBeInstanceOf(TaskCancelled);
});

test('suspend, resume with input, retry and failure', async () => {
  worker = createWorker({
    address: fixture.server.address,
    handlers: {
      agent: (claim) => {
        if (claim.resumeInput === undefined) throw new Suspend('approval');
        if (claim.attempt === 1) throw new Error('the first attempt fails');
        throw new NonRetryable('refused', { code: 'not_approved', details: claim.resumeInput });
      },
    },
  });
  await worker.start();
  const { task } = await client.submit({ kind: 'agent', key: 's', retry: { initialMs: 1 } });
  for await (const { type } of client.watch(task.id)) if (type === 'reeve.task.suspended') break;
  expect(await client.resume(task.id, { input: { approved: false } })).toMatchObject({ applied: true });
  const failed = await client.result(task.id).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(TaskFailed);
  expect(failed).toMatchObject({
    error: { code: 'not_approved', details: { approved: false }, retryable: false },
    task: { attempt: 2 },
  });
});

test('thousands through the stream, each done once', async () => {
  const seen = new Map<string, number>();
  worker = createWorker({
    address: fixture.server.address,
    slots: 256,
    handlers: { agent: (claim) => void seen.set(claim.taskId, (seen.get(claim.taskId) ?? 0) + 1) },
  });
  await worker.start();
  const ids: string[] = [];
  const submissions = Array.from({ length: 3_000 }, (_, index) => ({ kind: 'agent', key: `k${index}` }));
  for await (const { accepted } of client.submitAll(submissions)) ids.push(accepted?.task.id ?? '');
  await client.submit({ kind: 'agent', key: 'last', priority: -100 });
  for (const id of ids.slice(-20)) await client.result(id);
  expect(new Set(ids).size).toBe(3_000);
  const open = client.list({ statuses: ['queued', 'running', 'retry_wait'] });
  for await (const { id } of open) await client.result(id);
  expect(seen.size).toBe(3_001);
  expect([...seen.values()].every((times) => times === 1)).toBe(true);
});

test('a drained worker hands back what it cannot finish, and another goes on from the checkpoint', async () => {
  const begun = new Incoming<Claim>();
  const first = createWorker({
    address: fixture.server.address,
    handlers: {
      agent: async (claim, { signal, checkpoint, committed }) => {
        await checkpoint({ page: 7 });
        await committed();
        begun.push(claim);
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    },
  });
  await first.start();
  const { task } = await client.submit({ kind: 'agent', key: 'd' });
  await begun.next();
  await first.drain({ graceMs: 0 });
  worker = createWorker({
    address: fixture.server.address,
    handlers: { agent: ({ checkpoint, epoch, attempt }) => ({ checkpoint, epoch, attempt }) },
  });
  await worker.start();
  expect((await client.result(task.id)).result).toEqual({ checkpoint: { page: 7 }, epoch: 2, attempt: 1 });
});

test('a result that waits for a child nobody does goes back to the queue with the drain, and costs no attempt', async () => {
  const refused = new Incoming<string>();
  const parent = {
    address: fixture.server.address,
    handlers: {
      agent: async (claim: Claim) => {
        const { taskId, generationId, attempt } = claim;
        await client.submit({ kind: 'flow', key: 'child', parent: { taskId, generationId, attachment: 'attached' } });
        return { attempt };
      },
    },
  };
  const first = createWorker({
    ...parent,
    onNotice: (notice) => {
      if (notice.type === 'event_refused') refused.push(notice.error.reason);
    },
  });
  await first.start();
  const { task } = await client.submit({ kind: 'agent', key: 'parent' });
  expect(await refused.next()).toBe('CHILDREN_ACTIVE');
  await first.drain({ graceMs: 10 });
  expect(await client.get(task.id)).toMatchObject({ status: 'queued', attempt: 0 });
  worker = createWorker({ ...parent, handlers: { ...parent.handlers, flow: () => 'done' } });
  await worker.start();
  expect((await client.result(task.id)).result).toEqual({ attempt: 1 });
});

test('a worker without a stream: claim, report, a pending cancel, and words that come too late', async () => {
  const { task } = await client.submit({ kind: 'agent', key: 'by-hand', args: {} });
  const { lease } = await client.transition(task.id, { type: 'claim', workerName: 'by-hand', ttlMs: 60_000 });
  if (lease === undefined) throw new Error('a claim without its lease');
  const claim = { taskId: task.id, generation: lease.generation.number, epoch: lease.epoch, token: lease.token };
  const first = await client.report(claim, {
    events: [
      { seq: 1, type: 'accepted' },
      { seq: 2, type: 'started' },
      { seq: 3, type: 'output', output: { page: 1 } },
      { seq: 4, type: 'checkpoint', checkpoint: { next: 2 } },
      { seq: 5, type: 'accepted' },
    ],
  });
  expect(first).toMatchObject({ judgedThrough: 5, ttlMs: 60_000, cancel: undefined });
  expect(first.rejected).toMatchObject([{ seq: 5, error: { reason: 'ILLEGAL_EVENT' } }]);
  await client.cancel(task.id, { reason: 'enough' });
  const { cancel } = await client.report(claim);
  expect(cancel).toMatchObject({ reason: { summary: 'enough' }, graceMs: undefined });
  const receipts = [{ cancellationToken: cancel?.cancellationToken ?? '', kind: 'acknowledged' }] as const;
  const events = [{ seq: 6, type: 'cancelled' }] as const;
  expect(await client.report(claim, { receipts, events, answeredThrough: 5 })).toMatchObject({
    judgedThrough: 6,
    rejected: [],
    expireTime: undefined,
  });
  const late = client.report(claim, { events: [{ seq: 7, type: 'completed' }], answeredThrough: 6 });
  await expect(late).rejects.toMatchObject({ reason: 'LEASE_LOST' });
  expect(await client.get(task.id)).toMatchObject({ status: 'cancelled' });
});
