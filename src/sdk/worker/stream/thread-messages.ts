/**
 * What the loop that does the work and the thread that keeps its streams say to each other. Values that survive a
 * structured clone, and nothing else; links are named by number, and what names one that has ended is ignored.
 */
import type { ReeveError, ReeveErrorFields } from '../../transport/reeve-error.js';
import type { TlsOptions } from '../../transport/rpc.js';
import type { FrameKind } from './frame-glance.js';
import type { HeldRef } from './link.js';

/** What the thread is given at its start. */
export interface ThreadData {
  readonly address: string;
  readonly tls: TlsOptions | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Beyond so much silence of the loop, ms, nothing is renewed for it; 0: never. */
  readonly wedgedAfterMs: number;
  /** Whether a session outlives its stream. */
  readonly reattaches: boolean;
}

export type ToThread =
  | { readonly type: 'open'; readonly link: number; readonly hello: Uint8Array; readonly slots: number }
  | { readonly type: 'send'; readonly link: number; readonly frame: Uint8Array }
  | { readonly type: 'send_if_silent'; readonly link: number; readonly frame: Uint8Array }
  | { readonly type: 'slots'; readonly link: number; readonly slots: number }
  | { readonly type: 'half_close'; readonly link: number }
  | { readonly type: 'give'; readonly link: number; readonly why: string }
  /** The loop is there. `held` where it was asked for. */
  | { readonly type: 'here'; readonly held: readonly HeldRef[] | null };

export type ToLoop =
  /** The thread is up. */
  | { readonly type: 'ready' }
  | { readonly type: 'frame'; readonly link: number; readonly frame: Uint8Array; readonly about: FrameKind | null }
  | { readonly type: 'renewed'; readonly link: number; readonly sentAtMs: number }
  | { readonly type: 'unknown_frame'; readonly link: number; readonly frameId: number }
  /** So many bytes of what was sent have been taken by the stream. */
  | { readonly type: 'taken'; readonly link: number; readonly bytes: number }
  | { readonly type: 'end'; readonly link: number; readonly ending: ReeveErrorFields }
  /** Is anybody there? To be answered by `here`, with what is held if `list`. */
  | { readonly type: 'ask'; readonly list: boolean }
  /** The loop answers again after a silence that was noticed. */
  | { readonly type: 'stalled'; readonly silentMs: number };

export function toFields(error: ReeveError): ReeveErrorFields {
  const { reason, code, message, metadata, retryAfterMs, retryable } = error;
  return { reason, code, message, metadata, retryAfterMs, retryable };
}
