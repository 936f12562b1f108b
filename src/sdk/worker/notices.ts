/**
 * What a worker tells about itself, for logs and metrics. Telling is never in the way: what a listener throws is
 * dropped.
 */
import type { ReeveError } from '../transport/reeve-error.js';
import type { LeaseLossWord } from './stop-reasons.js';

export type SettlementWord = 'completed' | 'failed' | 'cancelled' | 'timed_out' | 'suspended';

export type WorkerNotice =
  /** A stream is attached; `resumed` when it goes on with the session of an earlier one. */
  | { readonly type: 'attached'; readonly sessionAlias: string; readonly attachment: number; readonly resumed: boolean }
  /** The stream ended; the next try comes in `retryInMs`. */
  | { readonly type: 'detached'; readonly error: ReeveError; readonly retryInMs: number }
  /** The session is over and everything it held is lost. */
  | { readonly type: 'session_lost'; readonly claims: number }
  | { readonly type: 'lease_lost'; readonly taskId: string; readonly epoch: number; readonly why: LeaseLossWord }
  | { readonly type: 'cancel_requested'; readonly taskId: string; readonly epoch: number }
  /** The server did not take one event. */
  | {
      readonly type: 'event_refused';
      readonly taskId: string;
      readonly epoch: number;
      readonly eventSeq: number;
      readonly error: ReeveError;
    }
  /** The server did not take a frame, or sent one that this version does not know. */
  | { readonly type: 'frame_refused'; readonly frameId: number; readonly error: ReeveError }
  /**
   * No settlement of this claim was taken, and the claim is given up: its task goes back to the queue. In a drain that
   * is what becomes of a result that waits for live children; UNAVAILABLE: the worker left before the answer came, and
   * it may have been committed.
   */
  | {
      readonly type: 'settlement_abandoned';
      readonly taskId: string;
      readonly epoch: number;
      readonly error: ReeveError;
    }
  | { readonly type: 'outputs_dropped'; readonly taskId: string; readonly epoch: number }
  /**
   * A handler computed for so long without a pause. The thread renewed the session meanwhile, up to its limit; nothing
   * was heard and no claim was asked for.
   */
  | { readonly type: 'stalled'; readonly silentMs: number }
  /** The server is going; the worker will attach again elsewhere. */
  | { readonly type: 'server_draining'; readonly reconnectInMs: number }
  | { readonly type: 'draining'; readonly running: number }
  | { readonly type: 'drained'; readonly released: number };

export interface Settled {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly kind: string;
  readonly as: SettlementWord;
}

export type Tell = (notice: WorkerNotice) => void;

/** A listener whose throw is dropped: a broken log must not break the work. */
export function listening<T>(listener: ((about: T) => void) | undefined): (about: T) => void {
  if (listener === undefined) return () => undefined;
  return (about) => {
    try {
      listener(about);
    } catch {
      // Nobody to tell it to.
    }
  };
}
