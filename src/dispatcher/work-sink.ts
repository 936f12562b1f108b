/**
 * What a session needs of the stream it is attached to. Implemented by the work stream service; the dispatcher never
 * sees a frame. Each call is one wake-up's worth: lists, not items. Calls return false when the stream is no longer
 * able to take anything, and then nothing of the list was sent.
 */
import type { CancelNotice, DeliveredClaim, LeaseLoss } from '../kernel/delivery.js';

export type { CancelNotice, DeliveredClaim, LeaseLoss, LeaseLossCause } from '../kernel/delivery.js';

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
