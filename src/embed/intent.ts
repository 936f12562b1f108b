/**
 * The intents that an embedding program may send, as it writes them and as they are judged. They go the way of those of
 * the wire: what is stated is kept apart from what the authority adds, because only the former is hashed under a key.
 * Throws RefusalError for what is not well-formed.
 */
import { checkOperationKey, checkTaskId } from '../kernel/admission/identifiers.js';
import { resolvePolicy } from '../kernel/admission/policy.js';
import type { Actor } from '../kernel/cause.js';
import { CHANGEABLE_POLICY_FIELDS, type PolicyField } from '../kernel/policy-update.js';
import { type TaskStatus, TASK_STATUSES } from '../kernel/status.js';
import { MAX_RESUME_INPUT_BYTES } from '../wire/frame-limits.js';
import { checked, malformedField } from '../wire/refusal-error.js';
import { type StatedCause, readCausation, readReason, statedActor } from '../wire/stated-cause.js';
import type { IntentCommand, StatedIntent } from '../wire/transition-codec.js';
import { jsonText } from './json.js';
import { retryAfterOf, spanMs } from './saying.js';
import {
  type CompletionInput,
  type ExecutionDetail,
  type FailureInput,
  type TimeoutInput,
  completionOf,
  endingOf,
  failureOf,
  timeoutOf,
} from './settlement.js';
import { type CallerActor, type PolicySettings, policyOf } from './submission.js';

/** One typed intent. Which statuses allow it stands in docs/reference/edges.md. */
export type Intent =
  /** By the lease holder (with `lease`), or an operator's hold. */
  | { readonly type: 'suspend' }
  /** Suspended: the same generation. Terminal: a new one, under an id that was never used for this task. */
  | { readonly type: 'resume'; readonly newGenerationId?: string; readonly input?: unknown }
  | { readonly type: 'request_cancellation'; readonly graceMs?: number }
  | ({ readonly type: 'settle_cancellation' } & ExecutionDetail)
  | ({ readonly type: 'settle_completion' } & CompletionInput & CompletionProof)
  | ({ readonly type: 'settle_failure' } & FailureInput)
  | ({ readonly type: 'settle_timeout' } & TimeoutInput)
  /** A reason is required with it. */
  | { readonly type: 'skip' }
  /** The fields that are set change; spans, priority, labels, retry, description. */
  | { readonly type: 'update_policy'; readonly policy: PolicySettings };

/** Where the policy is FENCED a completion after a cancel request needs proof that it happened strictly before it. */
export interface CompletionProof {
  /** A committed event of this generation. */
  readonly authoritativeEventId?: string;
  /** Epoch ms: the program's own word, which is trusted with it. Not in the future. */
  readonly authoritativeAtMs?: number;
}

export interface ReasonInput {
  /** A code that callers may state (docs/reference/reasons.md), or `app.<word>.<word>`. */
  readonly code: string;
  /** At most 1 KiB; longer text is cut. Default: that of the code. */
  readonly summary?: string;
  readonly evidenceRefs?: readonly string[];
}

/** Proof of a lease, from its Claim. */
export interface LeaseInput {
  readonly generationId: string;
  readonly epoch: number;
  readonly token: string;
}

export interface CauseOptions {
  /** 1–255 bytes. The same key with the same content is answered as the first time; without one it is judged anew. */
  readonly key?: string;
  /** Default: that of the authority. */
  readonly actor?: CallerActor;
  readonly reason?: ReasonInput;
  /** The event or operation that led to it. */
  readonly causation?: string;
}

/** A guard that does not hold is no error: nothing is applied, and the answer names it. */
export interface GuardOptions {
  readonly fromStatus?: TaskStatus;
  readonly expectedRevision?: number;
  readonly lease?: LeaseInput;
}

export interface TransitionOptions extends CauseOptions, GuardOptions {
  /** Another generation than the current one → STALE_GENERATION. */
  readonly generationId?: string;
}

