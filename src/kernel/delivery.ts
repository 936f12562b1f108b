/**
 * What is delivered to a worker about its claims: the claim itself, a cancel, a loss. Values only, shared by who decides
 * that they are sent (the dispatcher) and who writes them down (the wire); neither knows the other.
 */
import type { Reason } from './cause.js';
import type { TaskRecord } from './record.js';

/** How many claims a session may want to hold at once. */
export const MAX_SLOTS = 10_000;

/** A committed claim on its way to its worker. */
export interface DeliveredClaim {
  readonly record: TaskRecord;
  readonly epoch: number;
  readonly leaseToken: string;
  readonly cancellationToken: string;
  /** The last checkpoint of an earlier attempt, and the input of a resume, as JSON text. */
  readonly checkpointJson: string | null;
  readonly inputJson: string | null;
  /** Epoch ms; the earlier of the total and the attempt deadline. Null: neither. */
  readonly deadlineAt: number | null;
}

export interface CancelNotice {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly cancellationToken: string;
  readonly reason: Reason | null;
  /** Ms left until the lease is revoked; null: never by itself. */
  readonly graceMs: number | null;
}

export type LeaseLossCause =
  | 'session_expired'
  | 'not_accepted'
  | 'not_held'
  | 'attempt_timed_out'
  | 'no_progress'
  | 'deadline'
  | 'cancel_grace'
  | 'suspended'
  | 'superseded'
  | 'released'
  | 'parent';

export interface LeaseLoss {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly cause: LeaseLossCause;
}
