/**
 * A submission as users write it, and its request. What the contract requires and a server would refuse for every
 * caller is refused here only where sending it could not be answered: a key or namespace that is not well-formed text.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type RetryPolicySchema, type TaskPolicy, type TaskPolicySchema } from '../../gen/reeve/v1/task_pb.js';
import { type SubmitRequest, SubmitRequestSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { requireJsonText } from '../transport/json.js';
import { refusedLocally } from '../transport/reeve-error.js';
import { msToDuration, toTimestamp } from '../transport/time.js';
import {
  actorWords,
  attachmentWords,
  cancellationPolicyWords,
  conditionWords,
  type ExecutionTargetWord,
  targetWords,
  unsatisfiedWords,
} from './words.js';

export interface RetrySettings {
  /** Attempts in all. 1 … 1,000; default 3. */
  readonly maxAttempts?: number;
  /** Wait before the second attempt, ms. Default 1,000. */
  readonly initialMs?: number;
  /** 1 … 10; default 2. */
  readonly multiplier?: number;
  /** ms. Default 300,000. */
  readonly maximumMs?: number;
  /** 0 … 1; default 0.2. */
  readonly jitter?: number;
  /** Error codes that fail at once. At most 64. */
  readonly nonRetryableCodes?: readonly string[];
}

/** How a task is to be treated; not part of what its key names. Spans in ms, unset means the default. */
export interface PolicySettings {
  /** −100 … 100; default 0. */
  readonly priority?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly description?: string;
  /** From the beginning of a generation to its end. */
  readonly timeoutMs?: number;
  /** From the beginning of a generation to its first claim. */
  readonly startByMs?: number;
  readonly notBefore?: Date;
  readonly attemptTimeoutMs?: number;
  readonly progressTimeoutMs?: number;
  readonly retry?: RetrySettings;
  readonly cancellationPolicy?: 'cooperative' | 'fenced';
  readonly onUnsatisfied?: 'skip' | 'fail' | 'cancel';
  readonly concurrencyKey?: string;
  readonly retentionMs?: number;
  readonly parent?: {
    readonly taskId: string;
    readonly generationId?: string;
    readonly attachment: 'attached' | 'detached';
  };
  /** Ids, or ids with a condition; `succeeded` unless it says `terminal`. At most 100. */
  readonly dependsOn?: readonly (string | { readonly taskId: string; readonly condition: 'succeeded' | 'terminal' })[];
}

export interface Submission extends PolicySettings {
  /** A registered action kind, `agent`. */
  readonly kind: string;
  /** Names this application within its namespace, for ever. 1–255 bytes. The same key again is the same task. */
  readonly key: string;
  /** The arguments, a JSON object; `{}` unless given. At most 1 MiB as text. Read when submit is called. */
  readonly args?: object;
  /** The same as text, exact; not together with `args`. */
  readonly argsJson?: string;
  /** Default: the client's, else `default`. */
  readonly namespace?: string;
  /** Default: `default`. */
  readonly queue?: string;
  /** Default: a new UUIDv7, made by the server. */
  readonly taskId?: string;
  /** Default: the client's, else `host`. */
  readonly target?: ExecutionTargetWord;
  /** What a worker must have. */
  readonly capabilities?: readonly string[];
  readonly libraryRef?: string;
  readonly libraryContentHash?: string;
  readonly actor?: CallerActor;
  readonly causationId?: string;
  /** `traceparent`, `tracestate`. */
  readonly traceContext?: Readonly<Record<string, string>>;
}

export interface CallerActor {
  readonly type: 'producer' | 'operator' | 'webhook';
  readonly id: string;
}

