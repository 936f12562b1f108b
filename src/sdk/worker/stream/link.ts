/**
 * One Work stream as the session sees it: encoded frames out and in, one end. Whether the stream lives on this loop or
 * in a thread is behind this interface; what keeps it alive (heartbeats, the watch over the server's silence, the
 * receipts `delivered`) is the keeper's and not seen here.
 */
import type { ReeveError } from '../../transport/reeve-error.js';
import type { FrameKind } from './frame-glance.js';

/** A claim by its fencing token. */
export interface HeldRef {
  readonly taskId: string;
  readonly epoch: bigint;
}

export interface LinkListener {
  /**
   * A WorkResponse, encoded: anything but heartbeats and what no worker of this version knows.
   *
   * @param about for a rejection: what kind of frame was rejected, where that is still known.
   */
  onFrame(frame: Uint8Array, about: FrameKind | null): void;
  /** The session lives one TTL from `sentAtMs` (epoch ms) on. */
  onRenewed(sentAtMs: number): void;
  /** A frame that this version does not know was refused. */
  onUnknownFrame(frameId: number): void;
  /** `writable` is true again. */
  onWritable(): void;
  /** Once, whatever happened; code OK when the server ended it in peace. */
  onEnd(ending: ReeveError): void;
}

export interface Link {
  /** False while more is on its way than should be. */
  readonly writable: boolean;
  /** A WorkRequest, encoded, without its frame id. */
  send(frame: Uint8Array): void;
  /**
   * Events to be sent if this loop says nothing more soon, because a handler computes: the next frame of events says
   * them again and takes their place. Null where nobody could send them then.
   */
  readonly sendIfSilent: ((frame: Uint8Array) => void) | null;
  /** Absolute: how many claims to hold at once. */
  setSlots(slots: number): void;
  /** Says that nothing more comes; the server answers what is outstanding and ends. */
  halfClose(): void;
  /** Ends it at once from this side, with this as the ending's message. */
  give(why: string): void;
}

/** Whose streams they are. */
export interface LinksHost {
  /** What the worker believes it holds, attached or not. */
  held(): readonly HeldRef[];
  /** The loop that does the work had not answered for so long, and is back. */
  onStalled(silentMs: number): void;
}

export interface Links {
  /**
   * @param hello a WorkRequest with Hello, encoded, without its frame id.
   * @param slots what that Hello says about them.
   */
  open(hello: Uint8Array, slots: number, listener: LinkListener): Link;
  /** After the last link has ended. */
  close(): Promise<void>;
}
