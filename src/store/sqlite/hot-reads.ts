/**
 * Short reads by key or by a partial index, answered by the writer thread between two commits: they see every commit
 * answered before them and their cost does not depend on how many tasks there are.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Diagnostic, LedgerEntry } from '../commit-plan.js';
import { type HistoryRow, type TaskRow, type TombstoneRow, weightOfRow } from '../stored-row.js';
import type { PurgeableTask } from '../purge-rows.js';
import type { DueTask, ReadyPosition } from '../task-store.js';
import type { PurgeTables } from './purge-tables.js';
import { HISTORY, TASK } from './task-columns.js';

/** The place in the ready index, admission order, task id. */
export type ReadyRow = readonly [number, number, string];

/** Admission order, task id. */
export type LeasedRow = readonly [number, string];

/** What one step of loading tasks may hand over, about; one task however heavy. */
export const MAX_BYTES_PER_LOAD = 4 * 1024 * 1024;

/** A task's row, what is left of a purged one, or nothing. */
export type LoadedRow = TaskRow | { readonly purged: TombstoneRow } | null;

type DueRow = [string, number, number];
/** Task id, version, when it may go, order. */
type PurgeableRow = [string, number, number, number];

/** Below every ready order and every time. */
const BEFORE_ALL = -Number.MAX_SAFE_INTEGER;

const WITH_ADMISSION = 'LEFT JOIN admissions a ON a.task_order = t.task_order';

export class HotReads {
  private readonly byId: Statement<[string], TaskRow>;
  private readonly byKey: Statement<[string, string], string>;
  private readonly ledger: Statement<[string, string], [string, string]>;
  private readonly event: Statement<[string, number], HistoryRow>;
  private readonly diagnostics: Statement<[string, number], [number, number, string]>;
  private readonly readyLevel: Statement<[string, number, number, number], ReadyRow>;
  private readonly readyBeyond: Statement<[string, number, number], ReadyRow>;
  private readonly dueLevel: Statement<[number, number, number], DueRow>;
  private readonly dueBeyond: Statement<[number, number, number], DueRow>;
  private readonly earliest: Statement<[], number | null>;
  private readonly oldLevel: Statement<[number, number, number], PurgeableRow>;
  private readonly oldBeyond: Statement<[number, number, number], PurgeableRow>;
  private readonly holders: Statement<[], string>;
  private readonly leased: Statement<[string, number, number], LeasedRow>;

  constructor(
    db: Database,
    private readonly purged: Pick<PurgeTables, 'find'>,
  ) {
    this.byId = db
      .prepare<[string], TaskRow>(`SELECT ${TASK} FROM tasks t ${WITH_ADMISSION} WHERE t.task_id = ?`)
      .raw();
    this.byKey = db
      .prepare<[string, string], string>(
        `SELECT coalesce(t.task_id, d.task_id) FROM task_keys k LEFT JOIN tasks t ON t.task_order = k.task_order
         LEFT JOIN tombstones d ON d.task_order = k.task_order
         WHERE k.namespace = ? AND k.idempotency_key = ?`,
      )
      .pluck();
    this.ledger = db
      .prepare<[string, string], [string, string]>(
        `SELECT content_hash, answer FROM intent_keys JOIN tasks USING (task_order)
         WHERE task_id = ? AND intent_key = ?`,
      )
      .raw();
    this.event = db
      .prepare<[string, number], HistoryRow>(
        `SELECT ${HISTORY} FROM tasks t JOIN history h ON h.task_order = t.task_order
         WHERE t.task_id = ? AND h.last_number >= ? ORDER BY h.last_number LIMIT 1`,
      )
      .raw();
    this.diagnostics = db
      .prepare<[string, number], [number, number, string]>(
        `SELECT d.epoch, d.at, d.said FROM tasks t JOIN diagnostics d ON d.task_order = t.task_order
         WHERE t.task_id = ? ORDER BY d.epoch, d.ordinal LIMIT ?`,
      )
      .raw();
    // Two statements per index, for what stands level with the position and for what lies beyond it: SQLite can't seek
    // to a pair whose second half is the row id, and a hundred thousand tasks may share one instant.
    const ready = (where: string): string =>
      `SELECT t.ready_order, t.task_order, t.task_id FROM tasks t INDEXED BY tasks_ready
       WHERE t.route_id = (SELECT route_id FROM routes WHERE route_key = ?) AND t.ready_order IS NOT NULL AND ${where}
       ORDER BY t.ready_order, t.task_order LIMIT ?`;
    this.readyLevel = db
      .prepare<[string, number, number, number], ReadyRow>(ready('t.ready_order = ? AND t.task_order > ?'))
      .raw();
    this.readyBeyond = db.prepare<[string, number, number], ReadyRow>(ready('t.ready_order > ?')).raw();
    const due = (where: string): string =>
      `SELECT task_id, next_due_at, task_order FROM tasks INDEXED BY tasks_due
       WHERE next_due_at IS NOT NULL AND ${where} ORDER BY next_due_at, task_order LIMIT ?`;
    this.dueLevel = db.prepare<[number, number, number], DueRow>(due('next_due_at = ? AND task_order > ?')).raw();
    this.dueBeyond = db.prepare<[number, number, number], DueRow>(due('next_due_at > ? AND next_due_at <= ?')).raw();
    this.earliest = db
      .prepare<[], number | null>(
        'SELECT min(next_due_at) FROM tasks INDEXED BY tasks_due WHERE next_due_at IS NOT NULL',
      )
      .pluck();
    const old = (where: string): string =>
      `SELECT task_id, version, purge_at, task_order FROM tasks INDEXED BY tasks_purgeable
       WHERE purge_at IS NOT NULL AND ${where} ORDER BY purge_at, task_order LIMIT ?`;
    this.oldLevel = db.prepare<[number, number, number], PurgeableRow>(old('purge_at = ? AND task_order > ?')).raw();
    this.oldBeyond = db.prepare<[number, number, number], PurgeableRow>(old('purge_at > ? AND purge_at <= ?')).raw();
    // Jumps from one session to the next in the index, however many tasks each holds.
    this.holders = db
      .prepare<[], string>(
        `WITH RECURSIVE holders (session_id) AS (
           SELECT min(lease_session) FROM tasks INDEXED BY tasks_leased WHERE lease_session IS NOT NULL
           UNION ALL
           SELECT (SELECT min(lease_session) FROM tasks INDEXED BY tasks_leased WHERE lease_session > session_id)
           FROM holders WHERE session_id IS NOT NULL
         ) SELECT session_id FROM holders WHERE session_id IS NOT NULL`,
      )
      .pluck();
    this.leased = db
      .prepare<[string, number, number], LeasedRow>(
        `SELECT task_order, task_id FROM tasks INDEXED BY tasks_leased
         WHERE lease_session = ? AND task_order > ? ORDER BY task_order LIMIT ?`,
      )
      .raw();
  }

