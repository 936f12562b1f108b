/**
 * The windows that have something to claim, in the order of their turns: queues take turns, and within a queue the
 * route whose first task is due first comes first. Windows whose sessions are all busy stand aside, so that they do not
 * cost every claim a look.
 */
import type { Pool } from './pool.js';
import type { RouteWindow } from './route-window.js';

/** Routes of one queue whose first tasks are compared for one claim; where there are more, they take turns at it. */
const MAX_COMPARED_ROUTES = 64;
/** Windows that stand aside and are looked at per wake-up; the others come at the next ones. */
const MAX_LOOKS_PER_WAKE = 1_024;

export interface Claimable {
  readonly window: RouteWindow;
  readonly pool: Pool;
}

export class ClaimableWindows {
  /** By queue, in the order of their turns. */
  private readonly queues = new Map<string, Set<RouteWindow>>();
  /** With entries, served by somebody, and nobody of those had a free slot when it was looked at. */
  private readonly aside = new Set<RouteWindow>();

  get isEmpty(): boolean {
    return this.queues.size === 0;
  }

  /** It has an entry. Ignored while nobody serves it. */
  add(window: RouteWindow): void {
    if (window.pools.length === 0) return;
    this.aside.delete(window);
    const queue = this.queues.get(window.queueKey);
    if (queue === undefined) this.queues.set(window.queueKey, new Set([window]));
    else queue.add(window);
  }

  remove(window: RouteWindow): void {
    this.aside.delete(window);
    const queue = this.queues.get(window.queueKey);
    if (queue?.delete(window) === true && queue.size === 0) this.queues.delete(window.queueKey);
  }

  /** Credit came back somewhere: those that stand aside and have a free slot now are back in turn. */
  recheck(): void {
    let looks = Math.min(this.aside.size, MAX_LOOKS_PER_WAKE);
    for (const window of this.aside) {
      if (looks === 0) return;
      looks -= 1;
      this.aside.delete(window);
      if (window.hasCredit) this.add(window);
      else if (window.pools.length > 0) this.aside.add(window);
    }
  }

  /** The window whose turn it is, with a pool that has a free slot for it; null when there is none. */
  next(): Claimable | null {
    for (const [key, queue] of this.queues) {
      const first = this.firstOf(queue);
      // The queue's turn is over, whether or not it had something.
      this.queues.delete(key);
      if (queue.size > 0) this.queues.set(key, queue);
      if (first !== null) return first;
    }
    return null;
  }

  private firstOf(queue: Set<RouteWindow>): Claimable | null {
    let best: Claimable | null = null;
    let compared = 0;
    for (const window of queue) {
      if (compared === MAX_COMPARED_ROUTES) break;
      const pool = window.freePool;
      if (pool === undefined || window.size === 0) {
        queue.delete(window);
        if (window.size > 0 && window.pools.length > 0) this.aside.add(window);
        continue;
      }
      compared += 1;
      if (best === null || window.firstOrder < best.window.firstOrder) best = { window, pool };
    }
    if (best !== null && queue.size > 1) {
      queue.delete(best.window);
      queue.add(best.window);
    }
    return best;
  }
}
