/**
 * The policy of a task: how urgently, how long and how often it is tried. Everything about it that is not hashed.
 *
 * Owns bounds, defaults and comparison of its fields; the form of what it says of other tasks is family-policy.ts's. After resolving every field has a value or null, and nothing downstream
 * knows a default.
 */

import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { type FamilyPolicy, resolveFamily, sameDependencies, sameParent } from './family-policy.js';
import { checkConcurrencyKey } from './identifiers.js';
import { resolveLabels, sameLabels } from './labels.js';
import type { Labels } from './labels.js';
import { integerProblem, MAX_DURATION_MS, MAX_EPOCH_MS } from './policy-bounds.js';
import { resolveRetryPolicy, sameRetryPolicy } from './retry-policy.js';
import type { RetryPolicy, RetryPolicyInput } from './retry-policy.js';
import { textProblem } from './text-rules.js';
import type { TextRule } from './text-rules.js';

export type { RetryPolicy } from './retry-policy.js';

export const CANCELLATION_POLICIES = ['COOPERATIVE', 'FENCED'] as const;
export type CancellationPolicy = (typeof CANCELLATION_POLICIES)[number];

export interface TaskPolicy extends FamilyPolicy {
  /** −100…100; one step outweighs one minute of waiting. */
  readonly priority: number;
  readonly labels: Labels;
  readonly description: string | null;
  /** From admission to the end of a generation; 1 ms to 10 years, as are all durations. Null: no limit. */
  readonly timeoutMs: number | null;
  /** From admission to the first claim. */
  readonly startByMs: number | null;
  /** Not claimable before; epoch ms. */
  readonly notBeforeAtMs: number | null;
  readonly attemptTimeoutMs: number | null;
  /** Longest silence of a running attempt. */
  readonly progressTimeoutMs: number | null;
  readonly retry: RetryPolicy;
  readonly cancellationPolicy: CancellationPolicy;
  readonly concurrencyKey: string | null;
  /** How long a terminal task is kept, 0 ms to 10 years. Null: what the deployment says. */
  readonly retentionMs: number | null;
}

/** What is not set (absent, undefined or null) takes its default; 0 means 0. */
export type TaskPolicyInput = {
  readonly [Field in Exclude<keyof TaskPolicy, 'retry' | 'cancellationPolicy'>]?: TaskPolicy[Field] | null | undefined;
} & {
  readonly retry?: RetryPolicyInput | null | undefined;
  /** One of `CANCELLATION_POLICIES`; what a binding could not map arrives as it is and is refused here. */
  readonly cancellationPolicy?: string | null | undefined;
};

export const MAX_PRIORITY = 100;
/** A paragraph for people, not a place for data. */
export const MAX_DESCRIPTION_BYTES = 4_096;

const DESCRIPTION_RULE: TextRule = {
  maxBytes: MAX_DESCRIPTION_BYTES,
  empty: 'allowed',
  spaces: 'anywhere',
  controls: 'allowed',
};

