/**
 * Time as a dependency: wall clock, monotonic clock and timers, so that a simulation can own all three.
 * Nothing else in the service asks the process what time it is.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Epoch ms. May step; compare it with what is stored, never with itself. */
  nowMs(): number;
  /** Ms since some fixed point; never steps. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`; spans beyond 2^31−1 ms (24.8 days) are cut there, so re-arm on firing. */
  after(delayMs: number, task: () => void): Timer;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, task) {
    const handle = setTimeout(task, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    return { cancel: () => clearTimeout(handle) };
  },
};
