/**
 * Purged tasks in SQLite. Taking one away is a few rows in the transaction of its plan: the tombstone comes, its row in
 * `tasks` goes, and with that nothing reads the rest any more, since every read comes by way of it. The rest, of any
 * size, is swept in bounded steps; `purging` says of which tasks there is any, whatever becomes of the process.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { OperationEntry, OperationWrite, PurgeWrite, TombstoneRepair } from '../purge-rows.js';
import type { TombstoneRow } from '../stored-row.js';
import { encodeTombstone } from '../tombstone-codec.js';
import type { Counters } from './counters.js';
import type { KnownTasks } from './known-tasks.js';
import type { TombstoneRepairs } from './tombstone-repairs.js';

type Order = number;

/** What one step removes at most: about the time of one large commit. One row, however heavy, is always removed. */
export const MAX_ROWS_PER_SWEEP = 1_000;
const MAX_BYTES_PER_SWEEP = 8 * 1024 * 1024;
/** Operations forgotten with one that is kept, so that none of them costs more than it adds. */
const FORGOTTEN_PER_OPERATION = 16;

export class PurgeTables {
  private readonly statements: ReturnType<typeof purgeStatements>;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
    private readonly counters: Counters,
    private readonly repairs: TombstoneRepairs,
  ) {
    this.statements = purgeStatements(db);
  }

  /** Whether a purged task has this id. Costs nothing while nothing was ever purged. */
  hasId(taskId: string): boolean {
    return this.counters.purges > 0 && this.statements.byId.get(taskId) !== undefined;
  }

  find(taskId: string): TombstoneRow | null {
    return this.counters.purges > 0 ? (this.statements.byId.get(taskId) ?? null) : null;
  }

  /** The plan was checked. */
  purge({ taskId, tombstone }: PurgeWrite): void {
    const { statements, counters } = this;
    const task = this.tasks.get(taskId);
    if (task === null) throw new Error(`a checked purge of ${taskId} has no task`);
    const { order } = task;
    const lastSequence = this.lastSequence(order);
    counters.horizon = Math.max(counters.horizon, lastSequence);
    counters.purges += 1;
    statements.setMeta.run('horizon', String(counters.horizon));
    statements.setMeta.run('purges', String(counters.purges));
    const first = statements.firstSequence.get(order) ?? 0;
    const parent = statements.parentOf.get(order) ?? null;
    statements.insert.run(order, taskId, parent, first, encodeTombstone(tombstone));
    statements.deleteTask.run(order);
    statements.deleteChild.run(order);
    statements.deleteCounts.run(order);
    statements.begin.run(order);
    this.tasks.drop(taskId);
  }

  /** Out of the index alone: the last row holds what lies between its number and that of the row before. */
  private lastSequence(order: Order): number {
    const [last, before] = this.statements.lastRows.all(order);
    if (last === undefined) return this.counters.horizon;
    const events = last[1] - (before?.[1] ?? 0);
    return Math.min(last[0] + events, this.counters.nextSequence) - 1;
  }

  fits(repair: TombstoneRepair): boolean {
    return this.repairs.fits(repair);
  }

  /** The plan was checked. */
  repair(repair: TombstoneRepair): void {
    const { statements, counters } = this;
    this.repairs.write(repair);
    counters.horizon = Math.max(counters.horizon, repair.horizon);
    statements.setMeta.run('horizon', String(counters.horizon));
  }

  /** One step, inside a transaction of its own; whether there is more. */
  sweep(): boolean {
    const { statements } = this;
    let rows = MAX_ROWS_PER_SWEEP;
    let bytes = MAX_BYTES_PER_SWEEP;
    for (const order of statements.purging.all(MAX_ROWS_PER_SWEEP)) {
      for (const part of statements.parts) {
        for (const [first, second, size] of part.rows.all(order, rows)) {
          part.remove.run(order, first, second);
          rows -= 1;
          bytes -= size;
          if (rows <= 0 || bytes <= 0) return true;
        }
      }
      statements.end.run(order);
      rows -= 1;
      if (rows <= 0) return true;
    }
    return false;
  }

  findOperation(key: string): OperationEntry | null {
    const row = this.statements.operation.get(key);
    return row === undefined ? null : { key, contentHash: row[0], answerJson: row[1], at: row[2] };
  }

  keepOperation({ entry, forgetBefore }: OperationWrite): void {
    this.statements.forgetOperations.run(forgetBefore, FORGOTTEN_PER_OPERATION);
    this.statements.keepOperation.run(entry.key, entry.contentHash, entry.answerJson, entry.at);
  }
}