export interface SubmissionDefaults {
  readonly namespace?: string | undefined;
  readonly target?: ExecutionTargetWord | undefined;
  readonly actor?: CallerActor | undefined;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Throws ReeveError MALFORMED for what cannot be sent. */
export function toSubmitRequest(submission: Submission, defaults: SubmissionDefaults): SubmitRequest {
  const { key, actor = defaults.actor } = submission;
  const namespace = submission.namespace ?? defaults.namespace ?? '';
  // UTF-8 would replace them, and the verdict, matched by key, would never be recognised.
  if (LONE_SURROGATE.test(key)) throw refusedLocally('idempotency_key', 'the key is not well-formed text');
  if (LONE_SURROGATE.test(namespace)) throw refusedLocally('namespace', 'the namespace is not well-formed text');
  const policy = toPolicy(submission);
  return create(SubmitRequestSchema, {
    idempotencyKey: key,
    actionKind: submission.kind,
    argsForm: { case: 'argsJson', value: argsText(submission) },
    executionTarget: targetWords.value(submission.target ?? defaults.target ?? 'host'),
    queue: submission.queue ?? '',
    namespace,
    taskId: submission.taskId ?? '',
    requiredCapabilities: [...(submission.capabilities ?? [])],
    ...(submission.libraryRef !== undefined && { libraryRef: submission.libraryRef }),
    ...(submission.libraryContentHash !== undefined && { libraryContentHash: submission.libraryContentHash }),
    ...(policy !== undefined && { policy }),
    ...(actor !== undefined && { actor: { type: actorWords.value(actor.type), id: actor.id } }),
    causationId: submission.causationId ?? '',
    traceContext: { ...submission.traceContext },
  });
}

function argsText({ args, argsJson }: Submission): string {
  if (argsJson !== undefined && args !== undefined) throw refusedLocally('args', 'give args or argsJson, not both');
  return argsJson ?? (args === undefined ? '{}' : requireJsonText(args, 'args'));
}

type PolicyInit = Exclude<MessageInitShape<typeof TaskPolicySchema>, TaskPolicy>;

export function toPolicy(settings: PolicySettings): PolicyInit | undefined {
  const policy: PolicyInit = {};
  const { retry, parent, dependsOn } = settings;
  if (settings.priority !== undefined) policy.priority = settings.priority;
  if (settings.labels !== undefined) policy.labels = { ...settings.labels };
  if (settings.description !== undefined) policy.description = settings.description;
  if (settings.timeoutMs !== undefined) policy.timeout = msToDuration(settings.timeoutMs, 'timeoutMs');
  if (settings.startByMs !== undefined) policy.startBy = msToDuration(settings.startByMs, 'startByMs');
  if (settings.notBefore !== undefined) policy.notBefore = toTimestamp(settings.notBefore);
  if (settings.attemptTimeoutMs !== undefined)
    policy.attemptTimeout = msToDuration(settings.attemptTimeoutMs, 'attemptTimeoutMs');
  if (settings.progressTimeoutMs !== undefined)
    policy.progressTimeout = msToDuration(settings.progressTimeoutMs, 'progressTimeoutMs');
  if (retry !== undefined) policy.retry = toRetryPolicy(retry);
  if (settings.cancellationPolicy !== undefined) {
    policy.cancellationPolicy = cancellationPolicyWords.value(settings.cancellationPolicy);
  }
  if (settings.onUnsatisfied !== undefined) policy.onUnsatisfied = unsatisfiedWords.value(settings.onUnsatisfied);
  if (settings.concurrencyKey !== undefined) policy.concurrencyKey = settings.concurrencyKey;
  if (settings.retentionMs !== undefined) policy.retention = msToDuration(settings.retentionMs, 'retentionMs');
  if (parent !== undefined) {
    const { taskId, generationId = '', attachment } = parent;
    policy.parent = { taskId, generationId, attachment: attachmentWords.value(attachment) };
  }
  if (dependsOn !== undefined) {
    policy.dependsOn = dependsOn.map((dependency) =>
      typeof dependency === 'string'
        ? { taskId: dependency }
        : { taskId: dependency.taskId, condition: conditionWords.value(dependency.condition) },
    );
  }
  // Most submissions have none, and an empty message is not free.
  for (const _ in policy) return policy;
  return undefined;
}

function toRetryPolicy(retry: RetrySettings): MessageInitShape<typeof RetryPolicySchema> {
  return {
    ...(retry.maxAttempts !== undefined && { maxAttempts: retry.maxAttempts }),
    ...(retry.initialMs !== undefined && { initial: msToDuration(retry.initialMs, 'retry.initialMs') }),
    ...(retry.multiplier !== undefined && { multiplier: retry.multiplier }),
    ...(retry.maximumMs !== undefined && { maximum: msToDuration(retry.maximumMs, 'retry.maximumMs') }),
    ...(retry.jitter !== undefined && { jitter: retry.jitter }),
    nonRetryableCodes: [...(retry.nonRetryableCodes ?? [])],
  };
}
