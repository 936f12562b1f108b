// A clock that moves only when a test says so: wall clock, monotonic clock and timers in one hand.

import type { Clock, Timer } from '../../src/lib/clock.js';
import { turns } from './turns.js';

export const T0 = 1_800_000_000_000;

interface Armed {
  readonly at: number;
  readonly order: number;
  readonly task: () => void;
}

export class ManualClock implements Clock {
  private wallMs: number;
  private runMs = 1_000;
  private armed = new Set<Armed>();
  private orders = 0;

  constructor(startMs = T0) {
    this.wallMs = startMs;
  }

  nowMs(): number {
    return this.wallMs;
  }

  monotonicMs(): number {
    return this.runMs;
  }

  after(delayMs: number, task: () => void): Timer {
    const entry = { at: this.runMs + Math.max(delayMs, 0), order: this.orders++, task };
    this.armed.add(entry);
    return { cancel: () => void this.armed.delete(entry) };
  }

  /** How many timers are armed: what is left at the end of a test leaks. */
  get armedTimers(): number {
    return this.armed.size;
  }

  /** Time passes as it does for a healthy process: every timer runs when it is due, and what it starts gets its turns. */
  async advance(ms: number): Promise<void> {
    const end = this.runMs + ms;
    for (let next = this.firstUntil(end); next !== undefined; next = this.firstUntil(end)) {
      this.armed.delete(next);
      this.pass(next.at - this.runMs);
      next.task();
      await turns(4);
    }
    this.pass(end - this.runMs);
    await turns();
  }

  /** The process stands still for so long (SIGSTOP, a blocked event loop); late timers run afterwards, each once. */
  async stall(ms: number): Promise<void> {
    this.pass(ms);
    const late = [...this.armed].filter((entry) => entry.at <= this.runMs);
    for (const entry of late.sort(byTime)) {
      if (!this.armed.delete(entry)) continue;
      entry.task();
      await turns(4);
    }
    await turns();
  }

  /** The wall clock is set; nothing else notices. */
  step(ms: number): void {
    this.wallMs += ms;
  }

  private pass(ms: number): void {
    this.wallMs += ms;
    this.runMs += ms;
  }

  private firstUntil(end: number): Armed | undefined {
    let first: Armed | undefined;
    for (const entry of this.armed) {
      if (entry.at <= end && (first === undefined || byTime(entry, first) < 0)) first = entry;
    }
    return first;
  }
}

function byTime(left: Armed, right: Armed): number {
  return left.at - right.at || left.order - right.order;
}
