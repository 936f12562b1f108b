/**
 * Stored form of a task's policy: only what differs from the defaults below, so that a plain task stores `{}`.
 * The defaults are this format's own and frozen with it: when the kernel's change, old rows must not.
 */
import type { Dependency, ParentLink } from '../kernel/admission/family-policy.js';
import { CANCELLATION_POLICIES, type RetryPolicy, type TaskPolicy } from '../kernel/admission/policy.js';
import { CONDITIONS, CONDITION_CODES, UNSATISFIED, UNSATISFIED_CODES } from './code-tables.js';
import {
  flagOf,
  integerOr,
  integerOrNull,
  nameOf,
  numberOf,
  objectOf,
  textMapOf,
  textOf,
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
  if (policy.parent !== null) add('P', encodeParent(policy.parent));
  if (policy.dependsOn.length > 0) add('D', `[${policy.dependsOn.map(encodeDependency).join()}]`);
  if (policy.onUnsatisfied !== 'skip') add('u', String(UNSATISFIED_CODES[policy.onUnsatisfied]));
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
    parent: fields['P'] === undefined ? null : decodeParent(fields['P']),
    dependsOn: fields['D'] === undefined ? NO_DEPENDENCIES : tupleOf(fields['D'], 'dependencies').map(decodeDependency),
    onUnsatisfied: nameOf(UNSATISFIED, fields['u'] ?? 0, 'on-unsatisfied'),
  };
}

const NO_DEPENDENCIES: readonly Dependency[] = [];

function encodeParent({ taskId, generationId, attached }: ParentLink): string {
  return `[${quoted(taskId)},${quoted(generationId)},${attached ? '1' : '0'}]`;
}

function decodeParent(value: unknown): ParentLink {
  const [taskId, generationId, attached] = tupleOf(value, 'parent');
  return {
    taskId: textOf(taskId, 'parent'),
    generationId: textOf(generationId, 'parent generation'),
    attached: flagOf(attached, false, 'attached'),
  };
}

function encodeDependency({ taskId, condition }: Dependency): string {
  return `[${quoted(taskId)},${String(CONDITION_CODES[condition])}]`;
}

function decodeDependency(value: unknown): Dependency {
  const [taskId, condition] = tupleOf(value, 'dependency');
  return { taskId: textOf(taskId, 'dependency'), condition: nameOf(CONDITIONS, condition, 'condition') };
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