  loadTasks(taskIds: readonly string[]): LoadedRow[] {
    const rows: LoadedRow[] = [];
    let bytes = 0;
    for (const taskId of taskIds) {
      const row = this.byId.get(taskId) ?? null;
      bytes += row === null ? 0 : weightOfRow(row);
      if (rows.length > 0 && bytes > MAX_BYTES_PER_LOAD) break;
      rows.push(row ?? this.tombstone(taskId));
    }
    return rows;
  }

  private tombstone(taskId: string): LoadedRow {
    const purged = this.purged.find(taskId);
    return purged === null ? null : { purged };
  }

  findTaskId(namespace: string, idempotencyKey: string): string | null {
    return this.byKey.get(namespace, idempotencyKey) ?? null;
  }

  findLedgerEntry(taskId: string, intentKey: string): LedgerEntry | null {
    const row = this.ledger.get(taskId, intentKey);
    return row === undefined ? null : { taskId, intentKey, contentHash: row[0], answerJson: row[1] };
  }

  /** The history row that holds the event, if there is one. */
  readEvent(taskId: string, eventNumber: number): HistoryRow | null {
    return this.event.get(taskId, eventNumber) ?? null;
  }

  readDiagnostics(taskId: string, limit: number): Diagnostic[] {
    return this.diagnostics.all(taskId, limit).map(([epoch, at, text]) => ({ taskId, epoch, at, text }));
  }

  readyTasks(routeKey: string, after: ReadyPosition | null, limit: number): ReadyRow[] {
    const rows = after === null ? [] : this.readyLevel.all(routeKey, after.readyOrder, after.order, limit);
    if (rows.length < limit) {
      rows.push(...this.readyBeyond.all(routeKey, after?.readyOrder ?? BEFORE_ALL, limit - rows.length));
    }
    return rows;
  }

  dueTasks(now: number, after: DueTask | null, limit: number): DueTask[] {
    const rows = after === null || after.dueAt > now ? [] : this.dueLevel.all(after.dueAt, after.order, limit);
    if (rows.length < limit) rows.push(...this.dueBeyond.all(after?.dueAt ?? BEFORE_ALL, now, limit - rows.length));
    return rows.map(([taskId, dueAt, order]) => ({ taskId, dueAt, order }));
  }

  earliestTimer(): number | null {
    return this.earliest.get() ?? null;
  }

  purgeable(now: number, after: PurgeableTask | null, limit: number): PurgeableTask[] {
    const rows = after === null || after.purgeAt > now ? [] : this.oldLevel.all(after.purgeAt, after.order, limit);
    if (rows.length < limit) rows.push(...this.oldBeyond.all(after?.purgeAt ?? BEFORE_ALL, now, limit - rows.length));
    return rows.map(([taskId, version, purgeAt, order]) => ({ taskId, version, purgeAt, order }));
  }

  leaseHolders(): string[] {
    return this.holders.all();
  }

  tasksOfSession(sessionId: string, afterOrder: number, limit: number): LeasedRow[] {
    return this.leased.all(sessionId, afterOrder, limit);
  }
}
