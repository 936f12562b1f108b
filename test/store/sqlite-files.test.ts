// The file behind the SQLite store: whose it is, who has it, what it may hold, and what comes back from it.

import { copyFileSync, existsSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../src/store/sqlite/schema.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../contract/engines.js';
import {
  cancelled,
  claimed,
  completed,
  endOf,
  sessionRow,
  planOf,
  purgeOf,
  submitted,
} from '../contract/sample-plans.js';
import {
  commit,
  committed,
  committedOne,
  historyOf,
  kindsOf,
  recordOf,
  writtenAt,
} from '../contract/store-under-test.js';

const refusedAs = (message: RegExp) => ({
  name: 'StoreError',
  failure: 'fatal',
  message: expect.stringMatching(message) as string,
});

/** Runs SQL on a file that no store has open. */
function tamper(path: string, ...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) db.exec(statement);
  db.close();
}

/** What a file of before a migration lacks. */
const WITHOUT_PURGES = [
  'DROP INDEX tasks_purgeable',
  'ALTER TABLE tasks DROP COLUMN purge_at',
  'DROP INDEX children_by_child',
  ...['tombstones', 'purging', 'operations'].map((table) => `DROP TABLE ${table}`),
  `DELETE FROM meta WHERE name = 'incarnation'`,
];
const WITHOUT_PERMITS = ['permits', 'permit_rows', 'permit_lines'].map((table) => `DROP TABLE ${table}`);
/** As files were in which whoever was ready held its permit, and capabilities came before keys. */
const WITHOUT_LINES = [
  'DROP TABLE permit_lines',
  'DROP INDEX permit_rows_in_line',
  'ALTER TABLE permit_rows RENAME TO newer',
  `CREATE TABLE permit_rows (task_order INTEGER NOT NULL, permit_id INTEGER NOT NULL, state INTEGER NOT NULL,
     ready_order INTEGER NOT NULL, PRIMARY KEY (task_order, permit_id)) WITHOUT ROWID, STRICT`,
  'INSERT INTO permit_rows SELECT task_order, permit_id, state, ready_order FROM newer',
  'DROP TABLE newer',
  'CREATE INDEX permit_lines ON permit_rows (permit_id, state, ready_order, task_order)',
  'ALTER TABLE permits RENAME COLUMN running TO held',
  'UPDATE permits SET held = 1',
  `UPDATE permits SET name = replace(name, 'serialized', 'capability')`,
];
const WITHOUT_SEALS = ['ALTER TABLE tasks DROP COLUMN seal'];
const WITHOUT_GONE_SESSIONS = [
  'DROP INDEX sessions_gone',
  ...['forget_at', 'ended'].map((column) => `ALTER TABLE sessions DROP COLUMN ${column}`),
];
const WITHOUT_CHAIN = ['ALTER TABLE history DROP COLUMN link', `DELETE FROM meta WHERE name LIKE 'chain%'`];
const WITHOUT_FAMILIES = ['children', 'dependencies', 'family_counts', 'propagations'].map(
  (table) => `DROP TABLE ${table}`,
);

