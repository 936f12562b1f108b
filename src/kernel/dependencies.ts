/**
 * Dependencies (lifecycle.md section 8): holding a task until others have ended, letting it go when nothing is open
 * any more, and ending it when one of them can no longer end as it had to. How many are open is the store's count.
 */
import type { DependencyCondition, OnUnsatisfied } from './admission/family-policy.js';
import { appendSettlement } from './attempt-end.js';
import { type Cause, authorityCause } from './cause.js';
import type { Draft } from './draft.js';
import { type ReasonCodeName, reason } from './reason-codes.js';
import { type TerminalStatus, isTerminal } from './status.js';

/** Whether a task that ended so is what its waiter waited for; what is not satisfied by an end never will be. */
export function satisfies(status: TerminalStatus, condition: DependencyCondition): boolean {
  return condition === 'terminal' || status === 'completed';
}

/** In the transaction of its admission: so many tasks are still to end. */
export function holdForDependencies(draft: Draft, unsatisfied: number, cause: Cause): void {
  draft.append(
    { type: 'reeve.task.held', data: { unsatisfied } },
    { cause: { ...cause, reason: reason('run.held.dependencies') }, to: 'waiting_dependency' },
  );
}

/** A task that it waited for, and what told of its end. */
export interface EndedUpstream {
  readonly taskId: string;
  /** The id of the event that ended it, or what its waiter's admission was caused by if it had ended before that. */
  readonly causation: string | null;
}

/** A task that it waited for has ended as it had to, and `open` others are left. */
export function dependencySatisfied(draft: Draft, upstream: EndedUpstream, open: number): void {
  const { record } = draft;
  if (open > 0 || !record.openDependencies) return;
  const cause = dependencyCause(upstream, 'run.queued.dependencies_met');
  const waits = record.status === 'waiting_dependency';
  draft.append(
    { type: 'reeve.task.dependencies_met', data: {} },
    waits ? { cause, to: 'queued' } : { cause: { ...cause, reason: null } },
  );
}

/** A task that it waited for, or was to wait for, can no longer end as it had to: `on_unsatisfied` decides. */
export function dependencyImpossible(draft: Draft, upstream: EndedUpstream): void {
  const { record } = draft;
  if (isTerminal(record.status)) return;
  const cause = (code: ReasonCodeName): Cause => dependencyCause(upstream, code);
  const data = { resultJson: null, ending: null, ownerStopped: record.ownerStopped };
  switch (fate(record.policy.onUnsatisfied, record.status === 'suspended')) {
    case 'skip':
      draft.append({ type: 'reeve.task.skipped', data }, { cause: cause('run.skipped.dependency'), to: 'skipped' });
      return;
    case 'fail': {
      const message = `dependency ${upstream.taskId} ended otherwise than it had to`;
      const error = { code: 'dependency_unsatisfied', message, retryable: false, detailsJson: null };
      const ending = { ...NO_ENDING, error };
      appendSettlement(draft, 'failed', { ...data, ending }, cause('run.failed.dependency'));
      return;
    }
    case 'cancel':
      if (record.cancellation === null) {
        const request = { type: 'task.cancel.requested', data: { graceEndsAt: null } } as const;
        draft.append(request, { cause: cause('run.cancelled.dependency') });
      }
      appendSettlement(draft, 'cancelled', data, cause('run.cancelled.dependency'));
      return;
  }
}

/** What is suspended has no way to be skipped; cancelled is how a skip counts. */
function fate(policy: OnUnsatisfied, suspended: boolean): OnUnsatisfied {
  return policy === 'skip' && suspended ? 'cancel' : policy;
}

const NO_ENDING = { exitCode: null, errorDetail: null, invocationId: null, resultRef: null, evidenceRefs: [] };

function dependencyCause({ taskId, causation }: EndedUpstream, code: ReasonCodeName): Cause {
  return { ...authorityCause('dependency', reason(code), causation), actor: { type: 'dependency', id: taskId } };
}
