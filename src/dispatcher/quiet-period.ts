/**
 * The quiet period: when the service itself was away (a start, a stall of its event loop, a step of the clock, an
 * outage of its store), silence of others proves nothing. Sessions and excusable timers are judged only one TTL after
 * the last such pause (lifecycle.md section 7).
 */
import type { Clock, Timer } from '../lib/clock.js';

/** A pause shorter than this is not one. */
export const PAUSE_THRESHOLD_MS = 1_000;
const CHECK_PERIOD_MS = 250;

export class QuietPeriod {
  private since: number;
  private lastWallMs: number;
  private lastMonotonicMs: number;
  private timer: Timer | null = null;

  constructor(private readonly clock: Clock) {
    this.since = clock.nowMs();
    this.lastWallMs = this.since;
    this.lastMonotonicMs = clock.monotonicMs();
  }

  start(): void {
    this.timer = this.clock.after(CHECK_PERIOD_MS, () => {
      this.observe();
      this.start();
    });
  }

  stop(): void {
    this.timer?.cancel();
  }

  /** Epoch ms of the end of the last pause. Looks for a fresh one first, so that no judge is faster than the watch. */
  quietSince(): number {
    this.observe();
    return this.since;
  }

  /** Somebody else noticed a pause: the store came back after an outage. */
  begin(): void {
    this.since = this.clock.nowMs();
  }

  private observe(): void {
    const wallMs = this.clock.nowMs();
    const monotonicMs = this.clock.monotonicMs();
    const elapsedMs = monotonicMs - this.lastMonotonicMs;
    const stepMs = Math.abs(wallMs - this.lastWallMs - elapsedMs);
    this.lastWallMs = wallMs;
    this.lastMonotonicMs = monotonicMs;
    if (elapsedMs > CHECK_PERIOD_MS + PAUSE_THRESHOLD_MS || stepMs > PAUSE_THRESHOLD_MS) this.since = wallMs;
  }
}