describe('opening', () => {
  it('makes a new file and finds everything in it again', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const task = submitted({ taskId: 'a', key: 'k' });
    const claim = claimed(task.record);
    await committed(store, task, claim);
    await commit(store, planOf({ sessions: [{ kind: 'open', session: sessionRow('s') }] }));
    const secret = await store.secret();
    await store.close();

    const again = await openSqliteStore({ path });
    expect(await again.secret()).toBe(secret);
    expect(await recordOf(again, 'a')).toEqual(claim.record);
    expect(await again.findTaskId('default', 'k')).toBe('a');
    expect(await again.loadSession('s')).toEqual(sessionRow('s'));
    const [next] = await commit(again, submitted().plan);
    expect(next).toEqual(writtenAt(3));
    await committed(again, completed(claim.record));
    expect((await historyOf(again, 'a')).map(({ sequence }) => sequence)).toEqual([1, 2, 4, 5, 6]);
    await again.close();
  });

  it('gives every file a secret of its own', async () => {
    const folder = temporaryFolder();
    const stores = await Promise.all(['a', 'b'].map((name) => openSqliteStore({ path: join(folder, name) })));
    const [one, two] = await Promise.all(stores.map((store) => store.secret()));
    expect(one).not.toBe(two);
    await Promise.all(stores.map((store) => store.close()));
  });

  it('leaves nothing in the log after a proper end', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    await committed(store, submitted());
    expect(existsSync(`${path}-wal`)).toBe(true);
    await store.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
  });

  it('refuses a file that is open already, by its name or by another one', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'reeve.db');
    const store = await openSqliteStore({ path });
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refusedAs(/open in another process/));
    const link = join(folder, 'link.db');
    symlinkSync(path, link);
    await expect(openSqliteStore({ path: link })).rejects.toMatchObject(refusedAs(/open in another process/));
    await committed(store, submitted());
    await store.close();
    const again = await openSqliteStore({ path });
    await again.close();
  });

  it('refuses a folder that does not exist', async () => {
    const path = join(temporaryFolder(), 'no', 'such', 'reeve.db');
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refusedAs(/does not exist/));
  });

  it('refuses a database of something else and leaves it as it was', async () => {
    const path = join(temporaryFolder(), 'foreign.db');
    tamper(path, 'CREATE TABLE customers (id INTEGER)');
    const before = join(temporaryFolder(), 'copy.db');
    copyFileSync(path, before);
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refusedAs(/not of Reeve/));
    const db = new Database(path);
    expect(db.pragma('journal_mode', { simple: true })).toBe('delete');
    expect(db.prepare('SELECT count(*) FROM sqlite_master').pluck().get()).toBe(1);
    db.close();
  });

  it('refuses what is no database at all', async () => {
    const path = join(temporaryFolder(), 'text.db');
    writeFileSync(path, 'this is a letter, and a long one. '.repeat(100));
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refusedAs(/not a database/));
  });

  it('leads a file of the first schema to the newest, with everything in it', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const task = submitted();
    await committed(store, task);
    await store.close();
    tamper(
      path,
      ...WITHOUT_SEALS,
      ...WITHOUT_GONE_SESSIONS,
      ...WITHOUT_PERMITS,
      ...WITHOUT_PURGES,
      ...WITHOUT_CHAIN,
      ...WITHOUT_FAMILIES,
      'PRAGMA user_version = 1',
    );
    const again = await openSqliteStore({ path });
    const { taskId } = task.record.admission;
    expect(await recordOf(again, taskId)).toEqual(task.record);
    await committed(again, claimed(task.record));
    expect((await historyOf(again, taskId)).map(({ link }) => link)).toEqual([
      null,
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ]);
    const links = [{ kind: 'child_admitted', parentId: taskId, childId: taskId, live: true }] as const;
    await commit(again, planOf({ links }));
    expect(await again.familyCounts([taskId])).toEqual([{ liveChildren: 1, unsatisfied: 0 }]);
    await committed(again, submitted({ concurrencyKey: 'k' }));
    expect(await again.permits(null, 9)).toMatchObject([{ queued: true, settled: true }]);
    await again.close();
  });

  it('puts the tasks of a file in which the ready ones held their permits into lines', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const keyed = { concurrencyKey: 'k' } as const;
    const [running, one, two] = [submitted(keyed), submitted(keyed), submitted({ ...keyed, queue: 'other' })];
    const [both, gpu] = [
      submitted({ concurrencyKey: 'two', capabilities: ['gpu'] }),
      submitted({ capabilities: ['gpu'] }),
    ];
    const claim = claimed(running.record);
    await committed(store, running, claim, one, two, both, gpu);
    const states = await store.permits(null, 9);
    await store.close();
    tamper(path, ...WITHOUT_GONE_SESSIONS, ...WITHOUT_SEALS, ...WITHOUT_LINES, 'PRAGMA user_version = 5');

    const again = await openSqliteStore({ path });
    const opened = await again.permits(null, 9);
    // Nobody has passed yet; where there is room, a start has to say so.
    expect(opened).toEqual(states.map((state) => ({ ...state, settled: state.running === state.limit })));
    for (const { name, limit } of opened) {
      await commit(again, planOf({ permits: [{ kind: 'limited', name, limit, most: 9 }] }));
    }
    expect(await again.permits(null, 9)).toEqual(states);
    expect(await again.readyTasks('default\nmain\nagent\nhost\ngpu', null, 9)).toHaveLength(1);
    expect(kindsOf(await commit(again, completed(claim.record).plan))).toEqual(['committed']);
    const ready = async (queue: string) => (await again.readyTasks(`default\n${queue}\nagent\nhost\n`, null, 9)).length;
    expect([await ready('main'), await ready('other')]).toEqual([1, 1]);
    await again.close();
  });

  it('gives a file from before purges an incarnation, which it keeps, and purges in it', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const task = await committedOne(store, cancelled(await committedOne(store, submitted())));
    const made = await store.incarnation();
    await store.close();
    tamper(
      path,
      ...WITHOUT_GONE_SESSIONS,
      ...WITHOUT_SEALS,
      ...WITHOUT_PERMITS,
      ...WITHOUT_PURGES,
      'PRAGMA user_version = 3',
    );
    const again = await openSqliteStore({ path });
    const given = await again.incarnation();
    expect(given).toMatch(/^[0-9a-f]{16}$/);
    expect(given).not.toBe(made);
    expect(await again.purgeable(Number.MAX_SAFE_INTEGER, null, 10)).toEqual([]);
    expect(kindsOf(await commit(again, purgeOf(task)))).toEqual(['committed']);
    await again.close();
    const third = await openSqliteStore({ path });
    expect(await third.incarnation()).toBe(given);
    await third.close();
  });

  it('keeps sessions that went before their end was kept, for a day, and knows nothing of it', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    const row = sessionRow('s');
    await commit(store, planOf({ sessions: [{ kind: 'open', session: row }] }));
    await commit(store, planOf({ sessions: [{ kind: 'end', sessionId: 's', attachment: 1, end: endOf() }] }));
    await store.close();
    tamper(path, ...WITHOUT_GONE_SESSIONS, 'PRAGMA user_version = 7');
    const again = await openSqliteStore({ path });
    expect(await again.goneSessions(null, 9)).toEqual([{ ...row, state: 'gone' }]);
    const dayLater = row.expiresAt + 24 * 3_600_000;
    await again.forgetSessions(dayLater - 1, 100);
    expect(await again.loadSession('s')).not.toBeNull();
    await again.forgetSessions(dayLater, 100);
    expect(await again.loadSession('s')).toBeNull();
    await again.close();
  });

  it('refuses a schema that a newer Reeve made', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    await (await openSqliteStore({ path })).close();
    tamper(path, `PRAGMA user_version = ${MIGRATIONS.length + 1}`);
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refusedAs(/newer Reeve/));
  });

  it('makes the schema whole when an earlier start did not get that far', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    // What a crash between the making of the file and the first migration leaves.
    tamper(path, 'PRAGMA journal_mode = WAL');
    const store = await openSqliteStore({ path });
    await committed(store, submitted());
    await store.close();
  });
});

