/**
 * Ready tasks whose records turned out to be damaged: stepped over for a while, so that a few of them at the head of a
 * route are not proposed again and again. After that they are tried anew, since a record can be repaired.
 */
import type { Clock } from '../lib/clock.js';

/** How long a damaged task is not proposed again. */
const STEPPED_OVER_MS = 60_000;
/** How many are remembered; beyond it the oldest are tried again. */
const MAX_REMEMBERED = 20_000;

export class DamagedTasks {
  /** Monotonic ms until which each is stepped over, oldest first. */
  private readonly until = new Map<string, number>();

  constructor(private readonly clock: Clock) {}

  add(taskId: string): void {
    this.until.delete(taskId);
    this.until.set(taskId, this.clock.monotonicMs() + STEPPED_OVER_MS);
    if (this.until.size <= MAX_REMEMBERED) return;
    for (const oldest of this.until.keys()) {
      this.until.delete(oldest);
      return;
    }
  }

  /** It was made ready by a commit, its repair perhaps: it is worth another look. */
  forget(taskId: string): void {
    if (this.until.size > 0) this.until.delete(taskId);
  }

  has(taskId: string): boolean {
    const until = this.until.get(taskId);
    if (until === undefined) return false;
    if (until > this.clock.monotonicMs()) return true;
    this.until.delete(taskId);
    return false;
  }
}