/** Rows of one kind that a purged task may have left: their key beside the order, about what they weigh, and how to go. */
interface Part {
  readonly rows: Statement<[Order, number], [number | string, number, number]>;
  readonly remove: Statement<[Order, number | string, number]>;
}

function purgeStatements(db: Database) {
  const part = (rows: string, remove: string): Part => ({
    rows: db.prepare<[Order, number], [number | string, number, number]>(rows).raw(),
    remove: db.prepare<[Order, number | string, number]>(remove),
  });
  return {
    byId: db
      .prepare<[string], TombstoneRow>(
        'SELECT task_order, task_id, first_sequence, tombstone FROM tombstones WHERE task_id = ?',
      )
      .raw(),
    insert: db.prepare<[Order, string, Order | null, number, string]>(
      'INSERT INTO tombstones (task_order, task_id, parent_order, first_sequence, tombstone) VALUES (?, ?, ?, ?, ?)',
    ),
    setMeta: db.prepare<[string, string]>('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
    lastRows: db
      .prepare<[Order], [number, number]>(
        'SELECT first_sequence, last_number FROM history WHERE task_order = ? ORDER BY last_number DESC LIMIT 2',
      )
      .raw(),
    firstSequence: db
      .prepare<[Order], number>('SELECT first_sequence FROM history WHERE task_order = ? ORDER BY last_number LIMIT 1')
      .pluck(),
    parentOf: db.prepare<[Order], Order>('SELECT parent_order FROM children WHERE child_order = ?').pluck(),
    deleteTask: db.prepare<[Order]>('DELETE FROM tasks WHERE task_order = ?'),
    deleteChild: db.prepare<[Order]>('DELETE FROM children WHERE child_order = ?'),
    deleteCounts: db.prepare<[Order]>('DELETE FROM family_counts WHERE task_order = ?'),
    begin: db.prepare<[Order]>('INSERT INTO purging (task_order) VALUES (?)'),
    end: db.prepare<[Order]>('DELETE FROM purging WHERE task_order = ?'),
    purging: db.prepare<[number], Order>('SELECT task_order FROM purging ORDER BY task_order LIMIT ?').pluck(),
    parts: [
      part(
        `SELECT first_sequence, 0, octet_length(events) FROM history WHERE task_order = ? LIMIT ?`,
        'DELETE FROM history WHERE task_order = ? AND first_sequence = ? AND 0 = ?',
      ),
      part(
        'SELECT intent_key, 0, octet_length(answer) FROM intent_keys WHERE task_order = ? LIMIT ?',
        'DELETE FROM intent_keys WHERE task_order = ? AND intent_key = ? AND 0 = ?',
      ),
      part(
        'SELECT epoch, ordinal, octet_length(said) FROM diagnostics WHERE task_order = ? LIMIT ?',
        'DELETE FROM diagnostics WHERE task_order = ? AND epoch = ? AND ordinal = ?',
      ),
      part(
        'SELECT 0, 0, octet_length(admission) FROM admissions WHERE task_order = ? LIMIT ?',
        'DELETE FROM admissions WHERE task_order = ? AND 0 = ? AND 0 = ?',
      ),
    ],
    operation: db
      .prepare<[string], [string, string, number]>(
        'SELECT content_hash, answer, at FROM operations WHERE operation_key = ?',
      )
      .raw(),
    keepOperation: db.prepare<[string, string, string, number]>(
      'INSERT OR IGNORE INTO operations (operation_key, content_hash, answer, at) VALUES (?, ?, ?, ?)',
    ),
    forgetOperations: db.prepare<[number, number]>(
      `DELETE FROM operations WHERE operation_key IN
         (SELECT operation_key FROM operations WHERE at < ? ORDER BY at LIMIT ?)`,
    ),
  };
}
