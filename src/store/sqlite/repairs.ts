/**
 * Repairs in SQLite: rows that are overwritten because an operator said so, guarded by everything that was seen of them.
 * Nothing here trusts what is known of the task: it reads the rows themselves.
 */
import type { Database } from 'better-sqlite3';
import { decodeAdmission } from '../admission-codec.js';
import { decoded } from '../decode-guards.js';
import { payloadPlaces } from '../history-codec.js';
import { withoutPayloads } from '../history-row.js';
import { fingerprintOf } from './audit-reads.js';
import type { Derived, RepairRow } from './batch-message.js';
import type { KnownTask, KnownTasks } from './known-tasks.js';

type Order = number;

export class Repairs {
  private readonly statements: ReturnType<typeof repairStatements>;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
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
    statements.updateTask.run(version, routeId, readyOrder, nextDueAt, leaseSession, purgeAt, record, order);
    if (rederive !== null) this.rederive(order, rederive);
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

  private rederive(order: Order, derived: Derived): void {
    const { statements } = this;
    const { namespace, idempotencyKey, parentId, livesAsChild } = derived;
    const holder = statements.keyHolder.get(namespace, idempotencyKey);
    if (holder === undefined || !this.owns(holder, derived)) statements.putKey.run(namespace, idempotencyKey, order);
    if (parentId !== null) {
      const parent = this.tasks.get(parentId)?.order;
      const purged = parent === undefined ? statements.purgedOrder.get(parentId) : undefined;
      const named = parent ?? purged;
      if (named !== undefined) statements.putChild.run(named, order, livesAsChild ? 1 : 0);
      if (parent !== undefined) statements.recount.run({ order: parent });
    }
    statements.recount.run({ order });
  }

  /** Whether that task was admitted under this key, if only a purged one: then the key is not taken from it. */
  private owns(holder: Order, { namespace, idempotencyKey }: Derived): boolean {
    if (this.statements.isPurged.get(holder) !== undefined) return true;
    const stored = this.statements.admission.get(holder) ?? '';
    const admission = decoded(() => decodeAdmission('', stored, 'without_args'));
    return admission.ok && admission.value.namespace === namespace && admission.value.idempotencyKey === idempotencyKey;
  }
}

function repairStatements(db: Database) {
  return {
    seen: db
      .prepare<[string], [Order, number, string]>('SELECT task_order, version, record FROM tasks WHERE task_id = ?')
      .raw(),
    isPurged: db.prepare<[Order], number>('SELECT 1 FROM tombstones WHERE task_order = ?').pluck(),
    purgedOrder: db.prepare<[string], Order>('SELECT task_order FROM tombstones WHERE task_id = ?').pluck(),
    end: db
      .prepare<[Order], [number, string | null]>(
        `SELECT last_number, nullif(lower(hex(link)), '') FROM history
         WHERE task_order = ? ORDER BY last_number DESC LIMIT 1`,
      )
      .raw(),
    updateTask: db.prepare<[number, number, number | null, number | null, string | null, number | null, string, Order]>(
      `UPDATE tasks SET version = ?, route_id = ?, ready_order = ?, next_due_at = ?, lease_session = ?, purge_at = ?,
         record = ? WHERE task_order = ?`,
    ),
    rowOf: db
      .prepare<[Order, number], [number, number, string]>(
        `SELECT first_sequence, last_number, events FROM history
         WHERE task_order = ? AND last_number >= ? ORDER BY last_number LIMIT 1`,
      )
      .raw(),
    updateRow: db.prepare<[string, number]>('UPDATE history SET events = ? WHERE first_sequence = ?'),
    keyHolder: db
      .prepare<[string, string], Order>('SELECT task_order FROM task_keys WHERE namespace = ? AND idempotency_key = ?')
      .pluck(),
    putKey: db.prepare<[string, string, Order]>(
      'INSERT OR REPLACE INTO task_keys (namespace, idempotency_key, task_order) VALUES (?, ?, ?)',
    ),
    admission: db.prepare<[Order], string>('SELECT admission FROM admissions WHERE task_order = ?').pluck(),
    putChild: db.prepare<[Order, Order, number]>(
      'INSERT OR REPLACE INTO children (parent_order, child_order, live) VALUES (?, ?, ?)',
    ),
    recount: db.prepare<{ order: Order }>(
      `INSERT OR REPLACE INTO family_counts (task_order, live_children, unsatisfied) VALUES (:order,
         (SELECT count(*) FROM children WHERE parent_order = :order AND live = 1),
         (SELECT count(*) FROM dependencies WHERE waiter_order = :order))`,
    ),
  };
}
