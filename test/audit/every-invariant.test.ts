// Every invariant there is, broken by hand in a file: Verify names exactly that one, and of others only what cannot be
// broken without them. A new invariant does not compile here before it has its case.

import type { Database } from 'better-sqlite3';
import { expect, it } from 'vitest';
import type { InvariantName } from '../../src/audit/invariants.js';
import { OVERDUE_SLACK_MS } from '../../src/audit/standing.js';
import { appendSettlement } from '../../src/kernel/attempt-end.js';
import { judge } from '../../src/kernel/decide.js';
import { Draft } from '../../src/kernel/draft.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import { tombstoneOf } from '../../src/kernel/tombstone.js';
import { encodeTombstone } from '../../src/store/tombstone-codec.js';
import { causeOf } from '../support/submissions.js';
import { append, change, editRecord, putRecord, rewrite, storedTask } from './rewriting.js';
import { StoredFile, auditAll } from './stored-file.js';

const file = await StoredFile.make();

interface Case {
  readonly how: (db: Database) => void;
  /** Everything that is found, by task; where there is none it is empty. */
  readonly found: readonly string[];
  /** When it is looked at, after the file was made, with nothing that excuses silence. Default: at once. */
  readonly laterMs?: number;
}

const sql =
  (...statements: readonly string[]) =>
  (db: Database): void => {
    for (const statement of statements) {
      if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
    }
  };
const order = (taskId: string): string => `(SELECT task_order FROM tasks WHERE task_id = '${taskId}')`;
const GONE = `(SELECT task_order FROM tombstones WHERE task_id = 'gone')`;
const OF_NOBODY = 999;

/** The kernel goes on with a task, and nobody is told. */
const decide = (taskId: string, decision: (draft: Draft) => void) => (db: Database) => {
  const draft = Draft.of(storedTask(db, taskId).record, file.now);
  decision(draft);
  rewrite(db, taskId, (commits) => [...commits, draft.events]);
};
const edited =
  (taskId: string, ...edit: Parameters<typeof change>) =>
  (db: Database) =>
    rewrite(db, taskId, change(...edit));

