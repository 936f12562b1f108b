/**
 * Changing the policy of a live generation (task_service.proto, UpdatePolicy): which fields can change, and what the
 * change means for a delayed start. Timers and the place in the queue are computed from the record's policy, so they
 * follow by themselves. Bounds are admission's: values arrive here resolved.
 */
import type { TaskPolicy } from './admission/policy.js';
import type { Draft } from './draft.js';
import type { UpdatePolicyIntent } from './intent.js';
import { APPLIED, type Verdict } from './verdict.js';

/** The fields that can change, by their names on the wire. What decides about other tasks too cannot. */
export const CHANGEABLE_POLICY_FIELDS = {
  priority: 'priority',
  labels: 'labels',
  description: 'description',
  timeout: 'timeoutMs',
  start_by: 'startByMs',
  not_before: 'notBeforeAtMs',
  attempt_timeout: 'attemptTimeoutMs',
  progress_timeout: 'progressTimeoutMs',
  retry: 'retry',
  retention: 'retentionMs',
} as const satisfies Readonly<Record<string, keyof TaskPolicy>>;

export type PolicyField = keyof typeof CHANGEABLE_POLICY_FIELDS;

/** The generation is current and live. A fact also when the values are those it had: somebody decided on them. */
export function judgePolicyUpdate(draft: Draft, intent: UpdatePolicyIntent): Verdict {
  const { record, now } = draft;
  const { fields, cause } = intent;
  const policy = policyWith(record.policy, intent.values, fields);
  const { notBeforeAtMs } = policy;
  const delayed = notBeforeAtMs !== null && notBeforeAtMs > now;
  // While it runs, a new start time is that of the next claim.
  const notBeforeAt = !fields.includes('not_before') ? record.notBeforeAt : delayed ? notBeforeAtMs : null;
  draft.append({ type: 'reeve.task.policy_updated', data: { fields, policy, notBeforeAt } }, { cause });
  return APPLIED;
}

function policyWith(current: TaskPolicy, values: TaskPolicy, fields: readonly PolicyField[]): TaskPolicy {
  let policy = current;
  for (const field of fields) {
    const key = CHANGEABLE_POLICY_FIELDS[field];
    policy = { ...policy, [key]: values[key] };
  }
  return policy;
}
