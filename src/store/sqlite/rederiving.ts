/**
 * What stands beside a task and follows from its record, written anew in SQLite: its key, its place as a child, counts.
 * One step for each kind of rows: a table that is derived from records gets its own here. Takes nothing from another
 * task that owns it.
 */
import type { Database } from 'better-sqlite3';
import { decodeAdmission } from '../admission-codec.js';
import { decoded } from '../decode-guards.js';
import type { KeyName } from '../audit-rows.js';
import type { Derived } from './batch-message.js';

type Order = number;

export class Rederiving {
  private readonly statements: ReturnType<typeof derivingStatements>;

  constructor(db: Database) {
    this.statements = derivingStatements(db);
  }

  all(order: Order, derived: Derived): void {
    this.key(order, derived);
    this.placeAsChild(order, derived);
    this.statements.recount.run({ order });
    this.statements.endSweep.run(order);
  }

  /** Led to by the key from now on, unless another was admitted under it, if only one that is purged. */
  key(order: Order, key: KeyName): void {
    const { namespace, idempotencyKey } = key;
    const holder = this.statements.keyHolder.get(namespace, idempotencyKey);
    if (holder === undefined || !this.owns(holder, key)) this.statements.putKey.run(namespace, idempotencyKey, order);
  }

  private owns(holder: Order, { namespace, idempotencyKey }: KeyName): boolean {
    if (this.statements.isPurged.get(holder) !== undefined) return true;
    const stored = this.statements.admission.get(holder) ?? '';
    const admission = decoded(() => decodeAdmission('', stored, 'without_args'));
    return admission.ok && admission.value.namespace === namespace && admission.value.idempotencyKey === idempotencyKey;
  }

  /** Under the parent that its admission names and no other; all of them are counted anew. */
  private placeAsChild(order: Order, { parentId, livesAsChild }: Derived): void {
    const { statements } = this;
    const under = new Set(statements.parentsOf.all(order));
    statements.dropChild.run(order);
    const parent = parentId === null ? undefined : statements.orderOf.get(parentId);
    // A purged parent goes on naming its children, and counts none.
    const named = parent ?? (parentId === null ? undefined : statements.purgedOrder.get(parentId));
    if (named !== undefined) statements.putChild.run(named, order, livesAsChild ? 1 : 0);
    if (parent !== undefined) under.add(parent);
    for (const each of under) if (statements.isTask.get(each) !== undefined) statements.recount.run({ order: each });
  }
}

function derivingStatements(db: Database) {
  return {
    keyHolder: db
      .prepare<[string, string], Order>('SELECT task_order FROM task_keys WHERE namespace = ? AND idempotency_key = ?')
      .pluck(),
    putKey: db.prepare<[string, string, Order]>(
      'INSERT OR REPLACE INTO task_keys (namespace, idempotency_key, task_order) VALUES (?, ?, ?)',
    ),
    isPurged: db.prepare<[Order], number>('SELECT 1 FROM tombstones WHERE task_order = ?').pluck(),
    isTask: db.prepare<[Order], number>('SELECT 1 FROM tasks WHERE task_order = ?').pluck(),
    orderOf: db.prepare<[string], Order>('SELECT task_order FROM tasks WHERE task_id = ?').pluck(),
    purgedOrder: db.prepare<[string], Order>('SELECT task_order FROM tombstones WHERE task_id = ?').pluck(),
    admission: db.prepare<[Order], string>('SELECT admission FROM admissions WHERE task_order = ?').pluck(),
    parentsOf: db.prepare<[Order], Order>('SELECT parent_order FROM children WHERE child_order = ?').pluck(),
    dropChild: db.prepare<[Order]>('DELETE FROM children WHERE child_order = ?'),
    putChild: db.prepare<[Order, Order, number]>(
      'INSERT OR REPLACE INTO children (parent_order, child_order, live) VALUES (?, ?, ?)',
    ),
    recount: db.prepare<{ order: Order }>(
      `INSERT OR REPLACE INTO family_counts (task_order, live_children, unsatisfied) VALUES (:order,
         (SELECT count(*) FROM children WHERE parent_order = :order AND live = 1),
         (SELECT count(*) FROM dependencies WHERE waiter_order = :order))`,
    ),
    endSweep: db.prepare<[Order]>('DELETE FROM purging WHERE task_order = ?'),
  };
}
