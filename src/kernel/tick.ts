/**
 * Tick: what the clock has made due on one record (lifecycle.md section 7). Nothing happens by time alone: the
 * timers loop asks, and the kernel decides from the record, `now` and the end of the last pause of the service.
 */
import { appendSettlement, endFailedAttempt, handBack } from './attempt-end.js';
import { authorityCause } from './cause.js';
import type { Draft } from './draft.js';
import type { TickIntent } from './intent.js';
import type { TaskRecord } from './record.js';
import { type ReasonCodeName, reason } from './reason-codes.js';
import { NO_ENDING, timeoutEnding } from './settlement.js';
import { type Timer, timersOf } from './timers.js';
import { APPLIED, UNCHANGED, type Verdict } from './verdict.js';

export function judgeTick(draft: Draft, intent: TickIntent): Verdict {
  let verdict: Verdict = UNCHANGED;
  // A timer that fired can uncover another: a retry that comes due after its start-by deadline, say.
  for (let timer = dueTimer(draft, intent); timer !== null; timer = dueTimer(draft, intent)) {
    fire(draft, timer, intent);
    verdict = APPLIED;
  }
  return verdict;
}

function dueTimer(draft: Draft, intent: TickIntent): Timer | null {
  const { record, now } = draft;
  const excusedUntil = intent.quietSince + (record.lease?.sessionTtlMs ?? 0);
  return timersOf(record).find((timer) => timer.dueAt <= now && !(timer.excusable && now < excusedUntil)) ?? null;
}

function fire(draft: Draft, timer: Timer, intent: TickIntent): void {
  switch (timer.kind) {
    case 'total_deadline':
      timeOut(draft, 'run.timed_out.deadline');
      return;
    case 'start_by':
      timeOut(draft, 'run.timed_out.start_by');
      return;
    case 'cancel_grace':
      appendSettlement(draft, 'cancelled', unowned(draft.record), byReaper('run.cancelled.grace_expired'));
      return;
    case 'attempt_time_out':
      failAttempt(draft, intent, 'attempt_timeout', 'run.retry.attempt_timed_out', 'run.failed.attempt_timed_out');
      return;
    case 'no_progress':
      failAttempt(draft, intent, 'no_progress', 'run.retry.no_progress', 'run.failed.no_progress');
      return;
    case 'accept':
      handBack(draft, reason('run.requeued.claim_undelivered'));
      return;
    case 'retry':
      draft.append(
        { type: 'reeve.task.requeued', data: { keepsPlace: draft.record.handBacks > 0 } },
        { cause: byReaper('run.requeued.retry_due'), to: 'queued' },
      );
      return;
    case 'not_before':
      draft.append(
        { type: 'reeve.task.ready', data: {} },
        { cause: { ...byReaper('run.requeued.retry_due'), reason: null } },
      );
      return;
  }
}

function timeOut(draft: Draft, code: ReasonCodeName): void {
  const { record } = draft;
  const ownerStopped = record.status === 'running' ? false : record.ownerStopped;
  const data = { resultJson: null, ending: timeoutEnding(record), ownerStopped };
  if (record.cancellation !== null && record.policy.cancellationPolicy === 'FENCED') {
    appendSettlement(draft, 'cancelled', data, byReaper('run.cancelled.deadline'));
  } else {
    appendSettlement(draft, 'timed_out', data, byReaper(code));
  }
}

function failAttempt(
  draft: Draft,
  intent: TickIntent,
  code: string,
  retryReason: ReasonCodeName,
  failedReason: ReasonCodeName,
): void {
  const message = code === 'no_progress' ? 'the attempt made no progress in time' : 'the attempt exceeded its time-out';
  endFailedAttempt(draft, {
    ending: { ...NO_ENDING, error: { code, message, retryable: true, detailsJson: null } },
    cause: { ...byReaper(retryReason), reason: null },
    retryCause: 'time_out',
    retryReason,
    failedReason,
    byOwner: false,
    retryAfterMs: null,
    chance: intent.chance,
  });
}

function unowned(record: TaskRecord): { resultJson: null; ending: TaskRecord['ending']; ownerStopped: boolean } {
  return { resultJson: null, ending: record.ending, ownerStopped: false };
}

function byReaper(code: ReasonCodeName): ReturnType<typeof authorityCause> {
  return authorityCause('reaper', reason(code));
}
