/**
 * Families and dependencies in SQLite: edges, counts and what is still to be told, by the orders of their tasks. Only
 * plans that say something of a family come here. Counts are changed by addition in the transaction that holds them.
 */
import type { Database, Statement } from 'better-sqlite3';
import { CONDITIONS, CONDITION_CODES, OUTCOMES, OUTCOME_CODES } from '../code-tables.js';
import { nameOf } from '../decode-guards.js';
import type { FamilyView } from '../family-guards.js';
import {
  type ChildRow,
  type FamilyCounts,
  type LinkWrite,
  NO_COUNTS,
  type StoredPropagation,
  type WaiterRow,
} from '../family-rows.js';
import type { KnownTasks } from './known-tasks.js';

type Order = number;

/** A row of any other cannot be worked off, and must not keep the others from it: an audit tells of it. */
const KNOWN_OUTCOMES = Object.values(OUTCOME_CODES).join(', ');

export class FamilyTables implements FamilyView {
  private readonly statements: ReturnType<typeof familyStatements>;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
  ) {
    this.statements = familyStatements(db);
  }

  childLives(parentId: string, childId: string): boolean | null {
    const live = this.statements.childLives.get(this.orderOf(parentId), this.orderOf(childId));
    return live === undefined ? null : live === 1;
  }

  hasEdge(upstreamId: string, generation: number, waiterId: string): boolean {
    const upstream = this.upstreamOf(upstreamId);
    return this.statements.hasEdge.get(upstream, generation, this.orderOf(waiterId)) !== undefined;
  }

  counts(taskId: string): FamilyCounts {
    const row = this.statements.counts.get(this.orderOf(taskId));
    return row === undefined ? NO_COUNTS : { liveChildren: row[0], unsatisfied: row[1] };
  }

  propagationOf(taskId: string, generation: number): number | null {
    return this.statements.propagationOf.get(this.orderOf(taskId), generation) ?? null;
  }

  isAwaited(taskId: string): boolean {
    return this.statements.isAwaited.get(this.orderOf(taskId)) !== undefined;
  }

  hasNews(taskId: string): boolean {
    return this.statements.hasNews.get(this.orderOf(taskId)) !== undefined;
  }

  liveChildren(parentId: string, afterOrder: number, limit: number): ChildRow[] {
    const rows = this.statements.liveChildren.all(this.orderOf(parentId), afterOrder, limit);
    return rows.map(([taskId, order]) => ({ taskId, order }));
  }

  waitersOf(taskId: string, generation: number, afterOrder: number, limit: number): WaiterRow[] {
    const rows = this.statements.waitersOf.all(this.orderOf(taskId), generation, afterOrder, limit);
    return rows.map(([waiterId, order, condition, unsatisfied]) => ({
      taskId: waiterId,
      order,
      condition: nameOf(CONDITIONS, condition, 'condition'),
      unsatisfied: unsatisfied ?? 0,
    }));
  }

  propagations(after: StoredPropagation | null, limit: number): StoredPropagation[] {
    return this.statements.propagations
      .all(after?.order ?? 0, after?.generation ?? 0, limit)
      .map(([order, taskId, generation, outcome, eventNumber]) => ({
        order,
        taskId,
        generation,
        outcome: nameOf(OUTCOMES, outcome, 'outcome'),
        eventNumber,
      }));
  }

  write(link: LinkWrite): void {
    const { statements } = this;
    switch (link.kind) {
      case 'child_admitted': {
        const parent = this.orderOf(link.parentId);
        statements.insertChild.run(parent, this.orderOf(link.childId), link.live ? 1 : 0);
        if (link.live) statements.count.run({ task: parent, children: 1, unsatisfied: 0 });
        return;
      }
      case 'child_revived':
        return this.setLive(link.parentId, link.childId, 1);
      case 'child_ended':
        return this.setLive(link.parentId, link.childId, 0);
      case 'edge_opened': {
        const waiter = this.orderOf(link.waiterId);
        const condition = CONDITION_CODES[link.condition];
        statements.openEdge.run(this.orderOf(link.upstreamId), link.generation, waiter, condition);
        statements.count.run({ task: waiter, children: 0, unsatisfied: 1 });
        return;
      }
      case 'edge_closed': {
        const waiter = this.orderOf(link.waiterId);
        statements.closeEdge.run(this.upstreamOf(link.upstreamId), link.generation, waiter);
        statements.count.run({ task: waiter, children: 0, unsatisfied: -1 });
        return;
      }
      case 'edges_dropped': {
        const waiter = this.orderOf(link.waiterId);
        const { changes } = statements.dropEdges.run(waiter);
        if (changes > 0) statements.count.run({ task: waiter, children: 0, unsatisfied: -changes });
        return;
      }
      case 'propagation': {
        const { taskId, generation, outcome, eventNumber } = link.row;
        statements.putPropagation.run(this.orderOf(taskId), generation, OUTCOME_CODES[outcome], eventNumber);
        return;
      }
      case 'propagated':
        statements.endPropagation.run(this.orderOf(link.row.taskId), link.row.generation);
        return;
      case 'no_live_children':
      case 'edges_left':
        return;
    }
  }

  private setLive(parentId: string, childId: string, live: 0 | 1): void {
    const parent = this.orderOf(parentId);
    this.statements.setLive.run(live, parent, this.orderOf(childId));
    this.statements.count.run({ task: parent, children: live === 1 ? 1 : -1, unsatisfied: 0 });
  }

  /** Also of one that was purged all the same: its edge is closed by whoever mends it. */
  private upstreamOf(taskId: string): Order {
    return this.tasks.get(taskId)?.order ?? this.statements.purgedOrder.get(taskId) ?? 0;
  }

  /** 0 for a task that is not there: no row has it. */
  private orderOf(taskId: string): Order {
    return this.tasks.get(taskId)?.order ?? 0;
  }
}

