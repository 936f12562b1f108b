/**
 * The policy of a task between the wire and the domain.
 * Owns presence (what is not set takes its default; 0 is 0) and the fields that this version does not serve, which
 * are refused by name and never dropped. Ranges are the kernel's.
 */
import type { Duration } from '@bufbuild/protobuf/wkt';
import type {
  Dependency as DependencyMessage,
  ParentLink as ParentLinkMessage,
  ParentLinkSchema,
  RetryPolicy,
  TaskPolicy,
  TaskPolicySchema,
} from '../gen/reeve/v1/task_pb.js';
import type { Dependency, ParentLink } from '../kernel/admission/family-policy.js';
import type { TaskPolicy as DomainPolicy, TaskPolicyInput } from '../kernel/admission/policy.js';
import type { RetryPolicyInput } from '../kernel/admission/retry-policy.js';
import { attachments, cancellationPolicies, conditions, unsatisfied } from './enum-tables.js';
import { durationMs, timestampMs, toDuration, toTimestamp } from './time-values.js';
import type { Fields } from './message-fields.js';

const NO_POLICY: TaskPolicyInput = {};

/** Throws MALFORMED for what is not well-formed. `field` leads to the policy. */
export function readPolicy(field: string, policy: TaskPolicy | undefined): TaskPolicyInput {
  if (policy === undefined) return NO_POLICY;
  const span = (name: string, duration: Duration | undefined): number | undefined =>
    duration === undefined ? undefined : durationMs(`${field}.${name}`, duration);
  const { notBefore, cancellationPolicy } = policy;
  return {
    priority: policy.priority,
    labels: policy.labels,
    description: policy.description,
    timeoutMs: span('timeout', policy.timeout),
    startByMs: span('start_by', policy.startBy),
    // A time before 1970 is a time in the past, and that is harmless.
    notBeforeAtMs: notBefore === undefined ? undefined : Math.max(0, timestampMs(`${field}.not_before`, notBefore)),
    attemptTimeoutMs: span('attempt_timeout', policy.attemptTimeout),
    progressTimeoutMs: span('progress_timeout', policy.progressTimeout),
    retentionMs: span('retention', policy.retention),
    parent: policy.parent === undefined ? undefined : readParent(`${field}.parent`, policy.parent),
    dependsOn: readDependencies(`${field}.depends_on`, policy.dependsOn),
    onUnsatisfied: unsatisfied.readOr(`${field}.on_unsatisfied`, policy.onUnsatisfied ?? 0, undefined),
    concurrencyKey: policy.concurrencyKey,
    retry: policy.retry === undefined ? undefined : readRetry(`${field}.retry`, policy.retry),
    cancellationPolicy:
      cancellationPolicy === undefined
        ? undefined
        : cancellationPolicies.readOr(`${field}.cancellation_policy`, cancellationPolicy, undefined),
  };
}

function readParent(field: string, parent: ParentLinkMessage): ParentLink {
  const { taskId, generationId } = parent;
  return { taskId, generationId, attached: attachments.read(`${field}.attachment`, parent.attachment) === 'attached' };
}

function readDependencies(field: string, dependsOn: readonly DependencyMessage[]): readonly Dependency[] | undefined {
  if (dependsOn.length === 0) return undefined;
  return dependsOn.map(({ taskId, condition }, index) => ({
    taskId,
    condition: conditions.readOr(`${field}[${String(index)}].condition`, condition, 'succeeded' as const),
  }));
}

function readRetry(field: string, retry: RetryPolicy): RetryPolicyInput {
  const { maxAttempts, initial, multiplier, maximum, jitter, nonRetryableCodes } = retry;
  return {
    maxAttempts,
    initialMs: initial === undefined ? undefined : durationMs(`${field}.initial`, initial),
    multiplier,
    maximumMs: maximum === undefined ? undefined : durationMs(`${field}.maximum`, maximum),
    jitter,
    nonRetryableCodes,
  };
}

/** The policy in force as Task.policy tells it: labels, parent and cancellation policy stand elsewhere in the task. */
export function policyMessage(policy: DomainPolicy): Fields<typeof TaskPolicySchema> {
  const { retry } = policy;
  return {
    priority: policy.priority,
    ...(policy.description === null ? {} : { description: policy.description }),
    ...(policy.timeoutMs === null ? {} : { timeout: toDuration(policy.timeoutMs) }),
    ...(policy.startByMs === null ? {} : { startBy: toDuration(policy.startByMs) }),
    ...(policy.notBeforeAtMs === null ? {} : { notBefore: toTimestamp(policy.notBeforeAtMs) }),
    ...(policy.attemptTimeoutMs === null ? {} : { attemptTimeout: toDuration(policy.attemptTimeoutMs) }),
    ...(policy.progressTimeoutMs === null ? {} : { progressTimeout: toDuration(policy.progressTimeoutMs) }),
    ...(policy.concurrencyKey === null ? {} : { concurrencyKey: policy.concurrencyKey }),
    ...(policy.retentionMs === null ? {} : { retention: toDuration(policy.retentionMs) }),
    ...(policy.dependsOn.length === 0 ? {} : dependenciesMessage(policy)),
    retry: {
      maxAttempts: retry.maxAttempts,
      initial: toDuration(retry.initialMs),
      multiplier: retry.multiplier,
      maximum: toDuration(retry.maximumMs),
      jitter: retry.jitter,
      nonRetryableCodes: [...retry.nonRetryableCodes],
    },
  };
}

function dependenciesMessage({ dependsOn, onUnsatisfied }: DomainPolicy): Fields<typeof TaskPolicySchema> {
  return {
    dependsOn: dependsOn.map(({ taskId, condition }) => ({ taskId, condition: conditions.value(condition) })),
    onUnsatisfied: unsatisfied.value(onUnsatisfied),
  };
}

/** Task.parent; nothing for a task without one. */
export function parentMessage({ taskId, generationId, attached }: ParentLink): Fields<typeof ParentLinkSchema> {
  return { taskId, generationId, attachment: attachments.value(attached ? 'attached' : 'detached') };
}