/** Checks and fills in. Refusals are MALFORMED and name the field as the wire does: `start_by`, `retry.jitter`… */
export function resolvePolicy(input: TaskPolicyInput): Checked<TaskPolicy> {
  const priority = input.priority ?? 0;
  const description = input.description ?? null;
  const timeoutMs = input.timeoutMs ?? null;
  const startByMs = input.startByMs ?? null;
  const notBeforeAtMs = input.notBeforeAtMs ?? null;
  const attemptTimeoutMs = input.attemptTimeoutMs ?? null;
  const progressTimeoutMs = input.progressTimeoutMs ?? null;
  const retentionMs = input.retentionMs ?? null;
  const numberProblem =
    integerProblem('priority', priority, -MAX_PRIORITY, MAX_PRIORITY) ??
    unlessNull('timeout', timeoutMs, 1, MAX_DURATION_MS) ??
    unlessNull('start_by', startByMs, 1, MAX_DURATION_MS) ??
    unlessNull('not_before', notBeforeAtMs, 0, MAX_EPOCH_MS) ??
    unlessNull('attempt_timeout', attemptTimeoutMs, 1, MAX_DURATION_MS) ??
    unlessNull('progress_timeout', progressTimeoutMs, 1, MAX_DURATION_MS) ??
    unlessNull('retention', retentionMs, 0, MAX_DURATION_MS);
  if (numberProblem !== null) return numberProblem;
  const descriptionProblem = description === null ? null : textProblem(description, DESCRIPTION_RULE);
  if (descriptionProblem !== null) return malformed('description', descriptionProblem);
  const givenCancellation = input.cancellationPolicy ?? 'COOPERATIVE';
  const cancellationPolicy = CANCELLATION_POLICIES.find((known) => known === givenCancellation);
  if (cancellationPolicy === undefined) {
    return malformed('cancellation_policy', `must be one of ${CANCELLATION_POLICIES.join(', ')}`);
  }
  const labels = resolveLabels(input.labels ?? {});
  if (!labels.ok) return labels;
  const retry = resolveRetryPolicy(input.retry ?? {});
  if (!retry.ok) return retry;
  const concurrencyKey = input.concurrencyKey ?? null;
  const checkedKey = concurrencyKey === null ? null : checkConcurrencyKey(concurrencyKey);
  if (checkedKey !== null && !checkedKey.ok) return checkedKey;
  const family = resolveFamily(input);
  if (!family.ok) return family;
  return accepted({
    priority: priority === 0 ? 0 : priority,
    labels: labels.value,
    description,
    timeoutMs,
    startByMs,
    notBeforeAtMs,
    attemptTimeoutMs,
    progressTimeoutMs,
    retry: retry.value,
    cancellationPolicy,
    concurrencyKey,
    retentionMs,
    parent: family.value.parent,
    dependsOn: family.value.dependsOn,
    onUnsatisfied: family.value.onUnsatisfied,
  });
}

function unlessNull(
  field: string,
  value: number | null,
  least: number,
  most: number,
): ReturnType<typeof integerProblem> {
  return value === null ? null : integerProblem(field, value, least, most);
}

/** Per policy field, in the order of the wire: its name there, and whether two policies agree on it. */
const COMPARISONS: readonly (readonly [string, (left: TaskPolicy, right: TaskPolicy) => boolean])[] = [
  ['priority', (left, right) => left.priority === right.priority],
  ['labels', (left, right) => sameLabels(left.labels, right.labels)],
  ['description', (left, right) => left.description === right.description],
  ['timeout', (left, right) => left.timeoutMs === right.timeoutMs],
  ['start_by', (left, right) => left.startByMs === right.startByMs],
  ['not_before', (left, right) => left.notBeforeAtMs === right.notBeforeAtMs],
  ['attempt_timeout', (left, right) => left.attemptTimeoutMs === right.attemptTimeoutMs],
  ['progress_timeout', (left, right) => left.progressTimeoutMs === right.progressTimeoutMs],
  ['retry', (left, right) => sameRetryPolicy(left.retry, right.retry)],
  ['cancellation_policy', (left, right) => left.cancellationPolicy === right.cancellationPolicy],
  ['concurrency_key', (left, right) => left.concurrencyKey === right.concurrencyKey],
  ['retention', (left, right) => left.retentionMs === right.retentionMs],
  ['parent', (left, right) => sameParent(left.parent, right.parent)],
  ['depends_on', (left, right) => sameDependencies(left.dependsOn, right.dependsOn)],
  ['on_unsatisfied', (left, right) => left.onUnsatisfied === right.onUnsatisfied],
];

/** The policy fields that differ, by their wire names: `ignored_policy_fields` of a replayed Submit. */
export function policyDifferences(left: TaskPolicy, right: TaskPolicy): readonly string[] {
  return COMPARISONS.filter(([, same]) => !same(left, right)).map(([name]) => name);
}
