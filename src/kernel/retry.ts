/**
 * Retry arithmetic: how long to wait after a failed attempt and after a delivery that no worker took
 * (lifecycle.md section 7). Chance is an argument, so the same inputs always give the same delay.
 */
import type { RetryPolicy } from './admission/retry-policy.js';

export const MAX_HAND_BACKS = 10;
const HAND_BACKS_WITHOUT_DELAY = 2;
const HAND_BACK_INITIAL_MS = 1_000;
const HAND_BACK_MAXIMUM_MS = 60_000;

/**
 * The back-off in ms after `attempt` (1-based) failed. `chance` in [0, 1) spreads it by ±jitter, never beyond the maximum.
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, chance: number): number {
  const growth = policy.multiplier ** Math.max(attempt - 1, 0);
  // The growth can overflow to Infinity, and 0 × Infinity would be no number: a retry that never comes due.
  const delay = policy.initialMs === 0 ? 0 : Math.min(policy.initialMs * growth, policy.maximumMs);
  const spread = Math.round(delay * (1 + policy.jitter * (2 * chance - 1)));
  return Math.min(spread, policy.maximumMs);
}

/** The back-off in ms after the n-th hand-back in a row: none for the first two, then 1, 2, 4 … at most 60 s. */
export function handBackDelayMs(handBacks: number): number {
  if (handBacks <= HAND_BACKS_WITHOUT_DELAY) return 0;
  const exponent = Math.min(handBacks - HAND_BACKS_WITHOUT_DELAY - 1, 30);
  return Math.min(HAND_BACK_INITIAL_MS * 2 ** exponent, HAND_BACK_MAXIMUM_MS);
}

/** Whether a failure with this code may be retried under the policy, attempts apart. */
export function isRetryable(
  policy: RetryPolicy,
  error: { readonly code: string; readonly retryable: boolean },
): boolean {
  return error.retryable && !policy.nonRetryableCodes.includes(error.code);
}
