/**
 * Back-off with jitter, so that a thousand clients of one restarted server do not come back in one moment.
 */
import { MAX_TIMER_MS } from './option-checks.js';

export interface BackoffOptions {
  /** The first wait, ms; each further one is twice the last. */
  readonly initialMs: number;
  /** No wait is longer, ms. */
  readonly maximumMs: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

export class Backoff {
  private failures = 0;

  constructor(private readonly options: BackoffOptions) {}

  /** The next wait, ms: between half and the whole of the current step, never less than `atLeastMs`. */
  next(atLeastMs = 0): number {
    const { initialMs, maximumMs, random = Math.random } = this.options;
    const step = Math.min(maximumMs, initialMs * 2 ** Math.min(this.failures, 30));
    this.failures += 1;
    return Math.min(MAX_TIMER_MS, Math.max(atLeastMs + (random() * step) / 2, step / 2 + (random() * step) / 2));
  }

  reset(): void {
    this.failures = 0;
  }
}
