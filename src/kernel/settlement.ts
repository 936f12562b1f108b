/**
 * Settlement: the end of a generation, by its lease holder or by a caller (lifecycle.md sections 3, 4 and 6).
 * The cancellation policy decides here what the current attempt may still say after a cancel request.
 */
import { appendSettlement, endFailedAttempt, withReason } from './attempt-end.js';
import type { Cause } from './cause.js';
import type { Draft } from './draft.js';
import { childrenActive } from './family.js';
import { isDeclaredEdge, mayTake } from './edges.js';
import { eventId } from './event.js';
import type { AuthoritativeEvent, SettleIntent } from './intent.js';
import type { Cancellation, Ending, TaskRecord } from './record.js';
import { reason } from './reason-codes.js';
import { malformed, refuse } from './refusal.js';
import { APPLIED, type Verdict, refused } from './verdict.js';

export const NO_ENDING: Ending = {
  error: null,
  exitCode: null,
  errorDetail: null,
  invocationId: null,
  resultRef: null,
  evidenceRefs: [],
};

export interface Completion {
  readonly resultJson: string | null;
  readonly ending: Ending | null;
  readonly authoritativeEvent: AuthoritativeEvent | null;
  readonly authoritativeAt?: number | null;
  readonly cause: Cause;
  readonly workerSeq?: number;
}

/** The holder says that it completed. FENCED: refused after a request without proof of an earlier end. */
export function settleCompleted(draft: Draft, completion: Completion): Verdict {
  const { record, now } = draft;
  const stated = completion.authoritativeAt ?? null;
  if (stated !== null && stated > now) {
    return refused(malformed('cause.authoritative_at', 'lies in the future'));
  }
  let authoritativeAt = stated;
  if (record.cancellation !== null && record.policy.cancellationPolicy === 'FENCED') {
    authoritativeAt = completedAt(record, record.cancellation, completion);
    if (authoritativeAt === null) {
      return refused(fenced(record, 'completion needs proof that it happened before the cancel request'));
    }
  }
  const cause = authoritativeAt === null ? completion.cause : { ...completion.cause, authoritativeAt };
  const children = childrenActive(draft);
  if (children !== null) return refused(children);
  draft.inferBeforeCompletion(cause);
  appendSettlement(
    draft,
    'completed',
    { resultJson: completion.resultJson, ending: completion.ending, ownerStopped: true },
    withReason(cause, reason('run.completed.worker')),
    completion.workerSeq,
  );
  return APPLIED;
}

/** When it truly completed, strictly before the request; null where nothing proves that. */
function completedAt(record: TaskRecord, request: Cancellation, completion: Completion): number | null {
  const proof = completion.authoritativeEvent;
  if (proof !== null && proof.generation === record.generation && proof.number < request.eventNumber) return proof.at;
  const stated = completion.authoritativeAt ?? null;
  return stated !== null && stated < request.requestedAt ? stated : null;
}

/** What a worker's own event brings besides its ending: its number, and its reason in its own words. */
export interface Spoken {
  readonly workerSeq?: number;
  readonly reason?: string | null;
}

/** The holder says that it stopped: with a request it confirms it, without one it is request and settlement at once. */
export function settleCancelled(draft: Draft, ending: Ending | null, cause: Cause, spoken: Spoken = {}): Verdict {
  const asked = draft.record.cancellation !== null;
  if (!asked) draft.append({ type: 'task.cancel.requested', data: { graceEndsAt: null } }, { cause });
  const code = asked ? 'run.cancelled.acknowledged' : 'run.cancelled.unasked';
  const data = { resultJson: null, ending, ownerStopped: true };
  appendSettlement(
    draft,
    'cancelled',
    data,
    withReason(cause, reason(code, spoken.reason ?? undefined)),
    spoken.workerSeq,
  );
  return APPLIED;
}

/** The holder says that its time ran out. */
export function settleTimedOut(draft: Draft, ending: Ending | null, cause: Cause, workerSeq?: number): Verdict {
  const { record } = draft;
  const data = { resultJson: null, ending: ending ?? timeoutEnding(record), ownerStopped: true };
  if (record.cancellation !== null && record.policy.cancellationPolicy === 'FENCED') {
    appendSettlement(draft, 'cancelled', data, { ...cause, reason: reason('run.cancelled.attempt_ended') }, workerSeq);
  } else {
    appendSettlement(draft, 'timed_out', data, withReason(cause, reason('run.timed_out.worker')), workerSeq);
  }
  return APPLIED;
}

/** The error that every time-out of the authority carries: AEP's `task_timeout`, retryable. */
export function timeoutEnding(record: TaskRecord): Ending {
  return {
    ...NO_ENDING,
    error: {
      code: 'task_timeout',
      message: `task ${record.admission.taskId} timed out`,
      retryable: true,
      detailsJson: null,
    },
  };
}

/** A settlement through Transition. Its guards held, its generation is current and not terminal. */
export function judgeSettle(draft: Draft, intent: SettleIntent): Verdict {
  const { record } = draft;
  if (record.status === 'running') return settleAsHolder(draft, intent);
  if (!isDeclaredEdge(record.status, intent.outcome)) return refused(invalidTransition(record, intent.outcome));
  if (intent.outcome === 'cancelled') {
    return refused(
      refuse('CANCELLATION_NOT_REQUESTED', 'nobody asked for a cancellation; use Cancel, which asks and settles', {
        task_id: record.admission.taskId,
      }),
    );
  }
  // What nobody runs is timed out by its deadlines alone.
  if (!mayTake(record.status, intent.outcome, 'settle')) return refused(invalidTransition(record, intent.outcome));
  appendSettlement(
    draft,
    intent.outcome,
    { resultJson: null, ending: intent.ending ?? NO_ENDING, ownerStopped: record.ownerStopped },
    withReason(intent.cause, reason('run.failed.operator')),
  );
  return APPLIED;
}

function settleAsHolder(draft: Draft, intent: SettleIntent): Verdict {
  const { cause } = intent;
  switch (intent.outcome) {
    case 'completed':
      return settleCompleted(draft, intent);
    case 'cancelled':
      return settleCancelled(draft, intent.ending, cause);
    case 'timed_out':
      return settleTimedOut(draft, intent.ending, cause);
    case 'failed':
      endFailedAttempt(draft, {
        ending: intent.ending ?? NO_ENDING,
        cause,
        retryCause: 'failure',
        retryReason: 'run.retry.attempt_failed',
        failedReason: 'run.failed.attempts_exhausted',
        byOwner: true,
        retryAfterMs: intent.retryAfterMs ?? null,
        chance: intent.chance,
      });
      return APPLIED;
  }
}

export function fenced(record: TaskRecord, detail: string): ReturnType<typeof refuse> {
  return refuse('CANCELLATION_FENCED', `a cancellation is pending: ${detail}`, {
    task_id: record.admission.taskId,
    requested_event: eventId(record.admission.taskId, record.cancellation?.eventNumber ?? 0),
  });
}

export function invalidTransition(record: TaskRecord, to: string): ReturnType<typeof refuse> {
  return refuse('INVALID_TRANSITION', `a task that is ${record.status} cannot become ${to}`, {
    task_id: record.admission.taskId,
    from_status: record.status,
    to_status: to,
  });
}
