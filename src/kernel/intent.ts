/**
 * Intents: every way in which anything may ask for a change of a task (lifecycle.md section 3).
 * Values only, already well-formed: the edge of the service refuses what is malformed before it gets here.
 */
import type { TaskPolicy } from './admission/policy.js';
import type { Cause } from './cause.js';
import type { OutputData } from './event.js';
import type { PlacementRules } from './placement.js';
import type { PolicyField } from './policy-update.js';
import type { Ending, TaskError } from './record.js';
import type { Refusal } from './refusal.js';
import type { SettledStatus, TaskStatus } from './status.js';

/** What the caller of a Transition pins; an unset guard guards nothing. A wrong guard is a conflict, not an error. */
export interface Guards {
  readonly generationId: string | null;
  readonly fromStatus: TaskStatus | null;
  readonly expectedRevision: number | null;
  /** The lease it must be held under; a settlement and a suspension state theirs in the intent. */
  readonly lease?: LeaseProof | null;
}

export const NO_GUARDS: Guards = { generationId: null, fromStatus: null, expectedRevision: null };

/** The proof that a caller holds the lease; its token or stream was verified before. */
export interface LeaseProof {
  readonly epoch: number;
  readonly sessionId: string | null;
}

export interface ClaimIntent {
  readonly kind: 'claim';
  readonly sessionId: string;
  readonly worker: string;
  readonly sessionTtlMs: number;
  readonly acceptTimeoutMs: number;
  /** What the deployment hands out, for a caller that names its task; a pairing of the dispatcher went by them already. */
  readonly rules?: PlacementRules;
  readonly cause: Cause;
}

export interface SettleIntent {
  readonly kind: 'settle';
  readonly outcome: SettledStatus;
  readonly resultJson: string | null;
  readonly ending: Ending | null;
  /** Null: a caller that names no lease. */
  readonly lease: LeaseProof | null;
  /** A committed event that proves when completion truly happened (FENCED policy). */
  readonly authoritativeEvent: AuthoritativeEvent | null;
  /** Epoch ms at which completion truly happened, by the word of an embedding program, which is trusted with it. */
  readonly authoritativeAt?: number | null;
  /** Of a failure: the wait before the next attempt, in ms, instead of the policy's. */
  readonly retryAfterMs?: number | null;
  readonly chance: number;
  readonly cause: Cause;
}

/** A committed event of the task, looked up by the authority. */
export interface AuthoritativeEvent {
  readonly number: number;
  readonly generation: number;
  readonly at: number;
}

export interface SuspendIntent {
  readonly kind: 'suspend';
  readonly lease: LeaseProof | null;
  readonly cause: Cause;
}

export interface ResumeIntent {
  readonly kind: 'resume';
  /** Null: the same generation, or, when it is terminal, a new one under `spareGenerationId`. */
  readonly newGenerationId: string | null;
  /** A fresh UUIDv7. */
  readonly spareGenerationId: string;
  /** The ids of the generations before the current one; needed only where a new id is named. */
  readonly formerGenerationIds?: ReadonlySet<string>;
  readonly inputJson: string | null;
  readonly cause: Cause;
}

export interface RequestCancellationIntent {
  readonly kind: 'request_cancellation';
  readonly graceMs: number | null;
  readonly cause: Cause;
}

export interface SkipIntent {
  readonly kind: 'skip';
  /** `cause.reason` is required. */
  readonly cause: Cause;
}

export interface UpdatePolicyIntent {
  readonly kind: 'update_policy';
  /** What changes; of `values` the other fields mean nothing. */
  readonly fields: readonly PolicyField[];
  readonly values: TaskPolicy;
  readonly cause: Cause;
}

export interface ReceiptIntent {
  readonly kind: 'receipt';
  readonly lease: LeaseProof;
  readonly acknowledged: boolean;
  readonly cause: Cause;
}

/** A claim that never reached its worker, or that the worker no longer names. */
export interface HandBackIntent {
  readonly kind: 'hand_back';
  readonly lease: LeaseProof;
  readonly why: 'undelivered' | 'forgotten';
  readonly cause: Cause;
}

export interface ReleaseIntent {
  readonly kind: 'release';
  readonly lease: LeaseProof;
  readonly checkpointJson: string | null;
  readonly cause: Cause;
}

export interface SessionLostIntent {
  readonly kind: 'session_lost';
  readonly sessionId: string;
  readonly cause: Cause;
}

export interface TickIntent {
  readonly kind: 'tick';
  /** Epoch ms at which the service last came out of a pause; excusable timers wait one session TTL from there. */
  readonly quietSince: number;
  readonly chance: number;
}

export type Intent =
  | ClaimIntent
  | SettleIntent
  | SuspendIntent
  | ResumeIntent
  | RequestCancellationIntent
  | SkipIntent
  | UpdatePolicyIntent
  | ReceiptIntent
  | HandBackIntent
  | ReleaseIntent
  | SessionLostIntent
  | TickIntent;

export type IntentKind = Intent['kind'];

/** What a worker may say about its claim, numbered 1, 2, 3 … per (task, epoch). */
export type WorkerSaying =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'started' }
  | { readonly kind: 'progress'; readonly progress: number | null; readonly message: string | null }
  | { readonly kind: 'output'; readonly output: OutputData }
  | { readonly kind: 'blocked'; readonly reason: string }
  | { readonly kind: 'checkpoint'; readonly checkpointJson: string }
  | { readonly kind: 'completed'; readonly resultJson: string | null; readonly ending: Ending | null }
  | {
      readonly kind: 'failed';
      readonly ending: Ending & { readonly error: TaskError };
      readonly retryAfterMs: number | null;
    }
  | { readonly kind: 'cancelled'; readonly ending: Ending | null; readonly reason: string | null }
  | { readonly kind: 'timed_out'; readonly ending: Ending | null }
  | { readonly kind: 'suspended'; readonly reason: string | null }
  /** What could not be read: refused, and its number is used up. */
  | { readonly kind: 'malformed'; readonly refusal: Refusal };

export interface WorkerEvent {
  readonly seq: number;
  readonly saying: WorkerSaying;
}

export interface WorkerReport {
  readonly sessionId: string;
  readonly generation: number;
  readonly epoch: number;
  /** The highest number already answered for this epoch, refused ones included; 0 when unknown. */
  readonly answeredThrough: number;
  readonly events: readonly WorkerEvent[];
  readonly chance: number;
  readonly cause: Cause;
}
