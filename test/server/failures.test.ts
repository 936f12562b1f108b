// What callers are told when something below the service fails: each failure as its own reason, with what to do next,
// and never a word of the inside.

import { afterEach, expect, it } from 'vitest';
import { ExecutionTarget } from '../../src/gen/reeve/v1/task_pb.js';
import { StoreError } from '../../src/store/store-error.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { submitted } from './lifecycle-driver.js';
import { type Refused, refusal, refusedOf, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture | undefined;
afterEach(() => fixture?.close());

/** A store whose next answers can be replaced, method by method. */
function scripted(store: TaskStore, script: Partial<TaskStore>): TaskStore {
  return new Proxy(store, {
    get(target, name: keyof TaskStore) {
      return Reflect.get(name in script ? script : target, name);
    },
  });
}

async function withScript(): Promise<{ fixture: Fixture; script: Partial<TaskStore> }> {
  const script: Partial<TaskStore> = {};
  fixture = await startFixture({}, { wrap: (store) => scripted(store, script), onFatal: () => undefined });
  return { fixture, script };
}

const request = () => ({ idempotencyKey: freshKey(), actionKind: 'agent', executionTarget: ExecutionTarget.HOST });

const SECRET = 'SELECT * FROM tasks at /var/lib/reeve.db on db.internal';

function saysNothingInside(refused: Refused): void {
  expect(JSON.stringify(refused)).not.toMatch(/SELECT|\/var|db\.internal|\.ts:|at Object/);
}

it('STORE_UNAVAILABLE: nothing was committed, and the same key may be used again', async () => {
  const { fixture, script } = await withScript();
  script.commit = () => Promise.reject(new StoreError('unavailable', SECRET));
  const one = request();
  const refused = await refusal(fixture.client.unary(tasks.submit, one));
  expect(refused).toMatchObject({ code: 14, reason: 'STORE_UNAVAILABLE', domain: 'reeve.dev' });
  expect(refused.retryMs).toBeGreaterThan(0);
  saysNothingInside(refused);
  delete script.commit;
  expect(await fixture.client.unary(tasks.submit, one)).toMatchObject({ outcome: 1 });
});

it('STORE_UNAVAILABLE of a read that failed, on unary calls and streams', async () => {
  const { fixture, script } = await withScript();
  script.loadTasks = () => Promise.reject(new StoreError('unavailable', SECRET));
  script.listTasks = () => Promise.reject(new StoreError('unavailable', SECRET));
  expect(await refusal(fixture.client.unary(tasks.get, { taskId: 'any' }))).toMatchObject({
    reason: 'STORE_UNAVAILABLE',
  });
  expect(await refusal(fixture.client.unary(tasks.list, {}))).toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  const watch = fixture.client.serverStream(tasks.watch, { scope: { case: 'taskId', value: 'any' } });
  expect(refusedOf(await watch.ended)).toMatchObject({ code: 14, reason: 'STORE_UNAVAILABLE' });
});

it('OUTCOME_UNKNOWN when the store cannot be used any more, told before the process ends', async () => {
  const { fixture, script } = await withScript();
  script.commit = () => Promise.reject(new StoreError('fatal', SECRET));
  const refused = await refusal(fixture.client.unary(tasks.submit, request()));
  expect(refused).toMatchObject({ code: 14, reason: 'OUTCOME_UNKNOWN' });
  expect(refused.retryMs).toBeGreaterThan(0);
  saysNothingInside(refused);
});

it('RECORD_DAMAGED for one task; the others go on, and a list still shows it', async () => {
  const { fixture, script } = await withScript();
  const { taskId } = await submitted(fixture.client, { namespace: 'damage' });
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey() });
  const damaged = { kind: 'damaged' as const, taskId, order: 1, detail: SECRET };
  script.loadTasks = (ids) => Promise.resolve(ids.map((id) => (id === taskId ? damaged : null)));
  const refused = await refusal(fixture.client.unary(tasks.get, { taskId }));
  expect(refused).toMatchObject({ code: 15, reason: 'RECORD_DAMAGED', metadata: { task_id: taskId } });
  saysNothingInside(refused);
  const cancel = await refusal(fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey() }));
  expect(cancel).toMatchObject({ code: 15, reason: 'RECORD_DAMAGED' });
  await submitted(fixture.client);
  script.listTasks = () => Promise.resolve({ tasks: [damaged], next: null });
  const page = await fixture.client.unary(tasks.list, { filter: { namespace: 'damage' } });
  expect(page.tasks).toMatchObject([{ taskId, status: 0 }]);
});

