/**
 * Readiness follows the store: while it takes no commits (a full disk, say) the server says that it does not serve, so
 * that whoever balances load looks elsewhere. Nobody may come meanwhile to show that the store is back; so the server
 * says again that it serves once no failure was seen for a while, and the next failure takes that back.
 */
import type { Clock, Timer } from '../lib/clock.js';
import type { Health } from './health.js';
import type { Log } from './log.js';

/** So long after the last failure it is tried again. */
export const RETRY_AFTER_OUTAGE_MS = 5_000;

export class StoreHealth {
  private timer: Timer | null = null;
  private stopped = false;

  constructor(
    private readonly health: Pick<Health, 'serving' | 'notServing'>,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'warn' | 'info'>,
  ) {}

  /** A commit or a read failed. */
  readonly failed = (): void => {
    if (this.stopped) return;
    if (this.timer === null) {
      this.health.notServing();
      this.log.warn('the store does not answer or takes no commits; nothing is served until it does');
    }
    this.timer?.cancel();
    this.timer = this.clock.after(RETRY_AFTER_OUTAGE_MS, () => {
      this.timer = null;
      this.health.serving();
      this.log.info('no failure of the store was seen for a while; serving again');
    });
  };

  /** From here on it is the stop that says what is served. */
  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }
}
