/**
 * Whether a client has ever reached its address: until then a call waits only so long, and its error names the address
 * instead of a time-out that looks like the server's. Once reached, an outage is waited for as each call allows.
 */
import { type ChannelInterface, connectivityState, status } from '@grpc/grpc-js';
import { optionalFunction, requireSpanMs } from './option-checks.js';
import { ReeveError } from './reeve-error.js';
import type { RpcConnection } from './rpc.js';

/** Of the connection for calls and submissions. */
export type ConnectionState = 'idle' | 'connecting' | 'ready' | 'unreachable' | 'closed';

export interface ReachOptions {
  /**
   * How long calls and submissions wait for the first connection, ms, before they fail as UNREACHABLE. Default 10,000.
   */
  readonly connectTimeoutMs?: number;
  /** The connection for calls and submissions has changed; for logs. What it throws is dropped. */
  readonly onConnectionState?: (state: ConnectionState, address: string) => void;
}

export interface Patience {
  /** The caller's, which is also aborted when the first connection does not come in time. */
  readonly signal: AbortSignal | undefined;
  /** Nothing is waited for any more. */
  readonly end: () => void;
}

export class Reach {
  readonly timeoutMs: number;
  private reached = false;

  constructor(
    readonly address: string,
    private readonly options: ReachOptions,
  ) {
    this.timeoutMs = requireSpanMs('connectTimeoutMs', options.connectTimeoutMs ?? 10_000);
    optionalFunction('onConnectionState', options.onConnectionState);
  }

  /** A connection has been there once. */
  get everConnected(): boolean {
    return this.reached;
  }

  /** @param isMain whose states are told. */
  observe(rpc: RpcConnection, isMain: boolean): void {
    this.watch(rpc.channel, isMain);
  }

  patience(signal: AbortSignal | undefined): Patience {
    if (this.reached) return { signal, end: () => undefined };
    const controller = new AbortController();
    const timer = setTimeout(() => {
      if (!this.reached) controller.abort(this.unreachable());
    }, this.timeoutMs);
    return {
      signal: signal === undefined ? controller.signal : AbortSignal.any([controller.signal, signal]),
      end: () => clearTimeout(timer),
    };
  }

  /** What a call failed with, and the address where nobody has ever been reached there. */
  explain(thrown: unknown): unknown {
    if (this.reached || !(thrown instanceof ReeveError) || thrown.reason === UNREACHABLE) return thrown;
    const ofTheWire = thrown.code === status.UNAVAILABLE || thrown.code === status.DEADLINE_EXCEEDED;
    return ofTheWire ? this.unreachable(thrown) : thrown;
  }

  /** Nothing was ever sent. */
  unreachable(cause?: ReeveError): ReeveError {
    const why = cause === undefined ? `no connection within ${this.timeoutMs} ms` : cause.message;
    return new ReeveError({
      reason: UNREACHABLE,
      code: status.UNAVAILABLE,
      message: `nobody was reached at ${this.address}: ${why}`,
      metadata: { address: this.address },
      ...(cause !== undefined && { cause }),
    });
  }

  private watch(channel: ChannelInterface, isMain: boolean): void {
    const state = channel.getConnectivityState(false);
    if (state === connectivityState.READY) this.reached = true;
    if (isMain) this.tell(state);
    if (state === connectivityState.SHUTDOWN) return;
    // No time limit, so no timer: an idle client keeps no process alive.
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => this.watch(channel, isMain));
  }

  private tell(state: connectivityState): void {
    try {
      this.options.onConnectionState?.(words[state], this.address);
    } catch {
      // A broken log must not break the call.
    }
  }
}

const UNREACHABLE = 'UNREACHABLE';

const words: Readonly<Record<connectivityState, ConnectionState>> = {
  [connectivityState.IDLE]: 'idle',
  [connectivityState.CONNECTING]: 'connecting',
  [connectivityState.READY]: 'ready',
  [connectivityState.TRANSIENT_FAILURE]: 'unreachable',
  [connectivityState.SHUTDOWN]: 'closed',
};
