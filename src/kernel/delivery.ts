/**
 * What is delivered to a worker about its claims: the claim itself, a cancel, a loss. Values only, shared by who decides
 * that they are sent (the dispatcher) and who writes them down (the wire); neither knows the other.
 */
import type { Reason } from './cause.js';
import type { TaskRecord } from './record.js';

/** How many claims a session may want to hold at once. */
export const MAX_SLOTS = 10_000;

export const MAX_WORKER_NAME_BYTES = 255;

const DEFAULT_CLAIM_TTL_MS = 30_000;
const MIN_CLAIM_TTL_MS = 2_000;
const MAX_CLAIM_TTL_MS = 3_600_000;

/** How long a claim without a stream lives from its last word: what was asked for, within its bounds. Null: the default. */
export function claimTtlMs(wantedMs: number | null): number {
  return Math.min(Math.max(wantedMs ?? DEFAULT_CLAIM_TTL_MS, MIN_CLAIM_TTL_MS), MAX_CLAIM_TTL_MS);
}

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
