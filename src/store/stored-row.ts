/**
 * Rows as the SQL adapters read them, turned into what the port returns. Everything a reader may rely on is checked
 * here: format, schema, version column against body and against the last event of the history, and the seal.
 */
import { decodeAdmission } from './admission-codec.js';
import { Damage, decoded, textOf } from './decode-guards.js';
import type { Link } from './history-chain.js';
import { decodeEvents } from './history-codec.js';
import { decodeRecord } from './record-codec.js';
import { sealState } from './record-seal.js';
import { StoreError } from './store-error.js';
import type { PurgedTask, StoredEvent, StoredTask } from './task-store.js';
import { decodeTombstone } from './tombstone-codec.js';

/** Order, task id, version, number of the last event in the history, record, admission, seal of the record. */
export type TaskRow = readonly [number, string, number, number | null, string, string | null, number | null];

/** Order, task id, first sequence, tombstone. */
export type TombstoneRow = readonly [number, string, number, string];

/** First sequence, number of the last event, events, link; null for a commit from before there were links. */
export type HistoryRow = readonly [number, number, string, Link | null];

export function taskOfRow(row: TaskRow, args: 'with_args' | 'without_args' = 'with_args'): StoredTask {
  const [order, taskId, version, lastNumber, record, stored, seal] = row;
  const read = decoded(() => {
    const admission = decodeAdmission(taskId, textOf(stored, 'admission'), args);
    const value = decodeRecord(textOf(record, 'record'), admission);
    if (value.lastEvent !== version) throw new Damage(`version ${version} holds a record of event ${value.lastEvent}`);
    if (lastNumber !== version) throw new Damage(`version ${version} has a history up to ${lastNumber ?? 'nothing'}`);
    if (sealState(taskId, record, seal) === 'broken') throw new Damage('the record is not the one that was written');
    return value;
  });
  return read.ok
    ? { kind: 'task', taskId, order, record: read.value }
    : { kind: 'damaged', taskId, order, detail: read.detail };
}

/** A tombstone that cannot be read is a damaged task: its name is not free, and nothing else is known of it. */
export function purgedOfRow([order, taskId, firstSequence, stored]: TombstoneRow): PurgedTask | StoredTask {
  const tombstone = decoded(() => decodeTombstone(taskId, textOf(stored, 'tombstone')));
  return tombstone.ok
    ? { kind: 'purged', taskId, order, tombstone: tombstone.value, firstSequence }
    : { kind: 'damaged', taskId, order, detail: tombstone.detail };
}

/** About what a row weighs on its way between threads, in bytes. */
export function weightOfRow([, , , , record, admission]: TaskRow): number {
  return record.length + (admission?.length ?? 0);
}

/** Events above `afterNumber` out of rows in order; rows are read as they are asked for. Throws StoreError `damaged`. */
export function* eventsOfRows(
  taskId: string,
  rows: readonly HistoryRow[],
  afterNumber: number,
): Generator<StoredEvent, void, undefined> {
  for (const row of rows) {
    for (const stored of eventsOfRow(taskId, row)) if (stored.event.number > afterNumber) yield stored;
  }
}

export function eventsOfRow(
  taskId: string,
  [firstSequence, lastNumber, row, link]: HistoryRow,
): readonly StoredEvent[] {
  const read = decoded(() => decodeEvents(textOf(row, 'history row'), lastNumber));
  if (!read.ok) throw new StoreError('damaged', `history of ${taskId}: ${read.detail}`);
  return read.value.map((event, index) => ({ sequence: firstSequence + index, taskId, event, link }));
}
