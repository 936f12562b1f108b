/**
 * The end of an attempt that did not complete: retry, failure, or cancellation when one is pending
 * (lifecycle.md sections 3, 6 and 7). Worker failures, time-outs, lost leases, hand-backs and releases all end here.
 */
import { type Cause, type Reason, authorityCause } from './cause.js';
import type { Draft } from './draft.js';
import type { RetryCause, TerminalData } from './event.js';
import type { Ending } from './record.js';
import { type ReasonCodeName, reason } from './reason-codes.js';
import { MAX_HAND_BACKS, handBackDelayMs, isRetryable, retryDelayMs } from './retry.js';
import type { SettledStatus } from './status.js';

/** Appends the terminal fact of a settlement. */
export function appendSettlement(
  draft: Draft,
  status: SettledStatus,
  data: TerminalData,
  cause: Cause,
  workerSeq?: number,
): void {
  const context = workerSeq === undefined ? { cause, to: status } : { cause, to: status, workerSeq };
  switch (status) {
    case 'completed':
      draft.append({ type: 'task.completed', data }, context);
      return;
    case 'failed':
      draft.append({ type: 'task.failed', data }, context);
      return;
    case 'timed_out':
      draft.append({ type: 'task.timed_out', data }, context);
      return;
    case 'cancelled':
      draft.append({ type: 'task.cancelled', data }, context);
      return;
  }
}

/** The cause with the authority's reason where its sender gave none. */
export function withReason(cause: Cause, fallback: Reason): Cause {
  return cause.reason === null ? { ...cause, reason: fallback } : cause;
}

export interface FailedAttempt {
  readonly ending: Ending;
  readonly cause: Cause;
  readonly retryCause: 'failure' | 'time_out';
  readonly retryReason: ReasonCodeName;
  readonly failedReason: ReasonCodeName;
  /** Whether the owner itself said so. */
  readonly byOwner: boolean;
  /** The worker's own wish for the delay in ms. */
  readonly retryAfterMs: number | null;
  readonly chance: number;
  readonly workerSeq?: number;
}

/** A failed attempt: retried while the policy allows, else failed; cancelled when a request is pending. */
export function endFailedAttempt(draft: Draft, attempt: FailedAttempt): void {
  const { record } = draft;
  const { retry, cancellationPolicy } = record.policy;
  const { ending, cause, byOwner, workerSeq } = attempt;
  const error = ending.error ?? { code: 'unknown', message: '', retryable: true, detailsJson: null };
  const retryable = isRetryable(retry, error);
  const data: TerminalData = { resultJson: null, ending, ownerStopped: byOwner };
  if (record.cancellation !== null && (retryable || cancellationPolicy === 'FENCED')) {
    appendSettlement(draft, 'cancelled', data, { ...cause, reason: reason('run.cancelled.attempt_ended') }, workerSeq);
    return;
  }
  if (!retryable) {
    appendSettlement(draft, 'failed', data, withReason(cause, reason('run.failed.not_retryable')), workerSeq);
    return;
  }
  if (record.attempt >= retry.maxAttempts) {
    appendSettlement(draft, 'failed', data, withReason(cause, reason(attempt.failedReason)), workerSeq);
    return;
  }
  const delayMs = attempt.retryAfterMs ?? retryDelayMs(retry, record.attempt, attempt.chance);
  draft.append(
    {
      type: 'reeve.task.retry_scheduled',
      data: { retryAt: draft.now + delayMs, cause: attempt.retryCause, attemptGivenBack: false, ending },
    },
    {
      cause: withReason(cause, reason(attempt.retryReason)),
      to: 'retry_wait',
      ...(workerSeq === undefined ? {} : { workerSeq }),
    },
  );
}

/** The lease is gone and its owner with it: back to the queue at once, or failed when no attempts are left. */
export function endLostAttempt(draft: Draft, code: ReasonCodeName, causation: string | null = null): void {
  const { record } = draft;
  if (record.lease?.acceptedAt === null) {
    handBack(draft, reason(code), causation);
    return;
  }
  if (endCancelled(draft, causation)) return;
  if (record.attempt >= record.policy.retry.maxAttempts) {
    const cause = authorityCause('reaper', reason('run.failed.lease_attempts_exhausted'), causation);
    appendSettlement(draft, 'failed', { resultJson: null, ending: record.ending, ownerStopped: false }, cause);
    return;
  }
  requeue(draft, { cause: 'lease_lost', attemptGivenBack: false, reason: reason(code), delayMs: 0, causation });
}

/** A claim that never was accepted goes back with its attempt; a claim that nobody can take ends as undeliverable. */
export function handBack(draft: Draft, why: Reason, causation: string | null = null): void {
  const { record } = draft;
  if (endCancelled(draft, causation)) return;
  const handBacks = record.handBacks + 1;
  if (handBacks >= MAX_HAND_BACKS) {
    const cause = authorityCause('reaper', reason('run.failed.undeliverable'), causation);
    appendSettlement(draft, 'failed', { resultJson: null, ending: record.ending, ownerStopped: false }, cause);
    return;
  }
  const delayMs = handBackDelayMs(handBacks);
  requeue(draft, { cause: 'hand_back', attemptGivenBack: true, reason: why, delayMs, causation });
}

/** A draining worker gives the task back of its own accord; the attempt does not count. */
export function release(draft: Draft, cause: Cause): void {
  if (draft.record.cancellation !== null) {
    const data = { resultJson: null, ending: draft.record.ending, ownerStopped: true };
    appendSettlement(draft, 'cancelled', data, { ...cause, reason: reason('run.cancelled.attempt_ended') });
    return;
  }
  requeue(draft, {
    cause: 'release',
    attemptGivenBack: true,
    reason: reason('run.requeued.released'),
    delayMs: 0,
    by: cause,
    causation: cause.causation,
  });
}

interface Requeue {
  readonly cause: RetryCause;
  readonly attemptGivenBack: boolean;
  readonly reason: Reason;
  readonly delayMs: number;
  readonly causation: string | null;
  /** Who asked for it; the reaper when nobody did. */
  readonly by?: Cause;
}

function requeue(draft: Draft, { cause, attemptGivenBack, reason: why, delayMs, causation, by: asker }: Requeue): void {
  const by = asker === undefined ? authorityCause('reaper', why, causation) : { ...asker, reason: why };
  draft.append(
    {
      type: 'reeve.task.retry_scheduled',
      data: { retryAt: draft.now + delayMs, cause, attemptGivenBack, ending: null },
    },
    { cause: by, to: 'retry_wait' },
  );
  if (delayMs === 0)
    draft.append({ type: 'reeve.task.requeued', data: { keepsPlace: true } }, { cause: by, to: 'queued' });
}

/** Settles as cancelled when a request is pending: a lost owner is never replaced after it. */
function endCancelled(draft: Draft, causation: string | null): boolean {
  if (draft.record.cancellation === null) return false;
  const data = { resultJson: null, ending: draft.record.ending, ownerStopped: false };
  appendSettlement(draft, 'cancelled', data, authorityCause('reaper', reason('run.cancelled.owner_lost'), causation));
  return true;
}