const CASES: Readonly<Record<InvariantName, Case>> = {
  'store.rows': {
    how: sql(`INSERT INTO family_counts VALUES (${String(OF_NOBODY)}, 0, 0)`),
    found: [' store.rows'],
  },
  'store.admission': {
    how: sql(`DELETE FROM admissions WHERE task_order = ${order('done')}`),
    found: ['done store.admission'],
  },
  'store.record': {
    how: sql(`UPDATE tasks SET record = '1a{oops' WHERE task_id = 'done'`),
    found: ['done store.record'],
  },
  'store.version': {
    how: sql(`UPDATE tasks SET version = 77 WHERE task_id = 'queued'`),
    found: ['queued store.version'],
  },
  'store.seal': {
    how: sql(`UPDATE tasks SET seal = seal + 1 WHERE task_id = 'queued'`),
    found: ['queued store.seal'],
  },
  'store.key': { how: sql(`DELETE FROM task_keys WHERE task_order = ${order('done')}`), found: ['done store.key'] },
  'store.keys': {
    how: sql(`INSERT INTO task_keys VALUES ('default', 'a stray key', ${String(OF_NOBODY)})`),
    found: [' store.keys'],
  },
  'store.sweep': { how: sql(`INSERT INTO purging VALUES (${order('queued')})`), found: ['queued store.sweep'] },
  'store.purges': { how: sql(`UPDATE meta SET value = '0' WHERE name = 'purges'`), found: [' store.purges'] },
  'store.horizon': { how: sql(`UPDATE meta SET value = '999' WHERE name = 'horizon'`), found: [' store.horizon'] },
  'admission.hash': {
    how: sql(
      `UPDATE admissions SET admission = replace(admission, '{"for":"done"}', '{"for":"dune"}')
       WHERE task_order = ${order('done')}`,
    ),
    found: ['done admission.hash'],
  },
  'chain.link': {
    how: sql(`UPDATE history SET link = zeroblob(32) WHERE task_order = ${order('child')}`),
    found: ['child chain.link'],
  },
  'history.readable': {
    // What cannot be read is linked to nothing, and adds up to nothing.
    how: sql(`UPDATE history SET events = '1[oops' WHERE task_order = ${order('waiter')}`),
    found: ['waiter chain.link', 'waiter history.fold', 'waiter history.readable'],
  },
  'history.numbers': {
    how: (db) =>
      rewrite(db, 'done', (commits) => commits.filter((events) => events.every(({ type }) => type !== 'task.output'))),
    found: ['done history.numbers'],
  },
  'history.sequences': {
    how: (db) => {
      const { commits, order: place } = storedTask(db, 'done');
      const last = commits.at(-1)?.at(-1)?.number ?? 0;
      sql(
        `UPDATE history SET first_sequence = (SELECT first_sequence + 1 FROM history WHERE task_order = ${String(place)}
           AND last_number < ${String(last)} ORDER BY last_number DESC LIMIT 1)
         WHERE task_order = ${String(place)} AND last_number = ${String(last)}`,
      )(db);
    },
    found: ['done history.sequences'],
  },
  'history.revisions': {
    how: edited('queued', 'task.submitted', (event) => ({ ...event, revision: 5 })),
    found: ['queued history.revisions'],
  },
  'history.edges': {
    how: edited('running', 'reeve.task.claimed', (event) => ({ ...event, from: 'suspended' })),
    found: ['running history.edges'],
  },
  'history.terminal': {
    how: (db) =>
      rewrite(
        db,
        'done',
        append((last): TaskEvent => {
          const said = { type: 'task.progress', data: { progress: 1, message: null } } as const;
          return { ...last, ...said, revision: null, from: null, to: null, aep: null, epoch: null, workerSeq: null };
        }),
      ),
    found: ['done history.terminal'],
  },
  'history.epochs': {
    how: (db) =>
      rewrite(db, 'running', (commits) =>
        commits.map((events) => events.map((event) => (event.epoch === null ? event : { ...event, epoch: 0 }))),
      ),
    found: ['running history.epochs'],
  },
  'history.settlements': {
    how: edited('running', 'reeve.task.checkpoint', (event) => ({ ...event, epoch: 7 })),
    found: ['running history.settlements'],
  },
  'history.fence': { how: (db) => rewrite(db, 'running', askedAtOnce, true), found: ['running history.fence'] },
  'history.projection': {
    how: edited('running', 'task.started', (event) => ({ ...event, aep: 'completed' })),
    found: ['running history.projection'],
  },
  'history.fold': {
    how: (db) => editRecord(db, 'running', (record) => ({ ...record, message: 'as good as done' })),
    found: ['running history.fold'],
  },
  'record.lease': {
    how: (db) => editRecord(db, 'running', (record) => ({ ...record, lease: null })),
    found: ['running history.fold', 'running record.lease'],
  },
  'record.attempts': {
    how: (db) => editRecord(db, 'running', (record) => ({ ...record, attempt: 7 })),
    found: ['running history.fold', 'running record.attempts'],
  },
  'record.times': {
    how: (db) => editRecord(db, 'retrying', (record) => ({ ...record, retryAt: null })),
    found: ['retrying history.fold', 'retrying record.times'],
  },
  'record.session': {
    how: sql('UPDATE sessions SET state = 2'),
    found: ['parent record.session', 'running record.session'],
  },
  'index.route': {
    how: sql(
      `UPDATE tasks SET route_id = (SELECT route_id FROM tasks WHERE task_id = 'done') WHERE task_id = 'queued'`,
    ),
    found: ['queued index.route'],
  },
  'index.ready': {
    how: sql(`UPDATE tasks SET ready_order = NULL WHERE task_id = 'queued'`),
    found: ['queued index.ready'],
  },
  'index.purge': { how: sql(`UPDATE tasks SET purge_at = 5 WHERE task_id = 'queued'`), found: ['queued index.purge'] },
  'index.due': {
    how: sql(`UPDATE tasks SET next_due_at = next_due_at + 1 WHERE task_id = 'queued'`),
    found: ['queued index.due'],
  },
  'index.lease': {
    how: sql(`UPDATE tasks SET lease_session = 'x' WHERE task_id = 'running'`),
    found: ['running index.lease'],
  },
  'family.counts': {
    how: sql(`UPDATE family_counts SET live_children = 5 WHERE task_order = ${order('parent')}`),
    found: ['parent family.counts'],
  },
  'family.child': {
    how: sql(
      'DELETE FROM children',
      `UPDATE family_counts SET live_children = 0 WHERE task_order = ${order('parent')}`,
    ),
    found: ['child family.child'],
  },
  'family.parent': {
    how: decide('parent', (draft) =>
      judge(draft, { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') }),
    ),
    found: ['child family.parent', 'parent family.news'],
  },
  'family.completed': {
    how: decide('parent', (draft) => {
      const data = { resultJson: null, ending: null, ownerStopped: true };
      appendSettlement(draft, 'completed', data, causeOf('operator'));
    }),
    found: ['child family.parent', 'parent family.completed'],
  },
  'family.dependencies': {
    how: sql(
      'DELETE FROM dependencies',
      `UPDATE family_counts SET unsatisfied = 0 WHERE task_order = ${order('waiter')}`,
    ),
    found: ['waiter family.dependencies'],
  },
  'family.edges': { how: sql('UPDATE dependencies SET generation = 9'), found: ['running family.edges'] },
  'family.purged': { how: purgeByHand, found: ['waiter family.purged'] },
  'family.news': {
    how: sql(`INSERT INTO propagations VALUES (${order('running')}, 1, 1, 3)`),
    found: ['running family.news'],
  },
  'permits.place': {
    how: sql(
      `INSERT INTO permits VALUES (99, 'serialized' || char(10) || 'gpu', 1, 0)`,
      `INSERT INTO permit_rows VALUES (${order('again')}, 99, 1, 3, 5)`,
    ),
    found: ['again permits.place'],
  },
  'permits.counts': { how: sql('UPDATE permits SET running = 5'), found: ['lined permits.counts'] },
  'permits.settled': { how: sql('UPDATE permits SET most = 2'), found: ['lined permits.settled'] },
  'purged.tombstone': { how: sql(`UPDATE tombstones SET tombstone = '1[oops'`), found: ['gone purged.tombstone'] },
  'purged.key': { how: sql(`DELETE FROM task_keys WHERE task_order = ${GONE}`), found: ['gone purged.key'] },
  'purged.rows': {
    how: sql(`INSERT INTO intent_keys VALUES (${GONE}, 'k', 'sha256:', '{}')`),
    found: ['gone purged.rows'],
  },
  'purged.horizon': { how: sql(`UPDATE meta SET value = '1' WHERE name = 'horizon'`), found: ['gone purged.horizon'] },
  'timers.overdue': {
    how: () => undefined,
    found: ['retrying timers.overdue'],
    laterMs: 60_000 + OVERDUE_SLACK_MS,
  },
  'sessions.row': { how: sql(`UPDATE sessions SET hello = 'oops'`), found: [' sessions.row'] },
  'sessions.overdue': {
    // As it is with those who hold a lease of it, and by itself.
    how: sql('UPDATE sessions SET expires_at = expires_at - 90001'),
    found: [' sessions.overdue', 'parent sessions.overdue', 'running sessions.overdue'],
    laterMs: 0,
  },
  'sessions.ahead': {
    how: sql(`UPDATE sessions SET expires_at = expires_at + ${String(OVERDUE_SLACK_MS + 1)}`),
    found: [' sessions.ahead'],
  },
};

it.each(Object.entries(CASES))('%s', async (_name, { how, found, laterMs }) => {
  const store = await file.open(file.tamperedBy(how));
  try {
    const now = file.now + (laterMs ?? 0);
    const { findings } = await auditAll(store, now, laterMs === undefined ? now : 0);
    const names = findings.map(({ taskId, invariant }) => `${taskId} ${invariant}`);
    expect([...new Set(names)].sort()).toEqual([...found].sort());
  } finally {
    await store.close();
  }
});

/** Asked to end before it was claimed. */
function askedAtOnce(commits: readonly (readonly TaskEvent[])[]): readonly (readonly TaskEvent[])[] {
  const [[submitted, ...others] = [], ...rest] = commits;
  if (submitted === undefined) throw new Error('no history');
  const body = { type: 'task.cancel.requested', data: { graceEndsAt: null } } as const;
  const asked: TaskEvent = { ...submitted, ...body, number: 2, revision: 2, from: null, to: null, aep: null };
  const later = (event: TaskEvent): TaskEvent => ({
    ...event,
    number: event.number + 1,
    revision: event.revision === null ? null : event.revision + 1,
  });
  return [[submitted, asked, ...others.map(later)], ...rest.map((events) => events.map(later))];
}

/** The task that another waits for goes as by a purge that looked at nothing. */
function purgeByHand(db: Database): void {
  const { record, order: place } = storedTask(db, 'running');
  const { lease: _taken, ...rest } = record;
  const ended = { ...rest, lease: null, status: 'completed' as const, finishedAt: file.now };
  putRecord(db, place, ended);
  const tombstone = tombstoneOf(ended, file.now);
  if (tombstone === null) throw new Error('it lives');
  db.prepare(
    `INSERT INTO tombstones (task_order, task_id, parent_order, first_sequence, tombstone)
     SELECT task_order, 'running', NULL, min(first_sequence), ? FROM history WHERE task_order = ?`,
  ).run(encodeTombstone(tombstone), place);
  for (const table of ['tasks', 'admissions', 'history', 'family_counts']) {
    db.prepare(`DELETE FROM ${table} WHERE task_order = ?`).run(place);
  }
  sql(`UPDATE meta SET value = value + 1 WHERE name = 'purges'`)(db);
}
