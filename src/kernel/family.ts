/**
 * Families (lifecycle.md section 8): what a parent's end or cancel request means for its attached children, and what
 * their lives mean for the parent. The parent's record is only ever read here; the child's draft is what changes.
 */
import type { ParentLink } from './admission/family-policy.js';
import { appendSettlement } from './attempt-end.js';
import { type Cause, authorityCause } from './cause.js';
import type { Draft } from './draft.js';
import { type Follower, eventId } from './event.js';
import type { Ending, TaskRecord } from './record.js';
import { type ReasonCodeName, reason } from './reason-codes.js';
import { type Refusal, refuse } from './refusal.js';
import { type SettledStatus, type TerminalStatus, isTerminal } from './status.js';

/** Null: an attached child may live under this parent, which is the exact generation, not over and not fenced. */
export function familyRefusal(link: ParentLink, parent: TaskRecord | null): Refusal | null {
  const fits = parent !== null && parent.generationId === link.generationId;
  if (fits && !isTerminal(parent.status) && parent.cancellation === null) return null;
  return refuse('PARENT_CONSTRAINT', 'the parent is not the live, unfenced generation that was named', {
    parent_task_id: link.taskId,
    parent_status: parent?.status ?? 'unknown',
    parent_generation_id: parent?.generationId ?? '',
  });
}

/** A propagation that did not come from the parent's own record. */
export function forgedPropagation(record: TaskRecord): Refusal {
  return refuse('PARENT_CONSTRAINT', 'what becomes of a parent reaches its children by the authority alone', {
    task_id: record.admission.taskId,
    parent_task_id: record.admission.policy.parent?.taskId ?? '',
  });
}

/** Why this task may not run, or begin anew, under its parent; null where its parent was not looked for. */
export function parentRefusal({ record, parent }: Draft): Refusal | null {
  const link = record.admission.policy.parent;
  return link?.attached === true && parent !== undefined ? familyRefusal(link, parent) : null;
}

/** A parent neither completes nor begins anew while attached children live. */
export function childrenActive({ record, liveChildren }: Draft): Refusal | null {
  if (liveChildren === 0) return null;
  return refuse('CHILDREN_ACTIVE', 'attached children of this task are still live', {
    task_id: record.admission.taskId,
    children: String(liveChildren),
  });
}

/** Notes on a task that others follow it from now on; true when it was not known before. */
export function noteFollower(draft: Draft, by: Follower, cause: Cause): boolean {
  const { record } = draft;
  if (by === 'child' ? record.hasChildren : record.hasWaiters) return false;
  draft.append({ type: 'reeve.task.followed', data: { by } }, { cause });
  return true;
}

/**
 * Brings an attached child to where its parent's record says that it must be: asked to end when the parent was asked,
 * over when the parent is. True when that changed it. What it ended as before the parent stays.
 */
export function followParent(draft: Draft): boolean {
  const { record, parent } = draft;
  const link = record.admission.policy.parent;
  if (link?.attached !== true || !parent || isTerminal(record.status)) return false;
  // The next generation begins only when no attached child of the one before lives: a child of neither is nobody's.
  if (parent.generationId !== link.generationId) return endWithParent(draft, parent, 'cancelled');
  if (isTerminal(parent.status)) {
    const outcome = childOutcome(parent.status);
    return outcome !== null && endWithParent(draft, parent, outcome);
  }
  if (parent.cancellation === null || record.cancellation !== null) return false;
  const cause = parentCause(parent, 'run.cancelled.parent', parent.cancellation.eventNumber);
  draft.append({ type: 'task.cancel.requested', data: { graceEndsAt: null } }, { cause });
  if (record.status === 'running') return true;
  const data = { resultJson: null, ending: record.ending, ownerStopped: record.ownerStopped };
  appendSettlement(draft, 'cancelled', data, cause);
  return true;
}

/** A skipped parent counts as cancelled. Null: a parent that completed takes no child with it. */
function childOutcome(status: TerminalStatus): Exclude<SettledStatus, 'completed'> | null {
  if (status === 'completed') return null;
  return status === 'skipped' ? 'cancelled' : status;
}

function endWithParent(draft: Draft, parent: TaskRecord, outcome: Exclude<SettledStatus, 'completed'>): true {
  const { record } = draft;
  const cause = parentCause(parent, `run.${outcome}.parent`, parent.lastEvent);
  if (outcome === 'cancelled' && record.cancellation === null) {
    draft.append({ type: 'task.cancel.requested', data: { graceEndsAt: null } }, { cause });
  }
  const ownerStopped = record.status === 'running' ? false : record.ownerStopped;
  const ending = outcome === 'cancelled' ? record.ending : parentEnding(parent, outcome);
  appendSettlement(draft, outcome, { resultJson: null, ending, ownerStopped }, cause);
  return true;
}

function parentEnding(parent: TaskRecord, outcome: 'failed' | 'timed_out'): Ending {
  const timedOut = outcome === 'timed_out';
  const message = `parent ${parent.admission.taskId} ${timedOut ? 'timed out' : 'failed'}`;
  const code = timedOut ? 'task_timeout' : 'parent_failed';
  return {
    error: { code, message, retryable: timedOut, detailsJson: null },
    exitCode: null,
    errorDetail: null,
    invocationId: null,
    resultRef: null,
    evidenceRefs: [],
  };
}

function parentCause(parent: TaskRecord, code: ReasonCodeName, eventNumber: number): Cause {
  const { taskId } = parent.admission;
  const cause = authorityCause('parent', reason(code), eventId(taskId, eventNumber));
  return { ...cause, actor: { type: 'parent', id: taskId } };
}
