/**
 * Admission as one pure step: whatever the binding, its input becomes a `Submission` or a refusal here
 * (lifecycle.md section 5). It never reads a record; whether the key is taken is the store's knowledge.
 */
import { type Actor, type Source, mayClaimActor } from '../cause.js';
import { type Refusal, actionKindUnregistered } from '../refusal.js';
import { type AdmissionRefusal, type Checked, accepted, malformed, refusalOfAdmission } from './admission-refusal.js';
import { type ActionKind, type ActionKindRegistry } from './action-kinds.js';
import { type Application, type ApplicationInput, normaliseApplication } from './application.js';
import { namesItself } from './family-policy.js';
import {
  type AdmissionSource,
  checkIdempotencyKey,
  checkTaskId,
  resolveNamespace,
  resolveQueue,
} from './identifiers.js';
import { type TaskPolicy, type TaskPolicyInput, resolvePolicy } from './policy.js';

export interface SubmissionInput {
  /** "" means the default namespace. */
  readonly namespace: string;
  /** "" means the default queue. */
  readonly queue: string;
  readonly idempotencyKey: string;
  /** Null or "": the authority makes one (UUIDv7). */
  readonly taskId: string | null;
  readonly application: ApplicationInput;
  readonly policy: TaskPolicyInput;
  readonly source: AdmissionSource;
  readonly scheduleId: string | null;
  readonly actor: Actor;
  readonly principal: string;
  readonly causation: string | null;
  /** W3C trace context; at most 8 entries of 512 bytes. */
  readonly traceContext: Readonly<Record<string, string>>;
}

export interface Submission {
  readonly namespace: string;
  readonly queue: string;
  readonly idempotencyKey: string;
  readonly taskId: string | null;
  readonly application: Application;
  readonly applicationHash: string;
  /**
   * What it is answered unless its key is known: the deployment does not admit such work now. Judged after the key
   * (lifecycle.md section 4, step 2), because a caller who lost its answer needs the result, whatever is configured since.
   */
  readonly refusalIfNew: Refusal | null;
  readonly policy: TaskPolicy;
  readonly source: Source;
  readonly scheduleId: string | null;
  readonly actor: Actor;
  readonly principal: string;
  readonly causation: string | null;
  /** W3C trace context; at most 8 entries of 512 bytes. */
  readonly traceContext: Readonly<Record<string, string>>;
}

export type AdmittedSubmission =
  { readonly ok: true; readonly value: Submission } | { readonly ok: false; readonly refusal: AdmissionRefusal };

export function admit(input: SubmissionInput, kinds: ActionKindRegistry): AdmittedSubmission {
  const namespace = resolveNamespace(input.namespace);
  if (!namespace.ok) return namespace;
  const queue = resolveQueue(input.queue);
  if (!queue.ok) return queue;
  const key = checkIdempotencyKey(input.idempotencyKey, input.source);
  if (!key.ok) return key;
  const taskId = optionalTaskId(input.taskId);
  if (!taskId.ok) return taskId;
  if (input.source !== 'schedule' && !mayClaimActor(input.actor.type)) {
    return malformed('actor.type', 'a caller may be a producer, an operator or a webhook');
  }
  const traceContext = checkTraceContext(input.traceContext);
  if (!traceContext.ok) return traceContext;
  const application = normaliseApplication(input.application, kinds);
  if (!application.ok) return application;
  const policy = resolvePolicy(withKindDefaults(input.policy, kinds.get(application.application.actionKind)));
  if (!policy.ok) return policy;
  const itself = taskId.value === null ? null : namesItself(taskId.value, policy.value);
  if (itself !== null) return itself;
  return accepted({
    namespace: namespace.value,
    queue: queue.value,
    idempotencyKey: key.value,
    taskId: taskId.value,
    application: application.application,
    applicationHash: application.hash,
    refusalIfNew: application.unfit === null ? null : refusalOfUnfit(application.unfit, input.application.actionKind),
    policy: policy.value,
    source: input.source,
    scheduleId: input.scheduleId,
    actor: input.actor,
    principal: input.principal,
    causation: input.causation,
    traceContext: input.traceContext,
  });
}

function withKindDefaults(policy: TaskPolicyInput, kind: ActionKind | undefined): TaskPolicyInput {
  const timeoutMs = kind?.timeoutMs ?? null;
  if (timeoutMs === null || (policy.timeoutMs ?? null) !== null) return policy;
  return { ...policy, timeoutMs };
}

function refusalOfUnfit(unfit: AdmissionRefusal, actionKind: string): Refusal {
  return unfit.reason === 'ACTION_KIND_UNREGISTERED' ? actionKindUnregistered(actionKind) : refusalOfAdmission(unfit);
}

/** What W3C trace context needs (traceparent, tracestate, baggage), with room to spare. */
const MAX_TRACE_ENTRIES = 8;
const MAX_TRACE_ENTRY_LENGTH = 512;

function checkTraceContext(context: Readonly<Record<string, string>>): Checked<null> {
  const entries = Object.entries(context);
  if (entries.length > MAX_TRACE_ENTRIES) return malformed('trace_context', `more than ${MAX_TRACE_ENTRIES} entries`);
  for (const [key, value] of entries) {
    if (key.length + value.length > MAX_TRACE_ENTRY_LENGTH) {
      return malformed('trace_context', `an entry is longer than ${MAX_TRACE_ENTRY_LENGTH} characters`);
    }
  }
  return accepted(null);
}

function optionalTaskId(taskId: string | null): Checked<string | null> {
  return taskId === null || taskId === '' ? accepted(null) : checkTaskId(taskId);
}
