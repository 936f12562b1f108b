// What is left of a purged task is mended as far as it can be, on an operator's word that is kept; what cannot be read
// any more is given up, and its names stay taken.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { type RepairAnswer, Repairs } from '../../src/audit/repairs.js';
import type { RepairKind } from '../../src/kernel/event.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { causeOf } from '../support/submissions.js';
import { World } from '../support/world.js';
import { auditAll } from './stored-file.js';

let path: string;
let store: TaskStore;
let world: World;

beforeEach(async () => {
  path = join(temporaryFolder(), 'reeve.db');
  store = await openSqliteStore({ path });
  world = await World.open({ real: store, cacheBytes: 0, dispatcher: null });
  await world.admit('k', { taskId: 'gone' });
  await world.cancel('gone');
  const { lastEvent: version } = await world.stored('gone');
  expect(await world.authority.upkeep.purge({ taskId: 'gone', version })).toEqual({ kind: 'purged' });
  while (await store.sweepPurged());
});

afterEach(async () => {
  world.kill();
  await world.authority.stop();
  await store.close();
});

function repair(kind: RepairKind, key: string | null = kind, reasonGiven = 'a bad disk'): Promise<RepairAnswer> {
  return new Repairs(world.authority, new Auditor(world.authority, () => 0)).repair({
    taskId: 'gone',
    kind,
    eventNumber: kind === 'redact_payload' ? 1 : 0,
    key: key === null ? null : { key, contentHash: `sha256:${kind}` },
    cause: { ...causeOf('admin'), reason: reason('run.repaired.operator', reasonGiven) },
  });
}

function tamper(...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) db.prepare(statement).run();
  db.close();
}

async function found(): Promise<string[]> {
  const { findings } = await auditAll(store, world.clock.nowMs());
  return findings.map(({ taskId, invariant }) => `${taskId} ${invariant}`);
}

it('tells what is left of one that is sound, and does nothing', async () => {
  for (const kind of ['rebuild_record', 'accept_record', 'reindex'] as const) {
    expect(await repair(kind)).toMatchObject({
      kind: 'done',
      applied: false,
      findings: [],
      record: null,
      tombstone: { taskId: 'gone', status: 'cancelled' },
    });
  }
  expect(await repair('redact_payload')).toMatchObject({
    kind: 'refused',
    refusal: { reason: 'TASK_NOT_FOUND', metadata: { task_id: 'gone', purged: 'true' } },
  });
});

describe('a tombstone that cannot be read', () => {
  beforeEach(() => tamper(`UPDATE tombstones SET tombstone = '1["oops'`));

  it('is given up on an operator’s word, who is kept with it', async () => {
    expect(await found()).toEqual(['gone purged.tombstone']);
    expect(await repair('rebuild_record')).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'INVALID_TRANSITION', metadata: { purged: 'true', mended_by: 'accept_record' } },
    });
    const findings = [{ taskId: 'gone', invariant: 'purged.tombstone' }];
    expect(await repair('accept_record', null)).toMatchObject({ applied: false, findings, tombstone: null });
    expect(await found()).toHaveLength(1);
    const done = { kind: 'done', applied: true, findings, record: null, tombstone: null };
    expect(await repair('accept_record', 'once')).toMatchObject({ ...done, replayed: false });
    expect(await found()).toEqual([]);
    expect(await repair('accept_record', 'once')).toMatchObject({ ...done, replayed: true });
    const conflict = { kind: 'refused', refusal: { reason: 'IDEMPOTENCY_CONFLICT' } };
    expect(await repair('reindex', 'once')).toMatchObject(conflict);
    const kept = await store.findOperation('repair\ngone\nonce');
    expect(JSON.parse(kept?.answerJson ?? '')).toMatchObject({
      cause: { actor: { type: 'admin' }, reason: { summary: 'a bad disk' } },
    });
  });

  it('keeps its key and its id taken, then as before', async () => {
    const damaged = { kind: 'refused', refusal: { reason: 'RECORD_DAMAGED' } };
    for (const round of ['before', 'after']) {
      expect(await world.submit('k'), round).toMatchObject(damaged);
      expect(await world.submit('another', { taskId: 'gone' })).toMatchObject({
        kind: 'refused',
        refusal: { reason: 'TASK_ID_TAKEN' },
      });
      expect(await world.authority.reads.find('gone')).toMatchObject({
        ok: false,
        refusal: { reason: 'RECORD_DAMAGED' },
      });
      await repair('accept_record');
    }
  });

  it('is written over only as it was seen', async () => {
    const { beforeCommit } = world.probe;
    world.probe.beforeCommit = async () => {
      tamper(`UPDATE tombstones SET tombstone = '1[also' || hex(randomblob(4))`);
      world.probe.beforeCommit = beforeCommit;
    };
    // The first look is lost; the second one is of what stands there then.
    expect(await repair('accept_record')).toMatchObject({ applied: true });
    expect(await found()).toEqual([]);
  });
});