const DAMAGED = 'what is stored of a task cannot be trusted';

it('RECORD_DAMAGED says why in the log, once and by the name of the task', async () => {
  const script: Partial<TaskStore> = {};
  const lines: unknown[] = [];
  const none = (): void => undefined;
  const error = (line: unknown, message?: string): void => void lines.push([line, message]);
  const log = { debug: none, info: none, warn: none, error, fatal: error };
  fixture = await startFixture({}, { wrap: (store) => scripted(store, script), log: log as never });
  const { taskId } = await submitted(fixture.client);
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey() });
  const other = (await submitted(fixture.client)).taskId;
  const damaged = { kind: 'damaged' as const, taskId, order: 1, detail: 'the record is not JSON' };
  const load = fixture.store.loadTasks.bind(fixture.store);
  script.loadTasks = (ids) => (ids.includes(taskId) ? Promise.resolve(ids.map(() => damaged)) : load(ids));
  script.readHistory = () => Promise.reject(new StoreError('damaged', 'the history is not JSON'));
  for (let time = 0; time < 2; time++) {
    expect(await refusal(fixture.client.unary(tasks.get, { taskId }))).toMatchObject({ reason: 'RECORD_DAMAGED' });
    const listed = await refusal(fixture.client.unary(tasks.listEvents, { taskId: other }));
    expect(listed).toMatchObject({ reason: 'RECORD_DAMAGED' });
  }
  expect(lines).toMatchObject([
    [{ err: { failure: 'damaged', message: `task ${taskId}: the record is not JSON` } }, DAMAGED],
    [{ err: { failure: 'damaged', message: expect.stringContaining(`task ${other}: `) as string } }, DAMAGED],
  ]);
});

it('INTERNAL carries a request id and nothing of the error, which the log has under that id', async () => {
  const script: Partial<TaskStore> = {};
  const lines: object[] = [];
  const log = { debug: note, info: note, warn: note, error: note, fatal: note };
  function note(line: unknown): void {
    if (typeof line === 'object' && line !== null) lines.push(line);
  }
  fixture = await startFixture({}, { wrap: (store) => scripted(store, script), log: log as never });
  const { taskId } = await submitted(fixture.client);
  script.readDiagnostics = () => Promise.reject(new TypeError(SECRET));
  const refused = await refusal(fixture.client.unary(tasks.listEvents, { taskId, includeDiagnostics: true }));
  expect(refused).toMatchObject({ code: 13, reason: 'INTERNAL' });
  expect(Object.keys(refused.metadata)).toEqual(['request_id']);
  saysNothingInside(refused);
  expect(lines).toContainEqual(expect.objectContaining({ request_id: refused.metadata['request_id'] }));
});

it('OVERLOADED when more waits than the service will hold', async () => {
  const { fixture, script } = await withScript();
  let release = (): void => undefined;
  let reached = (): void => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const committing = new Promise<void>((resolve) => (reached = resolve));
  const { store } = fixture;
  const commit = store.commit.bind(store);
  script.commit = async (batch) => {
    reached();
    await gate;
    return commit(batch);
  };
  const held = fixture.client.unary(tasks.submit, request());
  await committing;
  const argsForm = { case: 'argsJson' as const, value: JSON.stringify({ text: 'x'.repeat(1_000_000) }) };
  const answers = Array.from({ length: 90 }, () =>
    fixture.client.unary(tasks.submit, { ...request(), argsForm }).then(
      () => null,
      (error: unknown) => refusedOf(error),
    ),
  );
  const first = await Promise.race(answers);
  expect(first).toMatchObject({ code: 8, reason: 'OVERLOADED', metadata: { resource: 'commits' } });
  expect(first?.retryMs).toBe(250);
  expect(first?.metadata).not.toHaveProperty('retry_after_ms');
  delete script.commit;
  release();
  await Promise.all([held, ...answers]);
});

it('CONTENTION when others keep winning', async () => {
  const { fixture, script } = await withScript();
  const { taskId } = await submitted(fixture.client);
  script.commit = (batch) =>
    Promise.resolve(batch.plans.map(() => ({ kind: 'conflict', subject: 'record', id: taskId })));
  const refused = await refusal(fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey() }));
  expect(refused).toMatchObject({ code: 10, reason: 'CONTENTION' });
  expect(refused.retryMs).toBeGreaterThan(0);
});
