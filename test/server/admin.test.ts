// Operators over the wire, on a real file: what is damaged is found and refused alone, is mended, and works again.

import Database from 'better-sqlite3';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RepairKind } from '../../src/gen/reeve/v1/admin_service_pb.js';
import { ActorType, TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { connect } from '../../src/sdk/client.js';
import { loadConfig } from '../../src/server/load-config.js';
import { type RunningServer, startServer } from '../../src/server/start-server.js';
import { Worker, accepted, completed, started, submitted } from './lifecycle-driver.js';
import { ReeveClient, admin, refusal, tasks } from './reeve-client.js';
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

/** While nobody runs on the file. */
async function tampered(...statements: readonly string[]): Promise<void> {
  await stop();
  const db = new Database(join(folder, 'reeve.db'));
  for (const statement of statements) {
    if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
  }
  db.close();
  await start();
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-admin-'));
  await start();
});
afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true });
});

const damage = (taskId: string): string => `UPDATE tasks SET record = '1a{oops' WHERE task_id = '${taskId}'`;
const mend = (taskId: string, kind: RepairKind, more: { eventNumber?: bigint; validateOnly?: boolean } = {}) => ({
  taskId,
  kind,
  idempotencyKey: freshKey('repair'),
  reason: 'a disk went bad',
  ...more,
});

async function done(worker: Worker): Promise<string> {
  const { taskId } = await submitted(client, { queue: worker.queue });
  await worker.say(await worker.claim(), [accepted, started, completed]);
  return taskId;
}

describe('Verify', () => {
  it('goes through the store page by page, or through what is named', async () => {
    const worker = await Worker.start(client);
    const ids = [await done(worker), await done(worker), (await submitted(client)).taskId];
    let [all, events, links, pages] = [0n, 0n, 0n, 0];
    for (let pageToken = '', more = true; more;) {
      const page = await client.unary(admin.verify, { pageSize: 2, pageToken });
      expect(page.findings).toEqual([]);
      [all, events, links, pages] = [all + page.tasks, events + page.events, links + page.links, pages + 1];
      pageToken = page.nextPageToken;
      more = pageToken !== '';
    }
    expect([all, events, pages]).toEqual([3n, 11n, 2]);
    expect(links).toBeGreaterThan(3n);
    const named = await client.unary(admin.verify, { taskIds: ids.slice(0, 2), pageSize: 1 });
    expect(named).toMatchObject({ tasks: 1n, events: 5n });
    const other = { taskIds: ids, pageSize: 1, pageToken: named.nextPageToken };
    expect(await refusal(client.unary(admin.verify, other))).toMatchObject({ reason: 'CURSOR_INVALID' });
    worker.stop();
  });

  it.each([
    ['a task that is none', { taskIds: ['nobody'] }, 'TASK_NOT_FOUND'],
    ['an id that is none', { taskIds: ['no~body'] }, 'MALFORMED'],
    ['too many', { taskIds: new Array<string>(1_001).fill('a') }, 'MALFORMED'],
    ['a large page', { pageSize: 1_001 }, 'MALFORMED'],
    ['a negative page', { pageSize: -1 }, 'MALFORMED'],
    ['a foreign token', { pageToken: 'x' }, 'CURSOR_INVALID'],
  ])('refuses %s', async (_what, request, reason) => {
    expect(await refusal(client.unary(admin.verify, request))).toMatchObject({ reason });
  });

  it('goes on to keys and sessions behind the last task, and counts them', async () => {
    const worker = await Worker.start(client);
    const taskId = await done(worker);
    const purge = { idempotencyKey: freshKey('purge'), olderThan: { seconds: 0n, nanos: 0 } };
    expect(await client.unary(admin.purge, purge)).toMatchObject({ purged: 1n });
    await submitted(client);
    const all = { tasks: 1n, tombstones: 1n, keys: 2n, sessions: 1n, findings: [], nextPageToken: '' };
    expect(await client.unary(admin.verify, {})).toMatchObject(all);
    const named = { tasks: 0n, tombstones: 1n, keys: 0n, sessions: 0n, findings: [] };
    expect(await client.unary(admin.verify, { taskIds: [taskId] })).toMatchObject(named);
    worker.stop();
  });

  it('tells what was changed behind its back', async () => {
    const { taskId } = await submitted(client);
    await tampered(`UPDATE history SET events = replace(events, '"rpc"', '"rpx"'), link = zeroblob(32)`);
    const { findings } = await client.unary(admin.verify, {});
    expect(findings).toMatchObject([{ taskId, invariant: 'chain.link', eventNumber: 1n }]);
  });
});