function familyStatements(db: Database) {
  const count: Statement<{ task: Order; children: number; unsatisfied: number }> = db.prepare(
    `INSERT INTO family_counts (task_order, live_children, unsatisfied) VALUES (:task, :children, :unsatisfied)
     ON CONFLICT (task_order) DO UPDATE
       SET live_children = live_children + :children, unsatisfied = unsatisfied + :unsatisfied`,
  );
  return {
    count,
    counts: db
      .prepare<[Order], [number, number]>('SELECT live_children, unsatisfied FROM family_counts WHERE task_order = ?')
      .raw(),
    childLives: db
      .prepare<[Order, Order], number>('SELECT live FROM children WHERE parent_order = ? AND child_order = ?')
      .pluck(),
    insertChild: db.prepare<[Order, Order, number]>(
      'INSERT INTO children (parent_order, child_order, live) VALUES (?, ?, ?)',
    ),
    setLive: db.prepare<[number, Order, Order]>(
      'UPDATE children SET live = ? WHERE parent_order = ? AND child_order = ?',
    ),
    liveChildren: db
      .prepare<[Order, Order, number], [string, number]>(
        `SELECT t.task_id, c.child_order FROM children c INDEXED BY children_live
         JOIN tasks t ON t.task_order = c.child_order
         WHERE c.parent_order = ? AND c.live = 1 AND c.child_order > ? ORDER BY c.child_order LIMIT ?`,
      )
      .raw(),
    hasEdge: db
      .prepare<[Order, number, Order], number>(
        'SELECT 1 FROM dependencies WHERE upstream_order = ? AND generation = ? AND waiter_order = ?',
      )
      .pluck(),
    isAwaited: db.prepare<[Order], number>('SELECT 1 FROM dependencies WHERE upstream_order = ? LIMIT 1').pluck(),
    hasNews: db.prepare<[Order], number>('SELECT 1 FROM propagations WHERE task_order = ? LIMIT 1').pluck(),
    purgedOrder: db.prepare<[string], Order>('SELECT task_order FROM tombstones WHERE task_id = ?').pluck(),
    openEdge: db.prepare<[Order, number, Order, number]>(
      'INSERT INTO dependencies (upstream_order, generation, waiter_order, condition) VALUES (?, ?, ?, ?)',
    ),
    closeEdge: db.prepare<[Order, number, Order]>(
      'DELETE FROM dependencies WHERE upstream_order = ? AND generation = ? AND waiter_order = ?',
    ),
    dropEdges: db.prepare<[Order]>('DELETE FROM dependencies WHERE waiter_order = ?'),
    waitersOf: db
      .prepare<[Order, number, Order, number], [string, number, number, number | null]>(
        `SELECT t.task_id, d.waiter_order, d.condition, f.unsatisfied FROM dependencies d
         JOIN tasks t ON t.task_order = d.waiter_order
         LEFT JOIN family_counts f ON f.task_order = d.waiter_order
         WHERE d.upstream_order = ? AND d.generation = ? AND d.waiter_order > ? ORDER BY d.waiter_order LIMIT ?`,
      )
      .raw(),
    propagationOf: db
      .prepare<[Order, number], number>('SELECT event_number FROM propagations WHERE task_order = ? AND generation = ?')
      .pluck(),
    putPropagation: db.prepare<[Order, number, number, number]>(
      'INSERT OR REPLACE INTO propagations (task_order, generation, outcome, event_number) VALUES (?, ?, ?, ?)',
    ),
    endPropagation: db.prepare<[Order, number]>('DELETE FROM propagations WHERE task_order = ? AND generation = ?'),
    propagations: db
      .prepare<[Order, number, number], [Order, string, number, number, number]>(
        `SELECT p.task_order, t.task_id, p.generation, p.outcome, p.event_number FROM propagations p
         JOIN tasks t ON t.task_order = p.task_order
         WHERE (p.task_order, p.generation) > (?, ?) AND p.outcome IN (${KNOWN_OUTCOMES}) ORDER BY p.task_order, p.generation LIMIT ?`,
      )
      .raw(),
  };
}
