// What is found is looked at again: what has passed by then is not told, what stays is, and a page is never larger than
// it may be.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Finding } from '../../src/audit/findings.js';
import { decodeCursor, encodeCursor } from '../../src/audit/audit-cursor.js';
import { type AuditRequest, Auditor } from '../../src/audit/auditor.js';
import { authorityCause } from '../../src/kernel/cause.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { memoryEngine, sqliteEngine, temporaryFolder } from '../contract/engines.js';
import { endOf, sessionRow } from '../contract/sample-plans.js';
import { causeOf } from '../support/submissions.js';
import { World } from '../support/world.js';

const ALL: AuditRequest = { taskIds: null, cursor: null, limit: 10 };

/** A task that runs under a session that is gone: somebody is about to take its lease. */
async function orphaned(): Promise<{ readonly world: World; readonly auditor: Auditor }> {
  const world = await World.open({ dispatcher: null });
  const expiresAt = world.clock.nowMs() + 60_000;
  await world.authority.writeSession({ kind: 'open', session: sessionRow('s', { expiresAt }) });
  await world.admit('a', { taskId: 'a' });
  const claim = { sessionId: 's', worker: 'w', sessionTtlMs: 60_000, acceptTimeoutMs: 60_000 };
  await world.apply({ taskId: 'a', intent: { kind: 'claim', ...claim, cause: causeOf('worker') } });
  await world.authority.writeSession({ kind: 'end', sessionId: 's', attachment: 1, end: endOf() });
  return { world, auditor: new Auditor(world.authority, () => world.clock.nowMs()) };
}

it('does not tell what somebody saw to between two looks', async () => {
  const { world, auditor } = await orphaned();
  const page = auditor.page(ALL);
  await world.settle();
  // The first look has found it, and so does the second; then its lease is taken.
  await world.clock.advance(100);
  await world.settle();
  const cause = authorityCause('reaper', reason('run.requeued.lease_lost'), 's');
  await world.apply({ taskId: 'a', intent: { kind: 'session_lost', sessionId: 's', cause } });
  await world.clock.advance(1_000);
  expect(await page).toMatchObject({ tasks: 1, findings: [], next: null });
});

it('tells what is still there at the last look', async () => {
  const { world, auditor } = await orphaned();
  let told = false;
  const page = auditor.page(ALL).finally(() => (told = true));
  await world.settle();
  for (const ms of [100, 1_000]) {
    await world.clock.advance(ms);
    await world.settle();
    expect(told).toBe(false);
  }
  await world.clock.advance(3_000);
  expect((await page).findings).toMatchObject([{ taskId: 'a', invariant: 'record.session' }]);
});

it('goes on behind the tasks that it has told of, and names the ids that no task has', async () => {
  const world = await World.open({ dispatcher: null });
  for (const taskId of ['a', 'b', 'c']) await world.admit(taskId, { taskId });
  const auditor = new Auditor(world.authority, () => 0);
  const first = await auditor.page({ ...ALL, limit: 2 });
  expect(first).toMatchObject({ tasks: 2, events: 2, links: 2, findings: [], unknown: [] });
  expect(await auditor.page({ ...ALL, cursor: first.next })).toMatchObject({ tasks: 1, next: null });
  const named = await auditor.page({ taskIds: ['x', 'b', 'y'], cursor: null, limit: 10 });
  expect(named).toMatchObject({ tasks: 1, unknown: ['x', 'y'], next: null });
});

it.each([memoryEngine, sqliteEngine])('counts what it looks at, by way of its cursors ($name)', async (engine) => {
  const store = await engine.open();
  const world = await World.open({ real: store, dispatcher: null });
  for (const taskId of ['a', 'b', 'gone']) await world.admit(taskId, { taskId });
  await world.cancel('gone');
  const { lastEvent: version } = await world.stored('gone');
  await world.authority.upkeep.purge({ taskId: 'gone', version });
  const expiresAt = world.clock.nowMs() + 60_000;
  await world.authority.writeSession({ kind: 'open', session: sessionRow('s', { expiresAt }) });
  const auditor = new Auditor(world.authority, () => 0);
  const first = await auditor.page({ ...ALL, limit: 1 });
  expect(first).toMatchObject({ tasks: 1, tombstones: 0, keys: 0, sessions: 0, findings: [] });
  if (first.next === null) throw new Error('there is more');
  const rest = await auditor.page({ ...ALL, cursor: decodeCursor(encodeCursor(first.next)) });
  expect(rest).toMatchObject({ tasks: 1, tombstones: 1, keys: 3, sessions: 1, findings: [], next: null });
  const named = await auditor.page({ taskIds: ['gone', 'a'], cursor: null, limit: 10 });
  expect(named).toMatchObject({ tasks: 1, tombstones: 1, keys: 0, sessions: 0, unknown: [], next: null });
  await store.close();
});

