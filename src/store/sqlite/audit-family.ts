/**
 * What an audit reads of a task's family: counts and what they count, its place as a child, its edges, and what is still
 * to be told. Bounded whatever is stored; read within the snapshot of its task.
 */
import type { Database } from 'better-sqlite3';
import type { DependencyCondition } from '../../kernel/admission/family-policy.js';
import { MAX_DEPENDENCIES } from '../../kernel/admission/family-policy.js';
import type { Admission, TaskRecord } from '../../kernel/record.js';
import { isTerminal } from '../../kernel/status.js';
import { withoutArgs } from '../admission-codec.js';
import {
  type AuditedEdge,
  type AuditedPropagation,
  MAX_CHILDREN_LOOKED_AT,
  MAX_NEWS_AUDITED,
  type PlaceAsChild,
} from '../audit-rows.js';
import { CONDITIONS, OUTCOMES } from '../code-tables.js';
import { type TaskRow, taskOfRow } from '../stored-row.js';
import { TASK } from './task-columns.js';

type Order = number;

export interface FamilyRow {
  /** Live children and open dependencies, as counted. */
  readonly counts: readonly [number, number];
  /** The same, as there are. */
  readonly found: readonly [number, number];
  readonly asChild: readonly PlaceAsChild[];
  readonly parent: TaskRow | null;
  /** The generations of its parent of which something is still to be told. */
  readonly parentPropagates: readonly number[];
  readonly hasUnaskedChild: boolean;
  readonly propagations: readonly AuditedPropagation[];
  readonly awaited: readonly number[];
  readonly edges: readonly AuditedEdge[];
}

/** Generation, outcome, event number. */
type PropagationColumns = [number, number, number];
/** The id of a task, that of a tombstone, generation, condition. */
type EdgeColumns = [string | null, string | null, number, number];

export class AuditFamily {
  private readonly statements: ReturnType<typeof familyStatements>;

  constructor(db: Database) {
    this.statements = familyStatements(db);
  }

  /** Of one task; null where its admission or its record cannot be read. */
  read(order: Order, admission: Admission | null, record: TaskRecord | null): FamilyRow {
    const { statements } = this;
    const link = admission?.policy.parent ?? null;
    const parent = link === null ? null : (statements.task.get(link.taskId) ?? null);
    const named = parent?.[0] ?? (link === null ? null : (statements.purgedOrder.get(link.taskId) ?? null));
    const propagations = this.propagations(order);
    return {
      counts: statements.counts.get(order) ?? [0, 0],
      found: [statements.liveChildren.get(order) ?? 0, statements.openEdges.get(order) ?? 0],
      asChild: statements.asChild.all(order).map(([under, live]) => ({ isNamed: under === named, live: live === 1 })),
      parent: parent === null ? null : withoutArgsOf(parent),
      parentPropagates: parent === null ? [] : this.propagations(parent[0]).map(({ generation }) => generation),
      hasUnaskedChild: record !== null && this.hasUnaskedChild(order, record),
      propagations,
      awaited: this.awaited(order),
      edges: statements.edges.all(order, MAX_DEPENDENCIES + 1).map(edgeOf),
    };
  }

  private propagations(order: Order): readonly AuditedPropagation[] {
    return this.statements.propagations
      .all(order, MAX_NEWS_AUDITED)
      .map(([generation, outcome, eventNumber]) => ({ generation, outcome: OUTCOMES[outcome] ?? null, eventNumber }));
  }

  /** From one generation to the next by the index, however many wait for each. */
  private awaited(order: Order): readonly number[] {
    const generations: number[] = [];
    for (let after = Number.MIN_SAFE_INTEGER; generations.length < MAX_NEWS_AUDITED;) {
      const next = this.statements.awaited.get(order, after) ?? null;
      if (next === null) break;
      generations.push(next);
      after = next;
    }
    return generations;
  }

  private hasUnaskedChild(order: Order, { status, cancellation }: TaskRecord): boolean {
    if (cancellation === null || isTerminal(status)) return false;
    return this.statements.firstChildren.all(order, MAX_CHILDREN_LOOKED_AT).some((row) => {
      const child = taskOfRow(withoutArgsOf(row), 'without_args');
      return child.kind === 'task' && !isTerminal(child.record.status) && child.record.cancellation === null;
    });
  }
}

function withoutArgsOf([order, taskId, version, lastNumber, record, admission, seal]: TaskRow): TaskRow {
  return [order, taskId, version, lastNumber, record, admission === null ? null : withoutArgs(admission), seal];
}

function edgeOf([taskId, purgedId, generation, code]: EdgeColumns): AuditedEdge {
  const condition: DependencyCondition | null = CONDITIONS[code] ?? null;
  const upstream = taskId !== null ? 'task' : purgedId !== null ? 'purged' : 'nowhere';
  return { upstreamId: taskId ?? purgedId, upstream, generation, condition };
}

function familyStatements(db: Database) {
  return {
    counts: db
      .prepare<[Order], readonly [number, number]>(
        'SELECT live_children, unsatisfied FROM family_counts WHERE task_order = ?',
      )
      .raw(),
    liveChildren: db
      .prepare<[Order], number>('SELECT count(*) FROM children WHERE parent_order = ? AND live = 1')
      .pluck(),
    openEdges: db.prepare<[Order], number>('SELECT count(*) FROM dependencies WHERE waiter_order = ?').pluck(),
    asChild: db
      .prepare<[Order], [Order, number]>('SELECT parent_order, live FROM children WHERE child_order = ? LIMIT 2')
      .raw(),
    task: db
      .prepare<[string], TaskRow>(
        `SELECT ${TASK} FROM tasks t LEFT JOIN admissions a ON a.task_order = t.task_order WHERE t.task_id = ?`,
      )
      .raw(),
    purgedOrder: db.prepare<[string], Order>('SELECT task_order FROM tombstones WHERE task_id = ?').pluck(),
    firstChildren: db
      .prepare<[Order, number], TaskRow>(
        `SELECT ${TASK} FROM children c INDEXED BY children_live JOIN tasks t ON t.task_order = c.child_order
         LEFT JOIN admissions a ON a.task_order = t.task_order
         WHERE c.parent_order = ? AND c.live = 1 ORDER BY c.child_order LIMIT ?`,
      )
      .raw(),
    propagations: db
      .prepare<[Order, number], PropagationColumns>(
        'SELECT generation, outcome, event_number FROM propagations WHERE task_order = ? ORDER BY generation LIMIT ?',
      )
      .raw(),
    awaited: db
      .prepare<[Order, number], number | null>(
        'SELECT min(generation) FROM dependencies WHERE upstream_order = ? AND generation > ?',
      )
      .pluck(),
    edges: db
      .prepare<[Order, number], EdgeColumns>(
        `SELECT t.task_id, d.task_id, e.generation, e.condition FROM dependencies e
         LEFT JOIN tasks t ON t.task_order = e.upstream_order
         LEFT JOIN tombstones d ON d.task_order = e.upstream_order
         WHERE e.waiter_order = ? LIMIT ?`,
      )
      .raw(),
  };
}
