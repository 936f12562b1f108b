// Whatever is changed in a file by anybody but Reeve is found, and named for what it is.

import type { Database } from 'better-sqlite3';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { InvariantName } from '../../src/audit/invariants.js';
import { OVERDUE_SLACK_MS } from '../../src/audit/standing.js';
import { decodeAdmission } from '../../src/store/admission-codec.js';
import { HistoryChain } from '../../src/store/history-chain.js';
import { decodeEvents, encodeEvents } from '../../src/store/history-codec.js';
import { decodeRecord, encodeRecord } from '../../src/store/record-codec.js';
import { StoredFile, auditAll, reseal } from './stored-file.js';

const KEY = randomBytes(32);
const file = await StoredFile.make();
const keyed = await StoredFile.make(KEY);

const orderOf = (taskId: string): string => `(SELECT task_order FROM tasks WHERE task_id = '${taskId}')`;
const firstRowOf = (taskId: string): string =>
  `(SELECT min(first_sequence) FROM history WHERE task_order = ${orderOf(taskId)})`;
const lastRowOf = (taskId: string): string =>
  `(SELECT max(first_sequence) FROM history WHERE task_order = ${orderOf(taskId)})`;

/** What is found of which task, each once. */
async function found(path: string, of = file): Promise<string[]> {
  const { findings } = await of.audit(path);
  return [...new Set(findings.map(({ taskId, invariant }) => `${taskId} ${invariant}`))];
}

describe('an untouched file', () => {
  it.each([
    ['without a key', file],
    ['with a key', keyed],
  ])('%s has nothing to be found', async (_what, of) => {
    const { findings, tasks, links } = await of.audit(of.copy());
    expect(findings).toEqual([]);
    expect(tasks).toBe(10);
    expect(links).toBeGreaterThan(15);
  });
});

const OUTPUT_TEXT = 'the output that must go';

describe('a change of the history', () => {
  it.each<[string, string, string, InvariantName[]]>([
    [
      'a payload',
      'done',
      `UPDATE history SET events = replace(events, '${OUTPUT_TEXT}', 'an output that was not so') WHERE events LIKE '%${OUTPUT_TEXT}%'`,
      ['chain.link'],
    ],
    [
      'a payload hidden behind the others',
      'done',
      `UPDATE history SET events = events || ' ' WHERE first_sequence = ${lastRowOf('done')}`,
      ['chain.link'],
    ],
    [
      "an event's time",
      'queued',
      `UPDATE history SET events = '1[17' || substr(events, 5) WHERE first_sequence = ${firstRowOf('queued')}`,
      ['chain.link', 'history.fold'],
    ],
    [
      'who did it',
      'again',
      `UPDATE history SET events = replace(events, 'operator-1', 'somebody-1') WHERE first_sequence = ${lastRowOf('again')}`,
      ['chain.link'],
    ],
    [
      'a commit is gone',
      'retrying',
      `DELETE FROM history WHERE task_order = ${orderOf('retrying')} AND last_number = 2`,
      ['chain.link', 'history.numbers', 'history.edges', 'history.settlements', 'history.revisions', 'history.fold'],
    ],
    [
      'its end is gone',
      'running',
      `DELETE FROM history WHERE first_sequence = ${lastRowOf('running')}`,
      ['store.version', 'history.fold'],
    ],
    [
      'its link',
      'child',
      `UPDATE history SET link = zeroblob(32) WHERE task_order = ${orderOf('child')}`,
      ['chain.link'],
    ],
    [
      'its link is gone',
      'child',
      `UPDATE history SET link = NULL WHERE task_order = ${orderOf('child')}`,
      ['chain.link'],
    ],
    [
      'it is no JSON',
      'waiter',
      `UPDATE history SET events = '1[oops' WHERE first_sequence = ${firstRowOf('waiter')}`,
      ['chain.link', 'history.readable', 'history.fold'],
    ],
  ])('%s', async (_what, taskId, statement, invariants) => {
    const names = await found(file.tampered(statement));
    expect(names).toEqual(expect.arrayContaining(invariants.map((invariant) => `${taskId} ${invariant}`)));
    expect(names.every((name) => name.startsWith(`${taskId} `))).toBe(true);
  });

  it('two commits that changed places', async () => {
    const path = file.tamperedBy((db) => {
      const rows = db
        .prepare<[], [number, string]>(
          `SELECT first_sequence, events FROM history WHERE task_order = ${orderOf('done')} ORDER BY first_sequence LIMIT 2 OFFSET 1`,
        )
        .raw()
        .all();
      const [first, second] = rows;
      const write = db.prepare('UPDATE history SET events = ? WHERE first_sequence = ?');
      write.run(second?.[1], first?.[0]);
      write.run(first?.[1], second?.[0]);
    });
    expect(await found(path)).toEqual(expect.arrayContaining(['done chain.link', 'done history.numbers']));
  });

  it('a history that was put under another task', async () => {
    const path = file.tamperedBy((db) => {
      const swap = db.prepare('UPDATE history SET task_order = ? WHERE task_order = ?');
      const order = db.prepare<[string], number>('SELECT task_order FROM tasks WHERE task_id = ?').pluck();
      const [left, right] = [order.get('queued'), order.get('child')];
      swap.run(-1, left);
      swap.run(left, right);
      swap.run(right, -1);
    });
    expect(await found(path)).toEqual(expect.arrayContaining(['queued chain.link', 'child chain.link']));
  });

  it('an event that was never said, numbered and folded as if it had been', async () => {
    const path = file.tamperedBy((db) => forge(db, null));
    expect(await found(path)).toEqual(['running history.projection']);
    const unlinked = file.tamperedBy((db) => forge(db, 'unlinked'));
    expect(await found(unlinked)).toEqual(['running chain.link', 'running history.projection']);
  });
});

