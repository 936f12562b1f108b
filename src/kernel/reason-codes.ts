/**
 * The closed list of reason codes the authority gives, with their meaning (lifecycle.md section 4).
 * Callers may send one marked `caller`, or one of their own below `app.`; anything else is MALFORMED.
 */
import type { Reason } from './cause.js';

interface ReasonCode {
  readonly summary: string;
  /** May a caller state it? */
  readonly caller?: true;
}

export const REASON_CODES = {
  'run.completed.worker': { summary: 'the worker completed the task' },
  'run.completed.external': { summary: 'completion was reported by its owner', caller: true },
  'run.failed.attempts_exhausted': { summary: 'the last permitted attempt failed' },
  'run.failed.not_retryable': { summary: 'the worker said that a retry would not help' },
  'run.failed.lease_attempts_exhausted': { summary: 'the lease was lost and no attempts were left' },
  'run.failed.undeliverable': { summary: 'no worker accepted the claim after repeated deliveries' },
  'run.failed.attempt_timed_out': { summary: 'the last permitted attempt exceeded its time-out' },
  'run.failed.no_progress': { summary: 'the last permitted attempt made no progress in time' },
  'run.failed.operator': { summary: 'failed by an operator', caller: true },
  'run.failed.validation': { summary: 'rejected before it started', caller: true },
  'run.timed_out.deadline': { summary: 'the total time-out passed' },
  'run.timed_out.start_by': { summary: 'it had not started in time' },
  'run.timed_out.worker': { summary: 'the worker reported a time-out' },
  'run.timed_out.external': { summary: 'a time-out was reported by its owner', caller: true },
  'run.cancelled.requested': { summary: 'cancelled before it ran', caller: true },
  'run.cancelled.operator': { summary: 'cancelled by an operator', caller: true },
  'run.cancelled.user': { summary: 'cancelled by the user', caller: true },
  'run.cancelled.acknowledged': { summary: 'the worker stopped after the request' },
  'run.cancelled.unasked': { summary: 'the worker cancelled it of its own accord' },
  'run.cancelled.attempt_ended': { summary: 'the attempt ended under a pending cancellation' },
  'run.cancelled.owner_lost': { summary: 'the owner was lost under a pending cancellation' },
  'run.cancelled.grace_expired': { summary: 'the grace after the cancel request passed' },
  'run.cancelled.deadline': { summary: 'a deadline passed under a fenced cancellation' },
  'run.cancelled.parent': { summary: 'its parent was cancelled' },
  'run.failed.parent': { summary: 'its parent failed' },
  'run.timed_out.parent': { summary: 'its parent timed out' },
  'run.skipped.dependency': { summary: 'a task it waited for ended otherwise than it had to' },
  'run.failed.dependency': { summary: 'a task it waited for ended otherwise than it had to' },
  'run.cancelled.dependency': { summary: 'a task it waited for ended otherwise than it had to' },
  'run.held.dependencies': { summary: 'it waits for other tasks' },
  'run.queued.dependencies_met': { summary: 'nothing it waited for is open any more' },
  'run.retry.attempt_failed': { summary: 'the attempt failed and will be retried' },
  'run.retry.attempt_timed_out': { summary: 'the attempt exceeded its time-out and will be retried' },
  'run.retry.no_progress': { summary: 'the attempt made no progress in time and will be retried' },
  'run.requeued.retry_due': { summary: 'the back-off has passed' },
  'run.requeued.lease_lost': { summary: 'the lease was lost and attempts are left' },
  'run.requeued.claim_undelivered': { summary: 'the claim did not reach a worker' },
  'run.requeued.claim_forgotten': { summary: 'the worker no longer named the claim' },
  'run.requeued.released': { summary: 'a draining worker handed the task back' },
  'run.suspended.worker': { summary: 'suspended by the lease holder' },
  'run.suspended.operator': { summary: 'held by an operator', caller: true },
  'run.resumed.operator': { summary: 'resumed by an operator', caller: true },
  'run.resumed.input': { summary: 'resumed with new input', caller: true },
  'run.skipped.operator': { summary: 'skipped by an operator', caller: true },
  'run.skipped.policy': { summary: 'skipped by policy', caller: true },
  'run.repaired.operator': { summary: 'mended by an operator' },
} as const satisfies Readonly<Record<string, ReasonCode>>;

export type ReasonCodeName = keyof typeof REASON_CODES;

const CALLER_CODES: ReadonlySet<string> = new Set(
  Object.entries<ReasonCode>(REASON_CODES)
    .filter(([, entry]) => entry.caller === true)
    .map(([code]) => code),
);

const OWN_CODE = /^app(\.[a-z0-9_]{1,40}){2}$/;

/** Whether a caller may state this code. */
export function mayStateReason(code: string): boolean {
  return CALLER_CODES.has(code) || OWN_CODE.test(code);
}

/** A reason of the authority's, with its documented summary unless a better one is at hand. */
export function reason(code: ReasonCodeName, summary?: string, evidenceRefs: readonly string[] = []): Reason {
  return { code, summary: summary ?? REASON_CODES[code].summary, evidenceRefs };
}
