/**
 * Submissions of an embedding program, through the same admission as those of every other door (lifecycle.md section 5):
 * the same limits, the same canonical form, the same hash. Throws RefusalError.
 */
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { refusalOfAdmission } from '../kernel/admission/admission-refusal.js';
import type { ArgsInput, ExecutionTarget } from '../kernel/admission/application.js';
import {
  DEPENDENCY_CONDITIONS,
  type Dependency,
  ON_UNSATISFIED,
  type OnUnsatisfied,
  type ParentLink,
} from '../kernel/admission/family-policy.js';
import type { CancellationPolicy, TaskPolicyInput } from '../kernel/admission/policy.js';
import type { RetryPolicyInput } from '../kernel/admission/retry-policy.js';
import { type Submission as Admitted, admit } from '../kernel/admission/submission.js';
import type { Actor } from '../kernel/cause.js';
import { RefusalError, malformedField } from '../wire/refusal-error.js';
import { MAX_ACTOR_ID_BYTES, readCausation } from '../wire/stated-cause.js';
import { boundedText } from '../wire/bounded-text.js';

/** How a task is to be treated; no part of what its key names. Unset means the default; spans are ms, at most 10 years. */
export interface PolicySettings {
  /** −100 … 100; default 0. One step outweighs one minute of waiting. */
  readonly priority?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly description?: string;
  /** From the beginning of a generation to its end. Default: that of its kind. */
  readonly timeoutMs?: number;
  /** From the beginning of a generation to its first claim. */
  readonly startByMs?: number;
  /** Epoch ms before which it is not claimable. */
  readonly notBeforeAtMs?: number;
  readonly attemptTimeoutMs?: number;
  /** Longest silence of a running attempt. */
  readonly progressTimeoutMs?: number;
  readonly retry?: RetryPolicyInput;
  /** How long it is kept once it has ended. Default: as the authority was opened with. */
  readonly retentionMs?: number;
  /** Default: COOPERATIVE. */
  readonly cancellationPolicy?: CancellationPolicy;
}

export interface Submission extends PolicySettings {
  /** A registered action kind, `agent`. */
  readonly kind: string;
  /** Names this application within its namespace, for ever: 1–255 bytes. The same key again is the same task. */
  readonly key: string;
  /** The arguments, a JSON object; `{}` unless given. At most 1 MiB as text. */
  readonly args?: object;
  /** The same as text, exact; not together with `args`. */
  readonly argsJson?: string;
  /** Default: `default`. */
  readonly namespace?: string;
  /** Default: `default`. */
  readonly queue?: string;
  /** 1–128 of `A–Z a–z 0–9 . _ : -`. Default: a new UUIDv7. */
  readonly taskId?: string;
  /** Default: `host`. */
  readonly target?: ExecutionTarget;
  readonly capabilities?: readonly string[];
  readonly libraryRef?: string;
  readonly libraryContentHash?: string;
  readonly parent?: ParentLink;
  /** Ids, or ids with a condition; `succeeded` unless it says `terminal`. At most 100. */
  readonly dependsOn?: readonly (string | Dependency)[];
  readonly onUnsatisfied?: OnUnsatisfied;
  /** Tasks of a namespace that name the same key take turns: one runs at a time unless the authority was opened with more. */
  readonly concurrencyKey?: string;
  /** Default: that of the authority. */
  readonly actor?: CallerActor;
  readonly causation?: string;
  /** `traceparent`, `tracestate`. */
  readonly traceContext?: Readonly<Record<string, string>>;
}

export interface CallerActor {
  readonly type: 'producer' | 'operator' | 'webhook';
  /** At most 255 bytes. */
  readonly id: string;
}

export interface SubmissionOrigin {
  readonly actor: Actor;
  readonly principal: string;
}

export function admitted(submission: Submission, origin: SubmissionOrigin, kinds: ActionKindRegistry): Admitted {
  const { actor = origin.actor } = submission;
  const outcome = admit(
    {
      namespace: submission.namespace ?? '',
      queue: submission.queue ?? '',
      idempotencyKey: submission.key,
      taskId: submission.taskId ?? null,
      application: {
        actionKind: submission.kind,
        args: argsOf(submission),
        executionTarget: submission.target ?? 'host',
        requiredCapabilities: submission.capabilities ?? [],
        libraryRef: submission.libraryRef ?? null,
        libraryContentHash: submission.libraryContentHash ?? null,
      },
      policy: { ...policyOf(submission), ...familyOf(submission), concurrencyKey: submission.concurrencyKey },
      source: 'embedded',
      scheduleId: null,
      actor: { type: actor.type, id: boundedText('actor.id', actor.id, MAX_ACTOR_ID_BYTES) },
      principal: origin.principal,
      causation: readCausation('causation', submission.causation ?? ''),
      traceContext: submission.traceContext ?? {},
    },
    kinds,
  );
  if (outcome.ok) return outcome.value;
  throw new RefusalError(refusalOfAdmission(outcome.refusal));
}

function argsOf({ args, argsJson }: Submission): ArgsInput {
  if (argsJson === undefined) return { form: 'value', value: args ?? {} };
  if (args !== undefined) throw malformedField('args', 'give args or argsJson, not both');
  return { form: 'text', text: argsJson };
}

export function policyOf(settings: PolicySettings): TaskPolicyInput {
  return {
    priority: settings.priority,
    labels: settings.labels,
    description: settings.description,
    timeoutMs: settings.timeoutMs,
    startByMs: settings.startByMs,
    notBeforeAtMs: settings.notBeforeAtMs,
    attemptTimeoutMs: settings.attemptTimeoutMs,
    progressTimeoutMs: settings.progressTimeoutMs,
    retry: settings.retry,
    retentionMs: settings.retentionMs,
    cancellationPolicy: settings.cancellationPolicy,
  };
}

/** Words are checked: a program without types may say anything, and what is stored must be readable. */
function familyOf({ parent, dependsOn, onUnsatisfied }: Submission): TaskPolicyInput {
  if (parent !== undefined && typeof parent.attached !== 'boolean') {
    throw malformedField('parent.attached', 'must be true or false');
  }
  if (onUnsatisfied !== undefined && !ON_UNSATISFIED.includes(onUnsatisfied)) {
    throw malformedField('on_unsatisfied', `must be one of ${ON_UNSATISFIED.join(', ')}`);
  }
  return {
    parent: parent && { taskId: parent.taskId, generationId: parent.generationId, attached: parent.attached },
    dependsOn: dependsOn?.map(dependencyOf),
    onUnsatisfied,
  };
}

function dependencyOf(given: string | Dependency, index: number): Dependency {
  if (typeof given === 'string') return { taskId: given, condition: 'succeeded' };
  const { taskId, condition } = given;
  if (DEPENDENCY_CONDITIONS.includes(condition)) return { taskId, condition };
  throw malformedField(`depends_on[${index}].condition`, `must be one of ${DEPENDENCY_CONDITIONS.join(', ')}`);
}