describe('with a key', () => {
  it('a forger who makes all links anew is found, and so is one with another key', async () => {
    for (const key of [null, randomBytes(32)]) {
      expect(
        await found(
          keyed.tamperedBy((db) => relink(db, key)),
          keyed,
        ),
      ).toEqual(expect.arrayContaining(['done chain.link', 'running chain.link', 'queued chain.link']));
    }
    expect(
      await found(
        keyed.tamperedBy((db) => relink(db, KEY)),
        keyed,
      ),
    ).toEqual([]);
  });

  it('the admission is covered too', async () => {
    const statement = `UPDATE admissions SET admission = replace(admission, 'tests', 'taste') WHERE task_order = ${orderOf('queued')}`;
    expect(await found(keyed.tampered(statement), keyed)).toEqual(['queued chain.link']);
  });

  it('a store is opened with its own key only', async () => {
    const refused = { name: 'StoreError', failure: 'fatal' };
    const withoutKey = {
      ...refused,
      message: expect.stringMatching(/made with the chain key .*none is given/) as string,
    };
    await expect(file.open(keyed.copy())).rejects.toMatchObject(withoutKey);
    const other = { ...refused, message: expect.stringMatching(/made without a chain key/) as string };
    await expect(keyed.open(file.copy())).rejects.toMatchObject(other);
  });

  it('names itself by a hash from which it cannot be made', () => {
    expect(new HistoryChain(KEY).keyId).toBe(
      createHmac('sha256', KEY).update('reeve.chain.key').digest('hex').slice(0, 16),
    );
    expect(new HistoryChain(KEY).keyId).not.toContain(KEY.toString('hex').slice(0, 8));
  });
});