describe('reindex', () => {
  it('leads the key to its tombstone again', async () => {
    tamper(`DELETE FROM task_keys`);
    expect(await found()).toEqual(['gone purged.key']);
    expect(await repair('reindex')).toMatchObject({ applied: true, tombstone: { taskId: 'gone' } });
    expect(await found()).toEqual([]);
    expect(await store.findTaskId('default', 'k')).toBe('gone');
  });

  it('does not take the key from a task that was admitted under it meanwhile', async () => {
    tamper(`DELETE FROM task_keys`);
    await world.admit('k', { taskId: 'again' });
    await repair('reindex');
    expect(await store.findTaskId('default', 'k')).toBe('again');
    expect(await found()).toEqual(['gone purged.key']);
  });

  it('takes away what should be gone', async () => {
    tamper(
      `INSERT INTO intent_keys VALUES (1, 'k', 'sha256:', '{}')`,
      `INSERT INTO admissions VALUES (1, '1{}')`,
      `INSERT INTO history VALUES (77, 1, 9, '1[]', NULL)`,
      'INSERT INTO family_counts VALUES (1, 0, 0)',
      'INSERT INTO children VALUES (5, 1, 0)',
      'INSERT INTO dependencies VALUES (5, 1, 1, 0)',
      'INSERT INTO propagations VALUES (1, 1, 1, 1)',
    );
    expect((await repair('reindex', null)) as { findings: unknown }).toMatchObject({
      findings: [
        {
          invariant: 'purged.rows',
          detail: 'what is left is admission, history, intents, place_as_child, counts, edges, propagations',
        },
      ],
    });
    expect(await repair('reindex')).toMatchObject({ applied: true });
    expect(await found()).toEqual([]);
    while (await store.sweepPurged());
    const db = new Database(path);
    for (const table of [
      'intent_keys',
      'admissions',
      'history',
      'family_counts',
      'children',
      'dependencies',
      'purging',
    ]) {
      expect(db.prepare(`SELECT * FROM ${table}`).all(), table).toEqual([]);
    }
    db.close();
    expect(await found()).toEqual([]);
  });

  it('raises a horizon that had sunk below it, and nothing is numbered below that again', async () => {
    await store.close();
    tamper(`UPDATE meta SET value = '1' WHERE name = 'horizon'`);
    store = await openSqliteStore({ path });
    world.kill();
    world = await World.open({ real: store, dispatcher: null });
    expect(await found()).toEqual(['gone purged.horizon']);
    expect(await repair('reindex')).toMatchObject({ applied: true });
    expect(await found()).toEqual([]);
    expect(await store.eventBounds()).toMatchObject({ horizon: 3 });
    await world.admit('next', { taskId: 'next' });
    expect((await store.readHistory('next', 0, 10, 1e6)).map(({ sequence }) => sequence)).toEqual([4]);
  });

  it('is of no use to a tombstone that cannot be read', async () => {
    tamper(`UPDATE tombstones SET tombstone = 'x'`);
    expect(await repair('reindex')).toMatchObject({
      refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: 'accept_record' } },
    });
  });
});

describe.each([1_000_000_000, 9_007_199_254_740_980])('a last event %s that there never was', (lastEvent) => {
  beforeEach(() => {
    const db = new Database(path);
    const text = db.prepare<[], string>('SELECT tombstone FROM tombstones').pluck().get() ?? '';
    const items = JSON.parse(text.slice(1)) as unknown[];
    const edited = `1${JSON.stringify(items.with(5, lastEvent))}`;
    db.prepare('UPDATE tombstones SET tombstone = ?').run(edited);
    db.close();
  });

  it('is told of the tombstone, and reindex is of no use to it', async () => {
    expect(await found()).toEqual(['gone purged.tombstone']);
    expect(await repair('reindex')).toMatchObject({
      refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: 'accept_record' } },
    });
    expect(await repair('accept_record')).toMatchObject({ applied: true });
    expect(await found()).toEqual([]);
  });

  it('does not become the horizon of all others where something else is mended', async () => {
    tamper(`DELETE FROM task_keys`);
    expect(await found()).toEqual(['gone purged.tombstone', 'gone purged.key']);
    expect(await repair('reindex')).toMatchObject({ applied: true });
    expect(await found()).toEqual(['gone purged.tombstone']);
    expect(await store.eventBounds()).toMatchObject({ head: 3, horizon: 3 });
    await world.admit('next', { taskId: 'next' });
    expect((await store.readHistory('next', 0, 10, 1e6)).map(({ sequence }) => sequence)).toEqual([4]);
  });
});

it('a store whose counts of purges cannot be read is not opened: its sequences would be given again', async () => {
  await store.close();
  tamper(`UPDATE meta SET value = 'many' WHERE name = 'horizon'`);
  await expect(openSqliteStore({ path })).rejects.toMatchObject({
    failure: 'fatal',
    message: expect.stringMatching(/meta\.horizon cannot be read/) as string,
  });
  tamper(`UPDATE meta SET value = '3' WHERE name = 'horizon'`);
  store = await openSqliteStore({ path });
});