/** What a page tells when all this happens between the first look and the second one. */
async function lookedAt(world: World, meanwhile: () => Promise<void> | void): Promise<readonly Finding[]> {
  let begun = (): void => undefined;
  const looked = new Promise<void>((resolve) => (begun = resolve));
  const after = world.clock.after.bind(world.clock);
  world.clock.after = (delayMs, fire) => {
    if (delayMs === 100) begun();
    return after(delayMs, fire);
  };
  const page = new Auditor(world.authority, () => 0).page({ ...ALL, limit: 100 });
  await looked;
  world.clock.after = after;
  await meanwhile();
  await world.clock.advance(100);
  return (await page).findings;
}

/** A file with something wrong in it that somebody puts right between two looks. */
it.each<[string, string, string, string]>([
  [
    'a key',
    `INSERT INTO task_keys VALUES ('default', 'stray', 99)`,
    `DELETE FROM task_keys WHERE task_order = 99`,
    'store.keys',
  ],
  [
    'the number of purges',
    `INSERT OR REPLACE INTO meta VALUES ('purges', '4')`,
    `UPDATE meta SET value = '0' WHERE name = 'purges'`,
    'store.purges',
  ],
  [
    'a record',
    `UPDATE tasks SET ready_order = NULL`,
    `UPDATE tasks SET ready_order = (SELECT min(ready) FROM kept)`,
    'index.ready',
  ],
])('does not tell of %s that is put right before the second look', async (_what, wrong, right, invariant) => {
  const path = join(temporaryFolder(), 'reeve.db');
  const store = await openSqliteStore({ path });
  const world = await World.open({ real: store, dispatcher: null });
  await world.admit('a', { taskId: 'a' });
  const run = (statement: string): void => {
    const db = new Database(path);
    db.exec('CREATE TABLE IF NOT EXISTS kept AS SELECT ready_order AS ready FROM tasks');
    db.exec(statement);
    db.close();
  };
  const namesOf = (findings: readonly Finding[]): string[] => findings.map(({ invariant: name }) => name);
  run(wrong);
  expect(namesOf(await lookedAt(world, () => undefined))).toEqual([invariant]);
  expect(namesOf(await lookedAt(world, () => run(right)))).toEqual([]);
  await store.close();
});

/** Much comes and goes between two looks, and before it in the order of names. */
it.each<[string, string, (world: World) => Promise<unknown>, string, string]>([
  [
    'a key',
    `INSERT INTO task_keys VALUES ('default', 'stray', 99)`,
    (world) => world.admit('a', { taskId: 'a' }),
    '',
    'store.keys',
  ],
  [
    'a session',
    `UPDATE sessions SET hello = 'oops'`,
    (world) => {
      const session = sessionRow('a', { expiresAt: world.clock.nowMs() + 60_000 });
      return world.authority.writeSession({ kind: 'open', session });
    },
    '',
    'sessions.row',
  ],
  [
    'a permit behind others',
    'UPDATE permits SET running = 5',
    (world) => world.admit('a', { taskId: 'a', policy: { concurrencyKey: 'a' } }),
    'first',
    'permits.counts',
  ],
  [
    'a permit whose tasks go on',
    'UPDATE permits SET running = 5',
    async (world) => {
      await world.admit('next', { taskId: 'next', policy: { concurrencyKey: 'k' } });
      await world.cancel('first');
    },
    'next',
    'permits.counts',
  ],
])(
  'tells of %s that is still wrong at the second look, whatever came meanwhile',
  async (...[, wrong, come, id, name]) => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const world = await World.open({ real: store, dispatcher: null });
    await world.admit('first', { taskId: 'first', policy: { concurrencyKey: 'k' } });
    const session = sessionRow('s', { expiresAt: world.clock.nowMs() + 60_000 });
    await world.authority.writeSession({ kind: 'open', session });
    const db = new Database(path);
    expect(db.prepare(wrong).run().changes).toBe(1);
    db.close();
    const findings = await lookedAt(world, async () => void (await come(world)));
    expect(findings.map(({ taskId, invariant }) => [taskId, invariant])).toEqual([[id, name]]);
    await store.close();
  },
);