describe('a change of the record', () => {
  const edited = (taskId: string, edit: (fields: Record<string, unknown>) => void): string =>
    file.tamperedBy((db) => {
      const record =
        db.prepare<[string], string>('SELECT record FROM tasks WHERE task_id = ?').pluck().get(taskId) ?? '';
      const fields = JSON.parse(record.slice(2)) as Record<string, unknown>;
      edit(fields);
      db.prepare('UPDATE tasks SET record = ? WHERE task_id = ?').run(
        `${record.slice(0, 2)}${JSON.stringify(fields)}`,
        taskId,
      );
    });

  it.each<[string, string, (fields: Record<string, unknown>) => void, string[]]>([
    ['attempts', 'running', (fields) => (fields['t'] = 7), ['record.attempts', 'history.fold']],
    ['the lease is gone', 'running', (fields) => delete fields['l'], ['record.lease', 'index.lease', 'history.fold']],
    ['the retry time', 'retrying', (fields) => delete fields['y'], ['record.times', 'index.due', 'history.fold']],
    ['the queue time', 'queued', (fields) => (fields['q'] = null), ['record.times', 'index.ready', 'history.fold']],
    ['the version', 'queued', (fields) => (fields['n'] = 9), ['store.version', 'history.fold']],
    ['who waits', 'waiter', (fields) => delete fields['D'], ['family.dependencies', 'history.fold']],
  ])('%s', async (_what, taskId, edit, invariants) => {
    const names = await found(edited(taskId, edit));
    const expected = [...invariants, 'store.seal'].map((invariant) => `${taskId} ${invariant}`);
    expect(names).toEqual(expect.arrayContaining(expected));
  });

  it('its status', async () => {
    const path = file.tampered(`UPDATE tasks SET record = '1f' || substr(record, 3) WHERE task_id = 'running'`);
    expect(await found(path)).toEqual(
      expect.arrayContaining(['running history.fold', 'running record.lease', 'running record.times']),
    );
  });

  it('it is no JSON', async () => {
    expect(await found(file.tampered(`UPDATE tasks SET record = '1a{oops' WHERE task_id = 'done'`))).toEqual([
      'done store.record',
    ]);
  });
});

describe('a change beside the record', () => {
  it.each<[string, string, string[]]>([
    ['a key leads nowhere', `DELETE FROM task_keys WHERE task_order = ${orderOf('done')}`, ['done store.key']],
    [
      'a key leads elsewhere',
      `UPDATE task_keys SET task_order = ${orderOf('queued')} WHERE task_order = ${orderOf('done')}`,
      ['done store.key', ' store.keys'],
    ],
    ['the place in the queue', `UPDATE tasks SET ready_order = NULL WHERE task_id = 'queued'`, ['queued index.ready']],
    ['the timer', `UPDATE tasks SET next_due_at = next_due_at + 1 WHERE task_id = 'queued'`, ['queued index.due']],
    ['the purge of what lives', `UPDATE tasks SET purge_at = 5 WHERE task_id = 'queued'`, ['queued index.purge']],
    ['a purge before its time', `UPDATE tasks SET purge_at = 5 WHERE task_id = 'done'`, ['done index.purge']],
    ['the holder', `UPDATE tasks SET lease_session = 'x' WHERE task_id = 'running'`, ['running index.lease']],
    [
      'the route',
      `UPDATE tasks SET route_id = ${"(SELECT route_id FROM tasks WHERE task_id = 'done')"} WHERE task_id = 'queued'`,
      ['queued index.route'],
    ],
    ['the seal', `UPDATE tasks SET seal = seal + 1 WHERE task_id = 'queued'`, ['queued store.seal']],
    ['the version', `UPDATE tasks SET version = 77 WHERE task_id = 'queued'`, ['queued store.version']],
    ['counts', `UPDATE family_counts SET live_children = 5 WHERE live_children = 1`, ['parent family.counts']],
    ['counts of waiters', `UPDATE family_counts SET unsatisfied = 0 WHERE unsatisfied = 1`, ['waiter family.counts']],
    ['a child is forgotten', `DELETE FROM children`, ['parent family.counts', 'child family.child']],
    ['an edge is forgotten', `DELETE FROM dependencies`, ['waiter family.counts', 'waiter family.dependencies']],
    ['a session is gone', `UPDATE sessions SET state = 2`, ['running record.session', 'parent record.session']],
    [
      'the args',
      `UPDATE admissions SET admission = replace(admission, '{"for":"done"}', '{"for":"dune"}') WHERE task_order = ${orderOf('done')}`,
      ['done admission.hash'],
    ],
    ['the admission is gone', `DELETE FROM admissions WHERE task_order = ${orderOf('done')}`, ['done store.admission']],
    ['the task is gone', `DELETE FROM tasks WHERE task_id = 'queued'`, [' store.rows', ' store.keys']],
  ])('%s', async (_what, statement, names) => {
    expect(await found(file.tampered(statement))).toEqual(names);
  });

  it('a parent that completed while its child lives', async () => {
    const path = file.tamperedBy((db) => {
      db.prepare(`UPDATE tasks SET record = '1f' || substr(record, 3) WHERE task_id = 'parent'`).run();
      reseal(db);
    });
    expect(await found(path)).toEqual(expect.arrayContaining(['parent family.completed', 'child family.parent']));
  });

  it('what is overdue is told when nothing excuses it, and only beyond the slack', async () => {
    const store = await file.open(file.copy());
    const later = async (ms: number, quietSince?: number) =>
      (await auditAll(store, file.now + ms, quietSince)).findings.map(
        ({ taskId, invariant }) => `${taskId} ${invariant}`,
      );
    expect(await later(10_000_000)).toEqual([]);
    expect(await later(60_000 + OVERDUE_SLACK_MS, 0)).toEqual(['retrying timers.overdue']);
    expect(await later(60_001 + OVERDUE_SLACK_MS, 0)).toEqual([
      'running sessions.overdue',
      'retrying timers.overdue',
      'parent sessions.overdue',
      ' sessions.overdue',
    ]);
    expect(await later(10_000_000, 0)).toContain('queued timers.overdue');
    await store.close();
  });
});

