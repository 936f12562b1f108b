/**
 * Stored form of a task's policy: only what differs from the defaults below, so that a plain task stores `{}`.
 * The defaults are this format's own and frozen with it: when the kernel's change, old rows must not.
 */
import { CANCELLATION_POLICIES, type RetryPolicy, type TaskPolicy } from '../kernel/admission/policy.js';
import {
  integerOr,
  integerOrNull,
  nameOf,
  numberOf,
  objectOf,
  textMapOf,
  textOrNull,
  textsOf,
  tupleOf,
} from './decode-guards.js';
import { isEmptyMap, quoted, quotedList, quotedMap } from './json-writing.js';

/** Format 1. */
const RETRY: RetryPolicy = {
  maxAttempts: 3,
  initialMs: 1_000,
  multiplier: 2,
  maximumMs: 300_000,
  jitter: 0.2,
  nonRetryableCodes: [],
};

export function encodePolicy(policy: TaskPolicy): string {
  let fields = '';
  const add = (key: string, value: string): void => {
    fields += `${fields === '' ? '' : ','}"${key}":${value}`;
  };
  if (policy.priority !== 0) add('p', String(policy.priority));
  if (!isEmptyMap(policy.labels)) add('l', quotedMap(policy.labels));
  if (policy.description !== null) add('d', quoted(policy.description));
  if (policy.timeoutMs !== null) add('t', String(policy.timeoutMs));
  if (policy.startByMs !== null) add('s', String(policy.startByMs));
  if (policy.notBeforeAtMs !== null) add('n', String(policy.notBeforeAtMs));
  if (policy.attemptTimeoutMs !== null) add('a', String(policy.attemptTimeoutMs));
  if (policy.progressTimeoutMs !== null) add('g', String(policy.progressTimeoutMs));
  const retry = encodeRetry(policy.retry);
  if (retry !== null) add('r', retry);
  if (policy.cancellationPolicy !== 'COOPERATIVE') add('c', '1');
  if (policy.concurrencyKey !== null) add('k', quoted(policy.concurrencyKey));
  if (policy.retentionMs !== null) add('e', String(policy.retentionMs));
  return `{${fields}}`;
}

function encodeRetry(retry: RetryPolicy): string | null {
  const { maxAttempts, initialMs, multiplier, maximumMs, jitter, nonRetryableCodes } = retry;
  const plain =
    maxAttempts === RETRY.maxAttempts &&
    initialMs === RETRY.initialMs &&
    multiplier === RETRY.multiplier &&
    maximumMs === RETRY.maximumMs &&
    jitter === RETRY.jitter &&
    nonRetryableCodes.length === 0;
  if (plain) return null;
  return `[${[maxAttempts, initialMs, multiplier, maximumMs, jitter].join()},${quotedList(nonRetryableCodes)}]`;
}

export function decodePolicy(value: unknown): TaskPolicy {
  const fields = objectOf(value, 'policy');
  return {
    priority: integerOr(fields['p'], 0, 'priority'),
    labels: textMapOf(fields['l'], 'labels'),
    description: textOrNull(fields['d'], 'description'),
    timeoutMs: integerOrNull(fields['t'], 'timeout'),
    startByMs: integerOrNull(fields['s'], 'start-by'),
    notBeforeAtMs: integerOrNull(fields['n'], 'not-before'),
    attemptTimeoutMs: integerOrNull(fields['a'], 'attempt time-out'),
    progressTimeoutMs: integerOrNull(fields['g'], 'progress time-out'),
    retry: decodeRetry(fields['r']),
    cancellationPolicy: nameOf(CANCELLATION_POLICIES, fields['c'] ?? 0, 'cancellation policy'),
    concurrencyKey: textOrNull(fields['k'], 'concurrency key'),
    retentionMs: integerOrNull(fields['e'], 'retention'),
  };
}

function decodeRetry(value: unknown): RetryPolicy {
  if (value === undefined) return RETRY;
  const [maxAttempts, initialMs, multiplier, maximumMs, jitter, codes] = tupleOf(value, 'retry');
  return {
    maxAttempts: numberOf(maxAttempts, 'retry'),
    initialMs: numberOf(initialMs, 'retry'),
    multiplier: numberOf(multiplier, 'retry'),
    maximumMs: numberOf(maximumMs, 'retry'),
    jitter: numberOf(jitter, 'retry'),
    nonRetryableCodes: textsOf(codes, 'retry'),
  };
}
