// A history written over by hand so that everything else still fits it: links made anew, the record folded from it, the
// columns beside the record as the record wants them. What an audit then finds is in the history alone.

import type { Database } from 'better-sqlite3';
import type { TaskEvent } from '../../src/kernel/event.js';
import { fold } from '../../src/kernel/fold.js';
import { readyOrder } from '../../src/kernel/placement.js';
import type { Admission, TaskRecord } from '../../src/kernel/record.js';
import { nextDueAt } from '../../src/kernel/timers.js';
import { decodeAdmission } from '../../src/store/admission-codec.js';
import { HistoryChain } from '../../src/store/history-chain.js';
import { decodeEvents, encodeEvents } from '../../src/store/history-codec.js';
import { sealOf } from '../../src/store/record-seal.js';
import { decodeRecord, encodeRecord } from '../../src/store/record-codec.js';

type Commit = readonly TaskEvent[];

interface Stored {
  readonly order: number;
  readonly admission: Admission;
  readonly admissionText: string;
  readonly record: TaskRecord;
  readonly commits: readonly Commit[];
}

export function storedTask(db: Database, taskId: string): Stored {
  const row = db
    .prepare<[string], [number, string, string]>(
      'SELECT task_order, admission, record FROM tasks JOIN admissions USING (task_order) WHERE task_id = ?',
    )
    .raw()
    .get(taskId);
  if (row === undefined) throw new Error(`there is no ${taskId}`);
  const [order, admissionText, recordText] = row;
  const admission = decodeAdmission(taskId, admissionText);
  const commits = db
    .prepare<[number], [number, string]>(
      'SELECT last_number, events FROM history WHERE task_order = ? ORDER BY last_number',
    )
    .raw()
    .all(order)
    .map(([lastNumber, text]) => decodeEvents(text, lastNumber));
  return { order, admission, admissionText, record: decodeRecord(recordText, admission), commits };
}

/** Each commit keeps its place in the order of the store, unless all are moved; a further one comes behind all others. */
export function rewrite(
  db: Database,
  taskId: string,
  edit: (commits: readonly Commit[]) => readonly Commit[],
  moved = false,
): void {
  const { order, admission, admissionText, commits } = storedTask(db, taskId);
  const edited = edit(commits);
  const places = db
    .prepare<[number], number>('SELECT first_sequence FROM history WHERE task_order = ? ORDER BY last_number')
    .pluck()
    .all(order);
  db.prepare('DELETE FROM history WHERE task_order = ?').run(order);
  const chain = new HistoryChain(null);
  let previous: string | null = null;
  for (const [index, events] of edited.entries()) {
    const lastNumber = events[events.length - 1]?.number ?? 0;
    const text = encodeEvents(events);
    previous = chain.linkOf({ taskId, lastNumber, previous, admission: admissionText }, text);
    const behind = db.prepare<[], number>('SELECT max(first_sequence) + 100 FROM history').pluck().get();
    db.prepare(
      'INSERT INTO history (first_sequence, task_order, last_number, events, link) VALUES (?, ?, ?, ?, ?)',
    ).run((moved ? null : places[index]) ?? behind, order, lastNumber, text, Buffer.from(previous, 'hex'));
  }
  const record = fold(admission, edited.flat());
  if (record !== null) putRecord(db, order, record);
}

/** With its seal, and the columns that follow from it. */
export function putRecord(db: Database, order: number, record: TaskRecord): void {
  const text = encodeRecord(record);
  db.prepare(
    `UPDATE tasks SET record = ?, seal = ?, version = ?, ready_order = ?, next_due_at = ?, lease_session = ?
     WHERE task_order = ?`,
  ).run(
    text,
    sealOf(record.admission.taskId, text),
    record.lastEvent,
    readyOrder(record),
    nextDueAt(record),
    record.lease?.sessionId ?? null,
    order,
  );
}

/** The record alone, over a history that says something else. */
export function editRecord(db: Database, taskId: string, edit: (record: TaskRecord) => TaskRecord): void {
  const { order, record } = storedTask(db, taskId);
  putRecord(db, order, edit(record));
}

/** Every event of a type, and how it is to be. */
export function change(type: TaskEvent['type'], edit: (event: TaskEvent) => TaskEvent) {
  return (commits: readonly Commit[]): readonly Commit[] =>
    commits.map((events) => events.map((event) => (event.type === type ? edit(event) : event)));
}

/** A further commit of one event, numbered on. */
export function append(make: (last: TaskEvent) => TaskEvent) {
  return (commits: readonly Commit[]): readonly Commit[] => {
    const last = commits.at(-1)?.at(-1);
    if (last === undefined) throw new Error('nothing to come behind');
    return [...commits, [{ ...make(last), number: last.number + 1 }]];
  };
}
