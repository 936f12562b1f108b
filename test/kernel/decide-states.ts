// The states in which the decision table judges every intent: each is reached through the kernel, but for
// waiting_dependency, which needs dependencies to be reached.

import { Draft } from '../../src/kernel/draft.js';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { OPERATOR, T0, TaskWorld, cause, settle } from './task-world.js';
import { reason } from '../../src/kernel/reason-codes.js';

// Every span is set, and each is shorter than those judged before it, so that the timer a column asks for is the
// first one due at its own time.
export const SPANS = {
  timeoutMs: 1_000_000,
  startByMs: 500_000,
  cancelGraceMs: 400_000,
  attemptTimeoutMs: 200_000,
  progressTimeoutMs: 100_000,
  acceptTimeoutMs: 50_000,
  retryInitialMs: 10_000,
  notBeforeMs: 90_000,
} as const;

const SPANNED: TaskPolicyInput = {
  timeoutMs: SPANS.timeoutMs,
  startByMs: SPANS.startByMs,
  attemptTimeoutMs: SPANS.attemptTimeoutMs,
  progressTimeoutMs: SPANS.progressTimeoutMs,
  retry: { initialMs: SPANS.retryInitialMs, maxAttempts: 3, nonRetryableCodes: ['broken_input'] },
};

function queued(policy: TaskPolicyInput = {}): TaskWorld {
  return TaskWorld.admit({ ...SPANNED, ...policy });
}

function claimed(policy: TaskPolicyInput = {}): TaskWorld {
  return queued(policy).claim({ acceptTimeoutMs: SPANS.acceptTimeoutMs });
}

function started(policy: TaskPolicyInput = {}): TaskWorld {
  return claimed(policy).say('accepted', 'started');
}

/** Two attempts failed; the third, which is the last, has started. */
function lastAttempt(): TaskWorld {
  const world = started().say('failed');
  world.at(T0 + SPANS.retryInitialMs).tick();
  world.claim({ acceptTimeoutMs: SPANS.acceptTimeoutMs }).say('accepted', 'started', 'failed');
  world.at(T0 + 3 * SPANS.retryInitialMs).tick();
  return world.claim({ acceptTimeoutMs: SPANS.acceptTimeoutMs }).say('accepted', 'started');
}

/** Nine deliveries in a row came back; the tenth is out. */
function tenthDelivery(): TaskWorld {
  const world = claimed().handBack();
  for (let delivery = 2; delivery <= 9; delivery += 1) {
    world.claim({ acceptTimeoutMs: SPANS.acceptTimeoutMs }).handBack();
    if (world.record.retryAt !== null) world.at(world.record.retryAt).tick();
  }
  return world.claim({ acceptTimeoutMs: SPANS.acceptTimeoutMs });
}

function waiting(): TaskRecord {
  return { ...queued().record, status: 'waiting_dependency', queuedAt: null };
}

const BUILDERS = {
  queued: () => queued().record,
  queued_delayed: () => queued({ notBeforeAtMs: T0 + SPANS.notBeforeMs }).record,
  waiting_dependency: waiting,
  running_submitted: () => claimed().record,
  running_accepted: () => claimed().say('accepted').record,
  running_started: () => started().record,
  running_progress: () => started().say('progress').record,
  running_output: () => started().say('output').record,
  running_blocked: () => started().say('blocked').record,
  running_last_attempt: () => lastAttempt().record,
  running_tenth_delivery: () => tenthDelivery().record,
  cancelling_cooperative: () => started().requestCancel(SPANS.cancelGraceMs).record,
  cancelling_fenced: () => started({ cancellationPolicy: 'FENCED' }).requestCancel(SPANS.cancelGraceMs).record,
  cancelling_unaccepted: () => claimed().requestCancel(SPANS.cancelGraceMs).record,
  retry_wait: () => started().say('failed').record,
  suspended_by_holder: () => started().say('suspended').record,
  suspended_by_operator: () => started().apply({ kind: 'suspend', lease: null, cause: OPERATOR }).record,
  completed: () => started().say('completed').record,
  failed: () => queued().apply(settle('failed')).record,
  timed_out: () =>
    queued()
      .at(T0 + SPANS.timeoutMs)
      .tick().record,
  cancelled: () => queued().requestCancel().record,
  skipped: () => queued().apply({ kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) }).record,
} satisfies Record<string, () => TaskRecord>;

export type StateName = keyof typeof BUILDERS;

export const STATE_NAMES = Object.keys(BUILDERS) as readonly StateName[];

export function recordIn(state: StateName): TaskRecord {
  return BUILDERS[state]();
}

/** A draft on the state, at a time when none of its timers is due. */
export function draftIn(state: StateName): Draft {
  const record = recordIn(state);
  return Draft.of(record, record.updatedAt);
}
