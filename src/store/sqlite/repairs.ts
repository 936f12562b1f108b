/**
 * Repairs in SQLite: rows that are overwritten because an operator said so, guarded by everything that was seen of them.
 * Nothing here trusts what is known of the task: it reads the rows themselves.
 */
import type { Database } from 'better-sqlite3';
import { payloadPlaces } from '../history-codec.js';
import { withoutPayloads } from '../history-row.js';
import { sealOf } from '../record-seal.js';
import { fingerprintOf } from './audit-reads.js';
import type { RepairRow } from './batch-message.js';
import type { KnownTask, KnownTasks } from './known-tasks.js';
import type { Rederiving } from './rederiving.js';

type Order = number;

export class Repairs {
  private readonly statements: ReturnType<typeof repairStatements>;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
    private readonly rederiving: Rederiving,
  ) {
    this.statements = repairStatements(db);
  }

  /** Whether the task still is what the repair was decided on. */
  fits({ taskId, fingerprint }: RepairRow): boolean {
    const seen = this.statements.seen.get(taskId);
    if (seen === undefined) return false;
    const [order, version, record] = seen;
    const [lastNumber = null, lastLink = null] = this.statements.end.get(order) ?? [];
    return fingerprintOf(version, record, lastNumber, lastLink) === fingerprint;
  }

  /** All but the event itself, whose number the task then has as its version. The repair was found to fit. */
  write(repair: RepairRow, routeId: number): KnownTask {
    const { statements } = this;
    const { taskId, version, readyOrder, nextDueAt, leaseSession, purgeAt, record, rederive, redact } = repair;
    const order = statements.seen.get(taskId)?.[0];
    if (order === undefined) throw new Error(`a checked repair of ${taskId} has no task`);
    if (redact !== null) this.redact(order, redact);
    const seal = sealOf(taskId, record);
    statements.updateTask.run(version, routeId, readyOrder, nextDueAt, leaseSession, purgeAt, record, seal, order);
    if (rederive !== null) this.rederiving.all(order, rederive);
    // The link of its last commit is looked up: what is known of it may be of another history.
    return this.tasks.remember(taskId, { order, version, writtenIn: this.tasks.batch });
  }

  private redact(order: Order, eventNumber: number): void {
    const row = this.statements.rowOf.get(order, eventNumber);
    if (row === undefined) throw new Error(`there is no event ${eventNumber} to take a payload from`);
    const [firstSequence, lastNumber, text] = row;
    const places = payloadPlaces(text, lastNumber, eventNumber);
    this.statements.updateRow.run(withoutPayloads(text, places), firstSequence);
  }
}

function repairStatements(db: Database) {
  return {
    seen: db
      .prepare<[string], [Order, number, string]>('SELECT task_order, version, record FROM tasks WHERE task_id = ?')
      .raw(),
    end: db
      .prepare<[Order], [number, string | null]>(
        `SELECT last_number, nullif(lower(hex(link)), '') FROM history
         WHERE task_order = ? ORDER BY last_number DESC LIMIT 1`,
      )
      .raw(),
    updateTask: db.prepare<
      [number, number, number | null, number | null, string | null, number | null, string, number, Order]
    >(
      `UPDATE tasks SET version = ?, route_id = ?, ready_order = ?, next_due_at = ?, lease_session = ?, purge_at = ?,
         record = ?, seal = ? WHERE task_order = ?`,
    ),
    rowOf: db
      .prepare<[Order, number], [number, number, string]>(
        `SELECT first_sequence, last_number, events FROM history
         WHERE task_order = ? AND last_number >= ? ORDER BY last_number LIMIT 1`,
      )
      .raw(),
    updateRow: db.prepare<[string, number]>('UPDATE history SET events = ? WHERE first_sequence = ?'),
  };
}
