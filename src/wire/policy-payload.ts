/**
 * The content of a change of policy in an event's payload: the fields that changed, with what holds from there on, in
 * the names of the other payloads (spans as `_ms`, moments as text). Null: nothing is set.
 */
import type { TaskPolicy } from '../kernel/admission/policy.js';
import type { PolicyField } from '../kernel/policy-update.js';

type Named = readonly [name: string, value: unknown];

const NAMED: Readonly<Record<PolicyField, (policy: TaskPolicy) => Named>> = {
  priority: ({ priority }) => ['priority', priority],
  labels: ({ labels }) => ['labels', labels],
  description: ({ description }) => ['description', description],
  timeout: ({ timeoutMs }) => ['timeout_ms', timeoutMs],
  start_by: ({ startByMs }) => ['start_by_ms', startByMs],
  not_before: ({ notBeforeAtMs: at }) => ['not_before', at === null ? null : new Date(at).toISOString()],
  attempt_timeout: ({ attemptTimeoutMs }) => ['attempt_timeout_ms', attemptTimeoutMs],
  progress_timeout: ({ progressTimeoutMs }) => ['progress_timeout_ms', progressTimeoutMs],
  retry: ({ retry }) => [
    'retry',
    {
      max_attempts: retry.maxAttempts,
      initial_ms: retry.initialMs,
      multiplier: retry.multiplier,
      maximum_ms: retry.maximumMs,
      jitter: retry.jitter,
      non_retryable_codes: retry.nonRetryableCodes,
    },
  ],
  retention: ({ retentionMs }) => ['retention_ms', retentionMs],
};

export function policyChangeJson(fields: readonly PolicyField[], policy: TaskPolicy): string {
  return JSON.stringify(Object.fromEntries(fields.map((field) => NAMED[field](policy))));
}
