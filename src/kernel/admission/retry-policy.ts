/**
 * How often and how far apart a task is tried: the retry part of its policy.
 *
 * Owns bounds and defaults (lifecycle.md section 7). It never computes a delay: that is the kernel's retry step, which
 * is given its jitter.
 */

import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { byCodeUnits } from './canonical-json.js';
import { integerProblem, MAX_DURATION_MS, numberProblemIn } from './policy-bounds.js';
import { textProblem } from './text-rules.js';
import type { TextRule } from './text-rules.js';

export interface RetryPolicy {
  /** 1…1000, the first attempt included. */
  readonly maxAttempts: number;
  /** Before the second attempt; 0…10 years. */
  readonly initialMs: number;
  /** 1…10. */
  readonly multiplier: number;
  /** The longest delay; from `initialMs` to 10 years. */
  readonly maximumMs: number;
  /** 0…1: a delay is spread by ± this part of itself. */
  readonly jitter: number;
  /** Error codes that fail at once; sorted by UTF-16 code units, none twice. */
  readonly nonRetryableCodes: readonly string[];
}

/** Fields that are not set take their default. */
export type RetryPolicyInput = {
  readonly [Field in keyof RetryPolicy]?: RetryPolicy[Field] | undefined;
};

export const DEFAULT_RETRY_POLICY: RetryPolicy = Object.freeze({
  maxAttempts: 3,
  initialMs: 1_000,
  multiplier: 2,
  maximumMs: 300_000,
  jitter: 0.2,
  nonRetryableCodes: Object.freeze([]),
});

/** Beyond this a task that fails at once is a loop and not a retry. */
export const MAX_ATTEMPTS_LIMIT = 1_000;
export const MAX_RETRY_MULTIPLIER = 10;
export const MAX_NON_RETRYABLE_CODES = 64;
export const MAX_ERROR_CODE_BYTES = 128;

const CODE_RULE: TextRule = {
  maxBytes: MAX_ERROR_CODE_BYTES,
  empty: 'refused',
  spaces: 'nowhere',
  controls: 'refused',
};

/**
 * Checks and fills in. The field of a refusal is `retry.max_attempts`, `retry.non_retryable_codes[2]`…
 * When only one of `initial` and `maximum` is set, the default of the other gives way to it; when both are, a maximum
 * below the initial delay is refused.
 */
export function resolveRetryPolicy(input: RetryPolicyInput): Checked<RetryPolicy> {
  const defaults = DEFAULT_RETRY_POLICY;
  const maxAttempts = input.maxAttempts ?? defaults.maxAttempts;
  const initialMs = input.initialMs ?? Math.min(defaults.initialMs, input.maximumMs ?? defaults.initialMs);
  const multiplier = input.multiplier ?? defaults.multiplier;
  const maximumMs = input.maximumMs ?? Math.max(defaults.maximumMs, initialMs);
  const jitter = input.jitter ?? defaults.jitter;
  const problem =
    integerProblem('retry.max_attempts', maxAttempts, 1, MAX_ATTEMPTS_LIMIT) ??
    integerProblem('retry.initial', initialMs, 0, MAX_DURATION_MS) ??
    numberProblemIn('retry.multiplier', multiplier, 1, MAX_RETRY_MULTIPLIER) ??
    integerProblem('retry.maximum', maximumMs, initialMs, MAX_DURATION_MS) ??
    numberProblemIn('retry.jitter', jitter, 0, 1);
  if (problem !== null) return problem;
  const codes = resolveCodes(input.nonRetryableCodes ?? defaults.nonRetryableCodes);
  if (!codes.ok) return codes;
  return accepted({
    maxAttempts,
    initialMs,
    multiplier,
    maximumMs,
    jitter,
    nonRetryableCodes: codes.value,
  });
}

function resolveCodes(codes: readonly string[]): Checked<readonly string[]> {
  if (codes.length > MAX_NON_RETRYABLE_CODES) {
    return malformed('retry.non_retryable_codes', `must not be more than ${MAX_NON_RETRYABLE_CODES}`);
  }
  for (const [index, code] of codes.entries()) {
    const problem = textProblem(code, CODE_RULE);
    if (problem !== null) return malformed(`retry.non_retryable_codes[${index}]`, problem);
  }
  return accepted([...new Set(codes)].sort(byCodeUnits));
}

export function sameRetryPolicy(left: RetryPolicy, right: RetryPolicy): boolean {
  return (
    left.maxAttempts === right.maxAttempts &&
    left.initialMs === right.initialMs &&
    left.multiplier === right.multiplier &&
    left.maximumMs === right.maximumMs &&
    left.jitter === right.jitter &&
    left.nonRetryableCodes.length === right.nonRetryableCodes.length &&
    left.nonRetryableCodes.every((code, index) => code === right.nonRetryableCodes[index])
  );
}
