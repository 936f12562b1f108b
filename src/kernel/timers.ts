/**
 * Timers: everything about a record that the clock can make due, through one `next_due_at` (lifecycle.md section 7).
 * The order in which `timersOf` lists them decides which of several due timers is judged first.
 */
import type { TaskRecord } from './record.js';
import { isTerminal } from './status.js';

export type TimerKind =
  | 'total_deadline'
  | 'start_by'
  | 'cancel_grace'
  | 'attempt_time_out'
  | 'no_progress'
  | 'accept'
  | 'retry'
  | 'not_before';

export interface Timer {
  readonly kind: TimerKind;
  /** Epoch ms; due when it is strictly past or equal. */
  readonly dueAt: number;
  /** Accept and progress timers excuse a silence that the service itself caused (a start, a stall, an outage). */
  readonly excusable: boolean;
}

/** All timers running on the record, deadlines first; empty when terminal. */
export function timersOf(record: TaskRecord): readonly Timer[] {
  if (isTerminal(record.status)) return [];
  const timers: Timer[] = [];
  const add = (kind: TimerKind, dueAt: number | null, excusable = false): void => {
    if (dueAt !== null) timers.push({ kind, dueAt, excusable });
  };
  const { policy, lease } = record;
  add('total_deadline', after(record.generationStartedAt, policy.timeoutMs));
  if (lease === null) {
    if (record.startedAt === null) add('start_by', after(record.generationStartedAt, policy.startByMs));
    if (record.status === 'retry_wait') add('retry', record.retryAt);
    if (record.status === 'queued') add('not_before', record.notBeforeAt);
    return timers;
  }
  add('cancel_grace', record.cancellation?.graceEndsAt ?? null);
  if (lease.acceptedAt === null) {
    // Nobody has begun: a claim that is not accepted in time is handed back, and its attempt does not count.
    add('accept', lease.acceptBy, true);
    return timers;
  }
  add('attempt_time_out', after(lease.claimedAt, policy.attemptTimeoutMs));
  add('no_progress', after(lease.lastWordAt, policy.progressTimeoutMs), true);
  return timers;
}

/** The earliest of the record's timers in epoch ms; null when nothing is running on it. */
export function nextDueAt(record: TaskRecord): number | null {
  let earliest: number | null = null;
  for (const timer of timersOf(record)) {
    if (earliest === null || timer.dueAt < earliest) earliest = timer.dueAt;
  }
  return earliest;
}

/** The deadline a worker is told: the earlier of the total and the attempt time-out, in epoch ms. */
export function workerDeadline(record: TaskRecord): number | null {
  const total = after(record.generationStartedAt, record.policy.timeoutMs);
  const attempt = record.lease === null ? null : after(record.lease.claimedAt, record.policy.attemptTimeoutMs);
  if (total === null) return attempt;
  return attempt === null ? total : Math.min(total, attempt);
}

function after(startMs: number, spanMs: number | null): number | null {
  return spanMs === null ? null : startMs + spanMs;
}
