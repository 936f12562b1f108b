/**
 * What a worker does later. All of it ends with the worker: a timer that outlives it would hold the process, and act
 * for somebody who is gone.
 */
import { MAX_TIMER_MS } from '../transport/option-checks.js';

export interface Delay {
  /** Does it now, if it has not been done or cancelled. */
  readonly hasten: () => void;
  readonly cancel: () => void;
}

export class Delays {
  private readonly pending = new Set<Delay>();
  private over = false;

  /** After `end` nothing is done any more. */
  after(ms: number, act: () => void): Delay {
    const finish = (): boolean => {
      clearTimeout(timer);
      return this.pending.delete(delay);
    };
    const hasten = () => {
      if (finish()) act();
    };
    // A longer wait than a timer holds is one that a server asked for: what is done earlier does no harm.
    const timer = setTimeout(hasten, Math.min(ms, MAX_TIMER_MS));
    const delay = { hasten, cancel: () => void finish() };
    this.pending.add(delay);
    if (this.over) finish();
    return delay;
  }

  end(): void {
    this.over = true;
    for (const delay of [...this.pending]) delay.cancel();
  }
}
