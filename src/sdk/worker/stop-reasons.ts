/**
 * Why a handler is asked to stop: what `signal.reason` is and what `signal.throwIfAborted()` throws.
 */
import { LeaseLossCause } from '../../gen/reeve/v1/worker_service_pb.js';

/** Base of the four reasons. */
export abstract class StopReason extends Error {}

/** Somebody asked. Stop soon and let the reason (or an AbortError) escape: the task is then cancelled. */
export class CancelRequested extends StopReason {
  override readonly name = 'CancelRequested';

  constructor(
    /** Three dotted segments; empty when none was given. */
    readonly code: string,
    /** For people. */
    readonly summary: string,
    /** Time left before the lease is revoked, ms; undefined: as long as it takes. */
    readonly graceMs: number | undefined,
  ) {
    super(summary === '' ? 'the task is to be cancelled' : summary);
  }
}

/** The server's word; `refused`: the SDK gave the claim up, because the server takes nothing that is said about it. */
export type LeaseLossWord = Lowercase<Exclude<keyof typeof LeaseLossCause, 'UNSPECIFIED'>> | 'refused' | 'unknown';

/** The claim is no longer this worker's; another may be doing it. Whatever the handler says now is not heard. */
export class LeaseLost extends StopReason {
  override readonly name = 'LeaseLost';

  constructor(readonly why: LeaseLossWord) {
    super(`the lease is lost: ${why}`);
  }
}

/**
 * The time of the task or of the attempt is up. That is the authority's word: it may have moved the deadline that the
 * claim named. A worker says it by itself only when it has not heard the authority for as long as a lease lasts.
 */
export class DeadlineExceeded extends StopReason {
  override readonly name = 'DeadlineExceeded';

  constructor(
    /** Passed by then at the latest. */
    readonly deadline: Date,
  ) {
    super(`the deadline has passed: ${deadline.toISOString()}`);
  }
}

/** The worker is going and its patience is over: save a checkpoint and stop; the task goes back to the queue. */
export class Draining extends StopReason {
  override readonly name = 'Draining';

  constructor() {
    super('the worker is draining');
  }
}

const lossWords = new Map<LeaseLossCause, LeaseLossWord>([
  [LeaseLossCause.SESSION_EXPIRED, 'session_expired'],
  [LeaseLossCause.NOT_ACCEPTED, 'not_accepted'],
  [LeaseLossCause.NOT_HELD, 'not_held'],
  [LeaseLossCause.ATTEMPT_TIMED_OUT, 'attempt_timed_out'],
  [LeaseLossCause.NO_PROGRESS, 'no_progress'],
  [LeaseLossCause.DEADLINE, 'deadline'],
  [LeaseLossCause.CANCEL_GRACE, 'cancel_grace'],
  [LeaseLossCause.SUSPENDED, 'suspended'],
  [LeaseLossCause.PARENT, 'parent'],
  [LeaseLossCause.SUPERSEDED, 'superseded'],
  [LeaseLossCause.REPAIRED, 'repaired'],
  [LeaseLossCause.RELEASED, 'released'],
]);

/** @param deadline what the claim said of it. */
export function lossReason(why: LeaseLossWord, deadline: Date | undefined): StopReason {
  if (why !== 'deadline' && why !== 'attempt_timed_out') return new LeaseLost(why);
  const now = new Date();
  return new DeadlineExceeded(deadline !== undefined && deadline < now ? deadline : now);
}

export function lossWord(cause: LeaseLossCause): LeaseLossWord {
  return lossWords.get(cause) ?? 'unknown';
}

/** Whether what a handler threw is its obedience to `reason`: the reason itself, wrapped, or an AbortError. */
export function obeys(thrown: unknown, reason: StopReason | null): reason is StopReason {
  if (reason === null) return false;
  if (thrown === reason || thrown instanceof StopReason) return true;
  return thrown instanceof Error && (thrown.name === 'AbortError' || thrown.cause === reason);
}