export function commandOf(
  taskId: string,
  intent: StatedIntent,
  options: TransitionOptions,
  defaultActor: Actor | null,
  proof: CompletionProof = {},
): IntentCommand {
  const { key, generationId, fromStatus, expectedRevision, lease } = options;
  if (fromStatus !== undefined && !TASK_STATUSES.includes(fromStatus))
    throw malformedField('fromStatus', 'is no status');
  return {
    taskId: checked(checkTaskId(taskId)),
    key: key === undefined ? null : checked(checkOperationKey(key, 'key')),
    intent,
    guards: {
      generationId: generationId ?? null,
      fromStatus: fromStatus ?? null,
      expectedRevision: expectedRevision ?? null,
      epoch: lease?.epoch ?? null,
    },
    lease: lease ?? null,
    cause: causeOf(options, defaultActor, proof),
  };
}

function causeOf(
  { actor, reason, causation = '', lease }: TransitionOptions,
  defaultActor: Actor | null,
  proof: CompletionProof,
): StatedCause {
  const { authoritativeEventId = null, authoritativeAtMs } = proof;
  if (authoritativeAtMs !== undefined && !Number.isSafeInteger(authoritativeAtMs)) {
    throw malformedField('authoritativeAtMs', 'must be whole epoch ms');
  }
  return {
    // The holder of a lease speaks as the worker that has it.
    actor: actor === undefined ? (lease === undefined ? defaultActor : null) : actorOf(actor),
    source: null,
    reason: readReason(
      'reason',
      reason && { code: reason.code, summary: reason.summary ?? '', evidenceRefs: reason.evidenceRefs ?? [] },
    ),
    causation: readCausation('causation', causation),
    authoritativeEventId,
    ...(authoritativeAtMs === undefined ? {} : { authoritativeAt: authoritativeAtMs }),
  };
}

/** Who speaks as a parent forges a propagation: that is judged where families are, and refused as PARENT_CONSTRAINT. */
function actorOf(actor: Actor): Actor {
  return actor.type === 'parent' ? actor : statedActor('actor', actor);
}

export function statedIntent(intent: Intent): StatedIntent {
  switch (intent.type) {
    case 'suspend':
    case 'skip':
      return { kind: intent.type };
    case 'resume': {
      const { newGenerationId, input } = intent;
      return {
        kind: 'resume',
        newGenerationId: newGenerationId === undefined ? null : generationIdOf(newGenerationId),
        inputJson: jsonText('input', input, MAX_RESUME_INPUT_BYTES),
      };
    }
    case 'request_cancellation':
      return {
        kind: 'request_cancellation',
        graceMs: intent.graceMs === undefined ? null : spanMs('graceMs', intent.graceMs),
      };
    case 'settle_cancellation':
      return settle('cancelled', { resultJson: null, ending: endingOf(intent) });
    case 'settle_completion':
      return settle('completed', completionOf(intent));
    case 'settle_failure':
      return {
        ...settle('failed', { resultJson: null, ending: failureOf(intent) }),
        retryAfterMs: retryAfterOf(intent),
      };
    case 'settle_timeout':
      return settle('timed_out', { resultJson: null, ending: timeoutOf(intent) });
    case 'update_policy':
      return policyUpdate(intent.policy);
    default:
      throw malformedField('intent.type', 'is no intent');
  }
}

type Settle = Extract<StatedIntent, { readonly kind: 'settle' }>;

function settle(outcome: Settle['outcome'], ending: Pick<Settle, 'resultJson' | 'ending'>): Settle {
  return { kind: 'settle', outcome, ...ending, retryAfterMs: null };
}

function policyUpdate(settings: PolicySettings): StatedIntent {
  const input = policyOf(settings);
  const names = Object.keys(CHANGEABLE_POLICY_FIELDS) as PolicyField[];
  const fields = names.filter((name) => input[CHANGEABLE_POLICY_FIELDS[name]] !== undefined);
  if (input.cancellationPolicy !== undefined) throw malformedField('policy.cancellation_policy', 'cannot be changed');
  if (fields.length === 0) throw malformedField('policy', 'names nothing to change');
  return { kind: 'update_policy', fields, values: checked(resolvePolicy(input), 'policy.') };
}

function generationIdOf(id: string): string {
  if (checkTaskId(id).ok) return id;
  throw malformedField('newGenerationId', 'must be 1 to 128 characters of A–Z a–z 0–9 . _ : -');
}
