// The commit path against a connection of the test's own, where SQLite can be made to fail at a chosen point.

import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommitPlan, SessionWrite } from '../../src/store/commit-plan.js';
import { encodeBatch } from '../../src/store/sqlite/batch-message.js';
import { KnownTasks } from '../../src/store/sqlite/known-tasks.js';
import { openForWriting } from '../../src/store/sqlite/open-database.js';
import { settingsOf } from '../../src/store/sqlite/settings.js';
import { Writer } from '../../src/store/sqlite/writer.js';
import { temporaryFolder } from '../contract/engines.js';
import {
  NOW,
  type Step,
  cancelled,
  claimed,
  completed,
  endOf,
  joined,
  planOf,
  purgeOf,
  sessionRow,
  submitted,
} from '../contract/sample-plans.js';

describe('the writer', () => {
  let db: Database;
  let writer: Writer;

  beforeEach(() => {
    db = openForWriting(settingsOf({ path: join(temporaryFolder(), 'reeve.db') }));
    writer = new Writer(db);
  });

  afterEach(() => {
    db.close();
  });

  const commit = (...steps: readonly Step[]) => writer.commit(encodeBatch(steps.map(({ plan }) => plan)));
  const count = (table: string) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();

  it('keeps WAL, a sync per commit, and no rule of its own about foreign keys', () => {
    const read = (name: string) => db.pragma(name, { simple: true });
    expect([read('journal_mode'), read('synchronous'), read('foreign_keys')]).toEqual(['wal', 2, 0]);
  });

  it('rolls the whole batch back when a statement fails, and goes on from where it was', () => {
    const session = planOf({ sessions: [{ kind: 'open', session: sessionRow('s') }] });
    const first = submitted();
    commit(first);
    db.exec(`CREATE TRIGGER broken BEFORE INSERT ON tasks WHEN NEW.task_id = 'poison'
             BEGIN SELECT RAISE(ABORT, 'injected'); END`);
    const batch = [claimed(first.record), { ...first, plan: session }, submitted({ queue: 'new route' })];
    expect(() => commit(...batch, submitted({ taskId: 'poison' }))).toThrow(
      expect.objectContaining({ name: 'StoreError', failure: 'unavailable' }) as Error,
    );
    expect([count('tasks'), count('task_keys'), count('history'), count('sessions'), count('routes')]).toEqual([
      1, 1, 1, 0, 1,
    ]);
    expect(writer.sessions.get('s')).toBeNull();
    expect([...writer.routes.keys()].length).toBe(1);
    expect(commit(...batch)).toMatchObject({ firstSequence: 2, lost: [], permits: [] });
  });

  it('takes no permit, and makes nobody ready, in a transaction that is rolled back', () => {
    const [first, second] = [submitted({ concurrencyKey: 'k' }), submitted({ concurrencyKey: 'k' })];
    commit(first, second);
    const claim = claimed(first.record);
    commit(claim);
    const before = [writer.permits.states(null, 9), count('permit_rows')];
    db.exec(`CREATE TRIGGER broken BEFORE INSERT ON tasks WHEN NEW.task_id = 'poison'
             BEGIN SELECT RAISE(ABORT, 'injected'); END`);
    const batch = [completed(claim.record), submitted({ concurrencyKey: 'other' })];
    expect(() => commit(...batch, submitted({ taskId: 'poison' }))).toThrow('injected');
    expect([writer.permits.states(null, 9), count('permit_rows')]).toEqual(before);
    const waiter = second.record.admission.taskId;
    expect(writer.permits.waitOf(waiter)?.holders).toEqual([first.record.admission.taskId]);
    expect(commit(...batch)).toMatchObject({
      lost: [],
      permits: [
        [0, { ready: [{ taskId: waiter }], rooms: [{ room: 1 }] }],
        [1, { ready: [{}] }],
      ],
    });
  });

  it('is fatal when COMMIT itself fails', () => {
    db.exec(`CREATE TABLE parents (id INTEGER PRIMARY KEY);
             CREATE TABLE offspring (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
             CREATE TRIGGER orphan AFTER INSERT ON tasks BEGIN INSERT INTO offspring VALUES (1); END;`);
    db.pragma('foreign_keys = ON');
    expect(() => commit(submitted())).toThrow(expect.objectContaining({ failure: 'fatal' }) as Error);
    expect(count('tasks')).toBe(0);
  });

  it('never trusts what it remembers over what is stored', () => {
    const task = submitted();
    commit(task);
    db.exec('UPDATE tasks SET version = 5');
    const { lost } = commit(claimed(task.record), submitted({ taskId: 'beside' }));
    expect(lost).toEqual([[0, { kind: 'conflict', subject: 'record', id: task.record.admission.taskId }]]);
    expect(count('tasks')).toBe(2);
  });

  it('never trusts what it remembers to be in the way of what is stored', () => {
    const task = submitted();
    const claim = claimed(task.record);
    commit(task, claim);
    // As another program would put an older copy of everything back.
    db.exec('DELETE FROM history WHERE last_number > 1; UPDATE tasks SET version = 1');
    expect(commit(claim).lost).toEqual([]);
  });

  it('drops a plan alone that passes its checks and cannot be written', () => {
    const first = submitted();
    const purged = cancelled(first.record);
    commit(first, purged);
    // What is left of a purge that somebody took back by hand, and only in part.
    db.exec(`INSERT INTO purging SELECT task_order FROM tasks`);
    const { lost } = commit(submitted(), { ...purged, plan: purgeOf(purged.record) }, submitted());
    expect(lost).toEqual([[1, { kind: 'damaged', detail: expect.stringMatching(/UNIQUE.*purging/) as string }]]);
    expect([count('tasks'), count('history'), count('tombstones')]).toEqual([3, 4, 0]);
    db.exec('DELETE FROM purging');
    expect(commit({ ...purged, plan: purgeOf(purged.record) }).lost).toEqual([]);
    expect(count('tombstones')).toBe(1);
  });

  it('finds out about tasks that it no longer remembers', () => {
    const known = new KnownTasks(db, 2);
    const steps = Array.from({ length: 7 }, () => submitted());
    commit(...steps);
    for (const round of [1, 2]) {
      for (const [at, { record }] of steps.entries()) {
        expect([round, known.get(record.admission.taskId)]).toMatchObject([round, { order: at + 1, version: 1 }]);
      }
    }
    expect(known.get('nobody')).toBeNull();
  });

  it('starts from what is stored', () => {
    const task = submitted();
    commit(task, claimed(task.record));
    const other = new Writer(db);
    const claim = claimed(task.record);
    expect(other.commit(encodeBatch([completed(claim.record).plan]))).toMatchObject({
      firstSequence: 3,
      lost: [],
      permits: [],
    });
    expect(other.commit(encodeBatch([joined(submitted().plan, submitted().plan)]))).toMatchObject({
      firstSequence: 6,
      lost: [],
      permits: [],
    });
    expect([...other.routes.keys()]).toEqual([...writer.routes.keys()]);
  });

  it('writes the Hello of a session when it is said, and not with every sign of life', () => {
    const write = (sessionWrite: SessionWrite) =>
      writer.commit(encodeBatch([planOf({ sessions: [sessionWrite] })])).lost;
    const session = sessionRow('s', { helloJson: JSON.stringify('x'.repeat(1_000_000)) });
    write({ kind: 'open', session });
    db.exec(`CREATE TRIGGER whole BEFORE INSERT ON sessions BEGIN SELECT RAISE(ABORT, 'written whole'); END;
             CREATE TRIGGER hello BEFORE UPDATE OF hello ON sessions BEGIN SELECT RAISE(ABORT, 'Hello written'); END;`);
    const of = { sessionId: 's', attachment: 1 };
    expect(write({ kind: 'renew', ...of, expiresAt: NOW + 90_000 })).toEqual([]);
    expect(write({ kind: 'linger', ...of, until: NOW + 50_000 })).toEqual([]);
    expect(write({ kind: 'drain', ...of })).toEqual([]);
    writer.sessions.forget();
    expect(writer.sessions.get('s')).toEqual({ ...session, state: 'draining', expiresAt: NOW + 50_000 });
    expect(write({ kind: 'expire', sessionId: 's', end: endOf(NOW + 50_001) })).toEqual([]);
    writer.sessions.forget();
    expect(writer.sessions.get('s')?.state).toBe('gone');
  });
});

