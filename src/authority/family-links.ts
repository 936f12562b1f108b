/**
 * What a decision on one record says of its family: derived from where the record came from and where it went, so that
 * no work can forget it. Absent for a task without family, and that is nearly every task.
 */
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import type { EdgeOpened, LinkWrite, Propagation } from '../store/family-rows.js';

/** An edge that a decision closes: its waiter is the task decided on. */
export interface ClosedEdge {
  readonly upstreamId: string;
  readonly generation: number;
}

export interface Decided {
  /** Null: the decision admits it. */
  readonly base: TaskRecord | null;
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
  readonly opened: readonly EdgeOpened[];
  readonly closed: readonly ClosedEdge[];
}

export function linksOf(decided: Decided): readonly LinkWrite[] | undefined {
  const { base, record } = decided;
  // What was admitted and ended in one transaction never waited.
  const opened = record.openDependencies ? decided.opened : [];
  const { parent } = record.admission.policy;
  const waits = opened.length > 0 || base?.openDependencies === true;
  const followed = record.hasChildren || record.hasWaiters || base?.hasChildren === true;
  if (parent === null && !waits && !followed) return undefined;
  const links: LinkWrite[] = [...opened];
  if (parent !== null) links.push(...childLinks(decided, parent.taskId, parent.attached));
  if (waits) links.push(...waiterLinks(decided));
  if (followed) links.push(...leaderLinks(decided));
  return links.length === 0 ? undefined : links;
}

function childLinks({ base, record }: Decided, parentId: string, attached: boolean): LinkWrite[] {
  const childId = record.admission.taskId;
  const live = attached && !isTerminal(record.status);
  if (base === null) return [{ kind: 'child_admitted', parentId, childId, live }];
  const lived = attached && !isTerminal(base.status);
  if (live === lived) return [];
  return [{ kind: live ? 'child_revived' : 'child_ended', parentId, childId }];
}

function waiterLinks({ base, record, events, closed }: Decided): LinkWrite[] {
  if (base?.openDependencies !== true) return [];
  const waiterId = record.admission.taskId;
  const met = events.some(({ type }) => type === 'reeve.task.dependencies_met');
  if (!record.openDependencies && !met) return [{ kind: 'edges_dropped', waiterId }];
  if (closed.length === 0) return [];
  const closings = closed.map((edge): LinkWrite => ({ kind: 'edge_closed', ...edge, waiterId }));
  return [...closings, { kind: 'edges_left', waiterId, any: !met }];
}

function leaderLinks(decided: Decided): LinkWrite[] {
  const { base, record, events } = decided;
  const links: LinkWrite[] = [];
  const family = record.hasChildren || base?.hasChildren === true;
  if (family && events.some(({ type }) => type === 'task.completed' || type === 'reeve.task.generation_started')) {
    links.push({ kind: 'no_live_children', parentId: record.admission.taskId });
  }
  const row = propagationOf(base, record);
  if (row !== null) links.push({ kind: 'propagation', row });
  return links;
}

/** What this decision has to tell those who follow the task, or null. */
export function propagationOf(base: TaskRecord | null, record: TaskRecord): Propagation | null {
  const { hasChildren, hasWaiters, status, generation, lastEvent: eventNumber } = record;
  if (!hasChildren && !hasWaiters) return null;
  const { taskId } = record.admission;
  const before = base?.generation === generation ? base : null;
  if (isTerminal(status)) {
    if (before !== null && isTerminal(before.status)) return null;
    // Nothing that lives is attached to a parent that completed.
    return hasWaiters || status !== 'completed' ? { taskId, generation, outcome: status, eventNumber } : null;
  }
  const asked = hasChildren && record.cancellation !== null && (before?.cancellation ?? null) === null;
  return asked ? { taskId, generation, outcome: 'cancel_requested', eventNumber } : null;
}