describe('damage', () => {
  it.each([
    ['a record that is no JSON', `UPDATE tasks SET record = '1a{oops' WHERE task_id = 'bad'`],
    ['a record of an unknown format', `UPDATE tasks SET record = '9' || record WHERE task_id = 'bad'`],
    ["a version that is not the record's", `UPDATE tasks SET version = 7 WHERE task_id = 'bad'`],
    ['no admission', `DELETE FROM admissions WHERE task_order = (SELECT task_order FROM tasks WHERE task_id = 'bad')`],
    ['an admission cut short', `UPDATE admissions SET admission = substr(admission, 1, 90) WHERE task_order = 2`],
    ['no history', `DELETE FROM history WHERE task_order = 2`],
    ['a history that ends before it', `UPDATE history SET last_number = 0 WHERE task_order = 2`],
  ])('refuses the task alone: %s', async (_what, statement) => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    await committed(store, submitted({ taskId: 'good' }), submitted({ taskId: 'bad' }), submitted({ taskId: 'fine' }));
    await store.close();
    tamper(path, statement);
    const again = await openSqliteStore({ path });
    const loaded = await again.loadTasks(['good', 'bad', 'fine']);
    expect(loaded.map((task) => task?.kind)).toEqual(['task', 'damaged', 'task']);
    const query = { namespace: null, queue: null, statuses: null, actionKinds: null, labels: {}, after: null };
    const page = await again.listTasks({ ...query, descending: false, limit: 10, withArgs: true });
    expect(page.tasks.map((task) => task.kind)).toEqual(['task', 'damaged', 'task']);
    const [good] = loaded;
    if (good?.kind !== 'task') throw new Error('not loaded');
    await committed(again, claimed(good.record));
    await again.close();
  });

  it("says so of a history row that can't be read, and numbers on behind it", async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    await committed(store, submitted({ taskId: 'good' }), submitted({ taskId: 'bad' }));
    await store.close();
    tamper(path, `UPDATE history SET events = '1[oops' WHERE task_order = 2`);
    const again = await openSqliteStore({ path });
    await expect(historyOf(again, 'bad')).rejects.toMatchObject({ name: 'StoreError', failure: 'damaged' });
    await expect(again.readEvent('bad', 1)).rejects.toMatchObject({ failure: 'damaged' });
    expect((await historyOf(again, 'good')).length).toBe(1);
    const [verdict] = await commit(again, submitted().plan);
    if (verdict?.kind !== 'committed') throw new Error('not committed');
    expect(verdict.firstSequences[0]).toBeGreaterThan(2);
    await again.close();
  });
});

describe('limits', () => {
  it('fails closed when the file is full, takes nothing half, and goes on when there is room', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path, maxPages: 80 });
    const small = await committedOne(store, submitted({ taskId: 'small' }));
    const big = submitted({ taskId: 'big', argsJson: JSON.stringify({ fill: 'x'.repeat(400_000) }) });
    await expect(commit(store, submitted({ taskId: 'with it' }).plan, big.plan)).rejects.toMatchObject({
      failure: 'unavailable',
    });
    expect(await store.loadTasks(['big', 'with it'])).toEqual([null, null]);
    const [verdict] = await commit(store, claimed(small).plan);
    expect(verdict).toEqual(writtenAt(2));
    await store.close();
  });

  it('keeps the log bounded', async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path, checkpointPages: 100, walBytes: 1 << 20 });
    const fill = JSON.stringify({ fill: 'x'.repeat(20_000) });
    for (let n = 0; n < 200; n++) await committed(store, submitted({ argsJson: fill }));
    expect(statSync(`${path}-wal`).size).toBeLessThan(4 << 20);
    await store.close();
  });
});