describe('damage in one row', () => {
  let db: Database;
  let writer: Writer;

  beforeEach(() => {
    db = openForWriting(settingsOf({ path: join(temporaryFolder(), 'reeve.db') }));
    writer = new Writer(db);
  });

  afterEach(() => {
    db.close();
  });

  const commit = (...plans: readonly CommitPlan[]) => writer.commit(encodeBatch(plans)).lost;
  const opened = (id: string) => planOf({ sessions: [{ kind: 'open', session: sessionRow(id, { expiresAt: 5 }) }] });

  it('of the sessions is one session that is gone: the batch goes on, and so does the reaper', () => {
    const task = submitted();
    commit(task.plan, opened('bad'), opened('good'));
    db.exec(`UPDATE sessions SET state = 7 WHERE session_id = 'bad'`);
    writer.sessions.forget();
    const read = planOf({ sessionReads: [{ sessionId: 'bad', attachment: 1, needs: 'not_gone' }] });
    const lost = commit(
      joined(claimed(task.record, 'bad').plan, read),
      planOf({ sessions: [{ kind: 'renew', sessionId: 'bad', attachment: 1, expiresAt: 9 }] }),
      submitted().plan,
      planOf({ sessions: [{ kind: 'renew', sessionId: 'good', attachment: 1, expiresAt: 9 }] }),
    );
    const conflict = { kind: 'conflict', subject: 'session', id: 'bad' };
    expect(lost).toEqual([
      [0, conflict],
      [1, conflict],
    ]);
    expect(writer.sessions.alive(10, 10).map(({ sessionId }) => sessionId)).toEqual(['good']);
  });

  it('of a key without its task refuses what would take that key, and nothing else', () => {
    const lostTask = submitted({ key: 'k' });
    commit(lostTask.plan);
    db.exec('DELETE FROM tasks');
    writer = new Writer(db);
    const ledger = { taskId: 'b', intentKey: 'i', contentHash: 'h', answerJson: '{}' };
    const lost = commit(
      submitted({ key: 'k' }).plan,
      joined(submitted({ taskId: 'b', key: 'k' }).plan, planOf({ ledger: [ledger] })),
      submitted({ key: 'free' }).plan,
    );
    expect(lost.map(([at, { kind }]) => [at, kind])).toEqual([
      [0, 'damaged'],
      [1, 'damaged'],
    ]);
  });
});