describe('links', () => {
  it('are the same in Watch while it lives, in its replay and in ListEvents', async () => {
    const worker = await Worker.start(client);
    const { taskId } = await submitted(client, { queue: worker.queue });
    const scope = { case: 'taskId', value: taskId } as const;
    const live = client.serverStream(tasks.watch, { scope });
    const claim = await worker.claim();
    await worker.say(claim, [accepted, started]);
    await worker.say(claim, [completed], 3);
    expect(await live.ended).toBeNull();
    const replay = client.serverStream(tasks.watch, { scope });
    expect(await replay.ended).toBeNull();
    const linksOf = (stream: typeof live) =>
      stream.messages.flatMap(({ item }) =>
        item.case === 'event' ? [Buffer.from(item.value.link).toString('hex')] : [],
      );
    const { events } = await client.unary(tasks.listEvents, { taskId });
    const listed = events.map(({ link }) => Buffer.from(link).toString('hex'));
    expect(linksOf(live)).toEqual(listed);
    expect(linksOf(replay)).toEqual(listed);
    expect(listed.every((link) => link.length === 64)).toBe(true);
    expect(new Set(listed).size).toBe(4);
    worker.stop();
  });
});

describe('Repair', () => {
  it('mends a damaged task, which was refused alone, and it works again', async () => {
    const bad = await submitted(client);
    const good = await submitted(client);
    await tampered(damage(bad.taskId));
    const cancel = (taskId: string) => client.unary(tasks.cancel, { taskId, requestId: freshKey() });
    expect(await refusal(cancel(bad.taskId))).toMatchObject({ reason: 'RECORD_DAMAGED' });
    await cancel(good.taskId);
    const { findings } = await client.unary(admin.verify, {});
    expect(findings).toMatchObject([{ taskId: bad.taskId, invariant: 'store.record' }]);
    const dry = await client.unary(admin.repair, mend(bad.taskId, RepairKind.REBUILD_RECORD, { validateOnly: true }));
    expect(dry).toMatchObject({ applied: false, findings: [{ invariant: 'store.record' }] });
    expect(dry.task).toBeUndefined();
    const request = mend(bad.taskId, RepairKind.REBUILD_RECORD);
    const answer = await client.unary(admin.repair, request);
    expect(answer).toMatchObject({ applied: true, replayed: false, findings: [{ invariant: 'store.record' }] });
    expect(answer.task).toMatchObject({ taskId: bad.taskId, status: TaskStatus.QUEUED, lastEventNumber: 2n });
    expect(await client.unary(admin.repair, request)).toMatchObject({ applied: true, replayed: true });
    const other = { ...request, reason: 'something else' };
    expect(await refusal(client.unary(admin.repair, other))).toMatchObject({ reason: 'IDEMPOTENCY_CONFLICT' });
    const { events } = await client.unary(tasks.listEvents, { taskId: bad.taskId });
    expect(events.at(-1)).toMatchObject({
      type: 'reeve.task.repaired',
      actor: { type: ActorType.ADMIN, id: 'anonymous' },
      reason: { code: 'run.repaired.operator', summary: 'a disk went bad' },
      revision: 0n,
    });
    expect(JSON.parse(events.at(-1)?.payloadJson ?? '')).toMatchObject({
      repair: 'rebuild_record',
      mended: ['store.record'],
    });
    expect((await client.unary(admin.verify, {})).findings).toEqual([]);
    expect(await cancel(bad.taskId)).toMatchObject({ task: { status: TaskStatus.CANCELLED } });
  });

  it('takes a payload out for every reader', async () => {
    const worker = await Worker.start(client);
    const taskId = await done(worker);
    const { events } = await client.unary(tasks.listEvents, { taskId });
    const eventNumber = events.find(({ type }) => type === 'task.completed')?.eventNumber ?? 0n;
    const answer = await client.unary(admin.repair, mend(taskId, RepairKind.REDACT_PAYLOAD, { eventNumber }));
    expect(answer).toMatchObject({ applied: true, findings: [], task: { status: TaskStatus.COMPLETED } });
    const { task } = await client.unary(tasks.get, { taskId, view: TaskView.FULL });
    expect(task?.resultJson).toBe('{"redacted":true}');
    const after = await client.unary(tasks.listEvents, { taskId });
    expect(after.events.map(({ link }) => link).slice(0, -1)).toEqual(events.map(({ link }) => link));
    expect(JSON.parse(after.events[4]?.payloadJson ?? '')).toMatchObject({ result: { redacted: true } });
    expect(JSON.parse(after.events[5]?.payloadJson ?? '')).toMatchObject({ redacted_event_number: 5 });
    // A watch of a task that is over still ends, after what was said of it since.
    const watch = client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId } });
    expect(await watch.ended).toBeNull();
    expect(watch.messages.filter(({ item }) => item.case === 'event')).toHaveLength(6);
    expect((await client.unary(admin.verify, {})).findings).toEqual([]);
    worker.stop();
  });

  it('answers for a purged task with what is left of it, as Get does', async () => {
    const { taskId } = await submitted(client);
    await client.unary(tasks.cancel, { taskId, requestId: freshKey() });
    await client.unary(admin.purge, { idempotencyKey: freshKey('purge'), olderThan: { seconds: 0n, nanos: 0 } });
    const { task } = await client.unary(tasks.get, { taskId });
    const sound = await client.unary(admin.repair, mend(taskId, RepairKind.REINDEX));
    expect(sound).toMatchObject({ applied: false, findings: [], task: { taskId, purged: true } });
    expect(sound.task).toEqual(task);
    const redact = mend(taskId, RepairKind.REDACT_PAYLOAD, { eventNumber: 1n });
    expect(await refusal(client.unary(admin.repair, redact))).toMatchObject({
      reason: 'TASK_NOT_FOUND',
      metadata: { purged: 'true' },
    });
    await tampered('UPDATE tombstones SET tombstone = 5');
    const given = await client.unary(admin.repair, mend(taskId, RepairKind.ACCEPT_RECORD));
    expect(given).toMatchObject({ applied: true, findings: [{ taskId, invariant: 'purged.tombstone' }] });
    expect(given.task).toBeUndefined();
    expect((await client.unary(admin.verify, {})).findings).toEqual([]);
    expect(await refusal(client.unary(tasks.get, { taskId }))).toMatchObject({ reason: 'RECORD_DAMAGED' });
  });

  it('is of no use where it cannot mend, and says what could', async () => {
    const { taskId } = await submitted(client);
    await tampered(damage(taskId));
    const refused = await refusal(client.unary(admin.repair, mend(taskId, RepairKind.ACCEPT_RECORD)));
    expect(refused).toMatchObject({ reason: 'INVALID_TRANSITION', metadata: { mended_by: 'rebuild_record' } });
  });

  it.each([
    ['a task that is none', { taskId: 'nobody' }, 'TASK_NOT_FOUND'],
    ['no kind', { kind: RepairKind.UNSPECIFIED }, 'MALFORMED'],
    ['no reason', { reason: '' }, 'MALFORMED'],
    ['a long reason', { reason: 'x'.repeat(1_025) }, 'MALFORMED'],
    ['no key', { idempotencyKey: '' }, 'MALFORMED'],
    ['an event where none is meant', { eventNumber: 1n }, 'MALFORMED'],
    ['no event where one is meant', { kind: RepairKind.REDACT_PAYLOAD }, 'MALFORMED'],
  ])('refuses %s', async (_what, wrong, reason) => {
    const { taskId } = await submitted(client);
    const request = { ...mend(taskId, RepairKind.REINDEX), ...wrong };
    expect(await refusal(client.unary(admin.repair, request))).toMatchObject({ reason });
  });

  it('and Verify are in the SDK', async () => {
    const reeve = connect(server.address);
    const { task } = await reeve.submit({ kind: 'agent', key: freshKey() });
    await tampered(damage(task.id), 'UPDATE tasks SET ready_order = NULL');
    await reeve.close();
    const again = connect(server.address);
    const found: string[] = [];
    for await (const { findings } of again.admin.verify()) found.push(...findings.map(({ invariant }) => invariant));
    expect(found).toEqual(['store.record']);
    const repaired = await again.admin.repair(task.id, { kind: 'rebuild_record', reason: 'by hand' });
    expect(repaired).toMatchObject({ applied: true, replayed: false, task: { id: task.id, status: 'queued' } });
    for await (const { findings } of again.admin.verify({ taskIds: [task.id] })) expect(findings).toEqual([]);
    await again.close();
  });
});