/** A second acceptance at the end of the task that runs: all of it is consistent but for AEP's table. */
function forge(db: Database, how: 'unlinked' | null): void {
  const [order, version, route, admissionText, recordText] = db
    .prepare<[], [number, number, number, string, string]>(
      `SELECT task_order, version, route_id, admission, record FROM tasks JOIN admissions USING (task_order) WHERE task_id = 'running'`,
    )
    .raw()
    .get() ?? [0, 0, 0, '', ''];
  const admission = decodeAdmission('running', admissionText);
  const record = decodeRecord(recordText, admission);
  const rows = db
    .prepare<[number], [number, string, string]>(
      'SELECT last_number, events, lower(hex(link)) FROM history WHERE task_order = ? ORDER BY last_number DESC LIMIT 1',
    )
    .raw()
    .get(order);
  const [lastNumber = 0, text = '', previous = ''] = rows ?? [];
  const last = decodeEvents(text, lastNumber).at(-1);
  if (last === undefined || record.lease === null) throw new Error('nothing to forge on');
  const number = version + 1;
  const forged = {
    ...last,
    type: 'task.accepted' as const,
    data: {},
    number,
    aep: 'accepted' as const,
    workerSeq: null,
  };
  const history = encodeEvents([forged]);
  const after = {
    ...record,
    lastEvent: number,
    aep: 'accepted' as const,
    lease: { ...record.lease, acceptedAt: last.at, attemptState: 'accepted' as const, lastWordAt: last.at },
    handBacks: 0,
  };
  const link = new HistoryChain(null).linkOf(
    { taskId: 'running', lastNumber: number, previous, admission: null },
    history,
  );
  const wrong = createHash('sha256').update('forged').digest('hex');
  db.prepare(
    'INSERT INTO history (first_sequence, task_order, last_number, events, link) SELECT max(first_sequence) + 100, ?, ?, ?, ? FROM history',
  ).run(order, number, history, Buffer.from(how === null ? link : wrong, 'hex'));
  db.prepare('UPDATE tasks SET version = ?, record = ?, route_id = ? WHERE task_order = ?').run(
    number,
    encodeRecord(after),
    route,
    order,
  );
  reseal(db);
}

/** All links of a file made anew. */
function relink(db: Database, key: Uint8Array | null): void {
  const chain = new HistoryChain(key);
  const tasks = db
    .prepare<[], [number, string, string]>(
      'SELECT task_order, task_id, admission FROM tasks JOIN admissions USING (task_order)',
    )
    .raw()
    .all();
  for (const [order, taskId, admission] of tasks) {
    let previous: string | null = null;
    const rows = db
      .prepare<[number], [number, number, string]>(
        'SELECT first_sequence, last_number, events FROM history WHERE task_order = ? ORDER BY last_number',
      )
      .raw()
      .all(order);
    for (const [sequence, lastNumber, events] of rows) {
      previous = chain.linkOf({ taskId, lastNumber, previous, admission }, events);
      db.prepare('UPDATE history SET link = ? WHERE first_sequence = ?').run(Buffer.from(previous, 'hex'), sequence);
    }
  }
}
