/**
 * What users write: handlers per action kind, and what a handler is given.
 */
import type { JsonObject } from '../transport/json.js';
import type { Claim } from './claim.js';

/**
 * All of it works destructured. What is said is numbered and sent in order; nothing waits for the network. Awaiting it
 * lets a handler that computes hear what came meanwhile, a cancel for example.
 */
export interface HandlerContext {
  /**
   * Aborts with CancelRequested, LeaseLost, DeadlineExceeded or Draining as its reason. Let that escape. A cancel is
   * acknowledged when the signal has a listener or is looked at. DeadlineExceeded is the server's word; where nothing has
   * been heard of it for a TTL it is the worker's own, and if the deadline turns out to have been moved the handler is
   * called again, with the last checkpoint. A listener that throws ends the process: Node throws it anew as an uncaught
   * exception, where no SDK can catch it.
   */
  readonly signal: AbortSignal;
  /** How far it is, 0 … 1 (undefined: not known), and a word for people, at most 8 KiB. */
  readonly progress: (fraction?: number, message?: string) => Promise<void>;
  /** A partial result, any JSON value. Throws ReeveError MALFORMED when it is larger than the server takes. */
  readonly output: (value: unknown) => Promise<void>;
  /** The same in bytes, with a media type. */
  readonly binary: (data: Uint8Array, contentType: string) => Promise<void>;
  /** It cannot go on for now. Whatever it says next, or `unblocked`, ends that. */
  readonly blocked: (reason: string) => Promise<void>;
  readonly unblocked: () => Promise<void>;
  /** State for the next attempt, any JSON value; replaces the one before. */
  readonly checkpoint: (value: unknown) => Promise<void>;
  /** Resolves once everything said so far is committed; throws the first refusal since the last call, or LeaseLost. */
  readonly committed: () => Promise<void>;
  /** Until when the lease is sure if nothing more is heard; ask before what cannot be undone. */
  readonly leaseSureUntil: Date;
}

/**
 * Does one claim. What it returns is the result; as a generator, async or not, what it yields are outputs. A throw fails
 * the attempt; see outcomes.ts for the typed ones. `progress`, `output` and the others resolve when there is room
 * for more, which is at once unless much is unanswered.
 */
export type Handler<Args = JsonObject> = (claim: Claim<Args>, context: HandlerContext) => unknown;

/** By action kind; `*` for all that have no handler of their own. */
export type Handlers<Kinds> = { readonly [Kind in keyof Kinds]: Handler<Kinds[Kind]> };
