// What one answer of a store thread may weigh: large args and long commits come over in steps, whole all the same.

import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { historyPage } from '../../src/store/history-page.js';
import { encodeBatch } from '../../src/store/sqlite/batch-message.js';
import { HotReads, MAX_BYTES_PER_LOAD } from '../../src/store/sqlite/hot-reads.js';
import { LongReads } from '../../src/store/sqlite/long-reads.js';
import { openForWriting } from '../../src/store/sqlite/open-database.js';
import { settingsOf } from '../../src/store/sqlite/settings.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { Writer } from '../../src/store/sqlite/writer.js';
import { eventsOfRows } from '../../src/store/stored-row.js';
import { MAX_BYTES_PER_LIST } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { type Step, claimed, outputOf, reported, submitted } from '../contract/sample-plans.js';
import { committed } from '../contract/store-under-test.js';

const MEBIBYTE = 1024 * 1024;
const LARGE = JSON.stringify({ fill: 'x'.repeat(MEBIBYTE) });

describe('an answer of a thread', () => {
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

  it('brings as many tasks as fit, and at least one', () => {
    const ids = Array.from({ length: 12 }, (_, at) => `t${at}`);
    for (const taskId of ids) commit(submitted({ taskId, argsJson: LARGE }));
    const reads = new HotReads(db, writer.purged);
    const rows = reads.loadTasks(ids);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.length).toBeLessThanOrEqual(MAX_BYTES_PER_LOAD / MEBIBYTE);
    commit(submitted({ taskId: 'huge', argsJson: JSON.stringify('x'.repeat(2 * MAX_BYTES_PER_LOAD)) }));
    expect(reads.loadTasks(['huge', 't0']).length).toBe(1);
    expect(JSON.stringify(reads.readyTasks('default\nmain\nagent\nhost\n', null, 100)).length).toBeLessThan(1_000);
  });

  it('to a list weighs little without args, and is bounded with them', () => {
    for (let n = 0; n < 12; n++) commit(submitted({ argsJson: LARGE }));
    const reads = new LongReads(db);
    const query = { namespace: null, queue: null, statuses: null, actionKinds: null, labels: {}, after: null };
    const list = (withArgs: boolean) => reads.listTasks({ ...query, descending: false, limit: 100, withArgs });
    expect(list(false).rows.length).toBe(12);
    expect(JSON.stringify(list(false)).length).toBeLessThan(20_000);
    expect(JSON.stringify(list(true)).length).toBeLessThan(MAX_BYTES_PER_LIST + 2 * MEBIBYTE);
    expect(list(true).next).not.toBeNull();
  });

  it('of a history brings the page that was asked for out of a large commit, not the whole of it each time', () => {
    const task = submitted({ taskId: 'long' });
    const claim = claimed(task.record);
    const outputs = Array.from({ length: 200 }, (_, n) => outputOf(JSON.stringify({ n, fill: 'y'.repeat(20_000) })));
    commit(task, claim, reported(claim.record, { kind: 'accepted' }, { kind: 'started' }, ...outputs));
    const [whole] = db.prepare<[], number>('SELECT sum(length(events)) FROM history').pluck().all();
    const reads = new LongReads(db);
    const seen: string[] = [];
    let bytes = 0;
    for (let after = 0, more = true; more;) {
      const rows = reads.readHistory('long', after, 1_000, 256 * 1024);
      bytes += rows.reduce((sum, [, , row]) => sum + row.length, 0);
      const events = historyPage(eventsOfRows('long', rows, after), 1_000, 256 * 1024);
      seen.push(...events.map(({ sequence, event }) => `${sequence} ${event.number} ${event.revision} ${event.at}`));
      after = events.at(-1)?.event.number ?? after;
      more = events.length > 0;
    }
    const all = db
      .prepare<[], [number, number, string, null]>('SELECT first_sequence, last_number, events, NULL FROM history')
      .raw();
    const expected = [...eventsOfRows('long', all.all(), 0)];
    expect(seen).toEqual(
      expected.map(({ sequence, event }) => `${sequence} ${event.number} ${event.revision} ${event.at}`),
    );
    expect(bytes).toBeLessThan(1.2 * (whole ?? 0));
  });
});

describe('the store', () => {
  it('puts the steps together again', async () => {
    const store = await openSqliteStore({ path: join(temporaryFolder(), 'reeve.db') });
    const ids = Array.from({ length: 12 }, (_, at) => `t${at}`);
    for (const taskId of ids) await committed(store, submitted({ taskId, argsJson: LARGE }));
    const asked = ['nobody', ...ids, 't3', 'nobody'];
    const loaded = await store.loadTasks(asked);
    expect(loaded.map((task) => task?.taskId ?? 'nobody')).toEqual(asked);
    expect(loaded.every((task) => task === null || task.kind === 'task')).toBe(true);
    await store.close();
  });

  it.each(['reader', 'writer'] as const)(
    'says so when its %s is gone, though nobody asks it anything',
    async (role) => {
      const store = await openSqliteStore({ path: join(temporaryFolder(), 'reeve.db') });
      const death = new Promise((resolve) => {
        store.onDeath(resolve);
      });
      const threads = store as unknown as Readonly<Record<typeof role, { readonly worker: Worker }>>;
      await threads[role].worker.terminate();
      expect(await death).toMatchObject({ name: 'StoreError', failure: 'fatal' });
      await store.close();
    },
  );
});
