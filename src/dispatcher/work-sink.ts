/**
 * What a session needs of the stream it is attached to. Implemented by the work stream service; the dispatcher never
 * sees a frame. Each call is one wake-up's worth: lists, not items. Calls return false when the stream is no longer
 * able to take anything, and then nothing of the list was sent.
 */
import type { Reason } from '../kernel/cause.js';
import type { TaskRecord } from '../kernel/record.js';

/** A committed claim on its way to its worker. */
export interface DeliveredClaim {
  readonly record: TaskRecord;
  readonly epoch: number;
  readonly leaseToken: string;
  readonly cancellationToken: string;
  /** The last checkpoint of an earlier attempt, and the input of a resume, as JSON text. */
  readonly checkpointJson: string | null;
  readonly inputJson: string | null;
  /** Epoch ms; the earlier of the total and the attempt deadline. */
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

export interface WorkSink {
  claims(claims: readonly DeliveredClaim[]): boolean;
  /** Control: never behind outputs. */
  cancels(notices: readonly CancelNotice[]): boolean;
  leasesLost(losses: readonly LeaseLoss[]): boolean;
  /** The server is going: reconnect elsewhere after `reconnectAfterMs`, keep working. */
  drain(reconnectAfterMs: number, graceMs: number): boolean;
  /** Ends the stream: a newer stream took the session over, or the session is gone. */
  close(why: 'superseded' | 'session_gone' | 'draining'): void;
}
