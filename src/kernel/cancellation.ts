/**
 * Cancellation in two phases: the request, which fences new work at once, and the receipts of its owner
 * (lifecycle.md section 6). What is not running is settled with the request; what runs stays running until it ends.
 */
import { appendSettlement, withReason } from './attempt-end.js';
import type { Cause } from './cause.js';
import type { Draft } from './draft.js';
import type { ReceiptIntent, RequestCancellationIntent } from './intent.js';
import { reason } from './reason-codes.js';
import { APPLIED, UNCHANGED, type Verdict } from './verdict.js';

/**
 * The generation is current and not terminal. A second request is no second fact; all it can do is to bring the end
 * nearer, for an owner who did not obey the first.
 */
export function judgeCancelRequest(draft: Draft, intent: RequestCancellationIntent): Verdict {
  const { record } = draft;
  const { cause, graceMs } = intent;
  const running = record.status === 'running';
  const graceEndsAt = running && graceMs !== null ? draft.now + graceMs : null;
  if (record.cancellation !== null) return hasten(draft, record.cancellation.graceEndsAt, graceEndsAt, cause);
  draft.append({ type: 'task.cancel.requested', data: { graceEndsAt } }, { cause });
  if (running) return APPLIED;
  const data = { resultJson: null, ending: record.ending, ownerStopped: record.ownerStopped };
  appendSettlement(draft, 'cancelled', data, withReason(cause, reason('run.cancelled.requested')));
  return APPLIED;
}

function hasten(draft: Draft, endsAt: number | null, wanted: number | null, cause: Cause): Verdict {
  if (wanted === null || (endsAt !== null && endsAt <= wanted)) return UNCHANGED;
  draft.append({ type: 'reeve.task.cancel_hastened', data: { graceEndsAt: wanted } }, { cause });
  return APPLIED;
}

/** The owner confirms the frame (delivered) or says that it is stopping (acknowledged). Each is recorded once. */
export function judgeReceipt(draft: Draft, intent: ReceiptIntent): Verdict {
  const { cancellation } = draft.record;
  if (cancellation === null) return UNCHANGED;
  let changed = false;
  if (cancellation.deliveredAt === null) {
    draft.append({ type: 'reeve.task.cancel_delivered', data: {} }, { cause: intent.cause });
    changed = true;
  }
  if (intent.acknowledged && cancellation.acknowledgedAt === null) {
    draft.append({ type: 'reeve.task.cancel_acknowledged', data: {} }, { cause: intent.cause });
    changed = true;
  }
  return changed ? APPLIED : UNCHANGED;
}
