/**
 * Forgetting sessions that are gone: one look from time to time, in bounded steps (lifecycle.md section 7). When each may
 * go was written with its end; the store keeps those whose leases are still to be taken. Nobody is told, because a session
 * that is forgotten and one that is gone are the same to all who would act for it.
 */
import type { Authority } from '../authority/authority.js';
import type { Timer } from '../lib/clock.js';

/** Rows of the gone are in nobody's way. */
export const FORGET_PERIOD_MS = 10_000;
const MAX_BACK_OFF_MS = 60_000;
/**
 * After a pause the clock may have jumped, and what it says of ages proves nothing before it was right for the longest
 * life that a session can have.
 */
export const FORGET_QUIET_MS = 600_000;
/** Before the time of any row. How many there may be holds at any time: it needs no clock. */
const NOTHING_IS_DUE = 0;
/** Workers that come and go every second leave no more rows than this, whatever their age: what lists them stays small. */
export const MAX_GONE_SESSIONS = 20_000;

export interface SessionForgettingOptions {
  readonly authority: Authority;
  /** Epoch ms of the end of the last pause. */
  readonly quietSince: () => number;
  /** How many of the gone are kept at most, about. */
  readonly maxGone?: number;
  readonly onError: (error: unknown) => void;
}

export class SessionForgetting {
  private timer: Timer | null = null;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private failures = 0;

  constructor(private readonly options: SessionForgettingOptions) {}

  start(): void {
    if (this.stopped) return;
    const sleepMs = Math.min(FORGET_PERIOD_MS * 2 ** this.failures, MAX_BACK_OFF_MS);
    this.timer = this.options.authority.clock.after(sleepMs, () => {
      this.running = this.run();
    });
  }

  /** Begins nothing more. Resolves when the step in hand is over: until then the store is in use. */
  stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    return this.running;
  }

  private async run(): Promise<void> {
    const { authority, onError } = this.options;
    try {
      await this.forget();
      this.failures = 0;
    } catch (error) {
      authority.noteFailure(error);
      onError(error);
      this.failures += 1;
    }
    this.start();
  }

  private async forget(): Promise<void> {
    const { authority, quietSince, maxGone = MAX_GONE_SESSIONS } = this.options;
    const now = authority.now();
    const due = quietSince() + FORGET_QUIET_MS > now ? NOTHING_IS_DUE : now;
    while (!this.stopped && (await authority.store.forgetSessions(due, maxGone)));
  }
}
