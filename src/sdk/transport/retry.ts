/**
 * Unary calls tried again where that is safe and useful: same request, same key, RetryInfo honoured, bounded by a
 * deadline, a number of tries and a budget that all calls of a client share.
 */
import { status } from '@grpc/grpc-js';
import { setTimeout as delay } from 'node:timers/promises';
import { Backoff } from './backoff.js';
import { MAX_TIMER_MS, requireAtLeast, requireSpanMs } from './option-checks.js';
import { ReeveError, toReeveError } from './reeve-error.js';
import { abortError, type CallOptions } from './rpc.js';

export interface RetryOptions {
  /** Tries of one call, the first included. Default 8. */
  readonly maxAttempts?: number;
  /** Wait before the second try, ms; doubles. Default 50. */
  readonly initialMs?: number;
  /** No wait of the client's own choosing is longer, ms. Default 2,000. */
  readonly maximumMs?: number;
}

/** Retries that may be outstanding before successes have paid for them; keeps an outage from doubling the load. */
const BUDGET = 100;
const EARNED_PER_SUCCESS = 0.1;

export class Retrier {
  private budget = BUDGET;

  private readonly maxAttempts: number;
  private readonly initialMs: number;
  private readonly maximumMs: number;

  /** @throws OptionError. */
  constructor({ maxAttempts = 8, initialMs = 50, maximumMs = 2_000 }: RetryOptions = {}) {
    this.maxAttempts = requireAtLeast('retry.maxAttempts', maxAttempts, 1);
    this.initialMs = requireSpanMs('retry.initialMs', initialMs);
    this.maximumMs = requireSpanMs('retry.maximumMs', maximumMs);
  }

  /**
   * @param timeoutMs for all tries together.
   * @param counts whether a try that failed counts. One that reached nobody does not: how long that is tried is a time,
   *   and the signal's.
   * @throws ReeveError, the last one; DEADLINE_EXCEEDED when time ran out before any answer.
   */
  async run<T>(
    call: (options: CallOptions) => Promise<T>,
    timeoutMs: number,
    signal?: AbortSignal,
    counts: () => boolean = () => true,
  ): Promise<T> {
    const { maxAttempts, initialMs, maximumMs } = this;
    const backoff = new Backoff({ initialMs, maximumMs });
    const deadline = new Date(Date.now() + timeoutMs);
    for (let attempt = 1; ;) {
      try {
        const answer = await call({ deadline, signal });
        this.budget = Math.min(BUDGET, this.budget + EARNED_PER_SUCCESS);
        return answer;
      } catch (caught) {
        if (signal?.aborted === true) throw caught;
        const error = toReeveError(caught);
        const counted = counts();
        if (!error.retryable || (counted && (attempt >= maxAttempts || this.budget < 1))) throw error;
        const waitMs = backoff.next(error.retryAfterMs);
        if (Date.now() + waitMs >= deadline.getTime()) throw error;
        if (counted) {
          attempt += 1;
          this.budget -= 1;
        }
        await pause(waitMs, signal);
      }
    }
  }
}

/** Waits, or throws the signal's reason. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(Math.min(ms, MAX_TIMER_MS), undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    throw signal?.aborted === true ? abortError(signal) : error;
  }
}

export function deadlineExceeded(what: string): ReeveError {
  return new ReeveError({ reason: 'DEADLINE_EXCEEDED', code: status.DEADLINE_EXCEEDED, message: what });
}
