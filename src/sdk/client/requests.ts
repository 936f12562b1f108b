/**
 * What operators and programs ask of a task besides submitting it: cancel, resume, and
 * Transition with its guards, between users' words and messages. Every request carries an idempotency key; one is made where the
 * caller has none, so that the SDK's own retries are safe.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { v7 as uuidv7 } from 'uuid';
import type { CauseSchema, ReasonSchema } from '../../gen/reeve/v1/task_pb.js';
import { RefusalSchema } from '../../gen/reeve/v1/error_reason_pb.js';
import {
  type CancelBatchRequest,
  CancelBatchRequestSchema,
  type CancelBatchResponse,
  type CancelRequest,
  CancelRequestSchema,
  type CancelResponse,
  type ResumeRequest,
  ResumeRequestSchema,
  type ResumeResponse,
  type TransitionRequest,
  TransitionRequestSchema,
  type TransitionResponse,
  type UpdatePolicyResponse,
} from '../../gen/reeve/v1/task_service_pb.js';
import { requireJsonText } from '../transport/json.js';
import { fromRefusal, type ReeveError } from '../transport/reeve-error.js';
import { msToDuration, toDate } from '../transport/time.js';
import { type Intent, TEXT_REASONS, toIntent } from './intent.js';
import { type TaskFilter, toTaskFilter } from './listing.js';
import type { CallerActor } from './submission.js';
import type { EventRef, Generation, Task } from './task.js';
import { readEventRef, readGeneration, readTask } from './task-codec.js';
import {
  actorWords,
  cancelWords,
  conflictWords,
  intentWords,
  receiptWords,
  statusWords,
  type TaskStatusWord,
  type TaskViewWord,
  viewWords,
} from './words.js';

/** Text for people, or the whole: a code of one's own reads `app.<word>.<word>`. */
export type ReasonInput =
  string | { readonly code: string; readonly summary?: string; readonly evidenceRefs?: readonly string[] };

export interface Caused {
  readonly reason?: ReasonInput;
  readonly actor?: CallerActor;
  /** The event or operation that led to this. */
  readonly causationId?: string;
}

export interface CancelOptions extends Omit<Caused, 'causationId'> {
  /** Names this request for this task. Default: a new UUIDv7. */
  readonly requestId?: string;
  /** Guard: a newer generation is never touched. */
  readonly generationId?: string;
  /** Enforce it after this, ms. Unset: never. */
  readonly graceMs?: number;
  /** Answer when this receipt is in. Unset: at once. */
  readonly waitFor?: 'delivered' | 'acknowledged' | 'settled';
  /** Answer without it after this, ms. 0 … 300,000; default 30,000. */
  readonly waitTimeoutMs?: number;
  readonly view?: TaskViewWord;
}

export interface Cancelled {
  readonly state: Exclude<ReturnType<typeof cancelWords.word>, undefined>;
  readonly generation: Generation;
  readonly replayed: boolean;
  readonly task: Task | undefined;
  readonly transitionId: string;
  readonly event: EventRef | undefined;
  readonly deliveredTime: Date | undefined;
  readonly acknowledgedTime: Date | undefined;
  readonly settledTime: Date | undefined;
}

export interface ResumeOptions extends Caused {
  /** Names this request for this task. Default: a new UUIDv7. */
  readonly requestId?: string;
  readonly generationId?: string;
  readonly expectedRevision?: number;
  /** Asks for a new generation of a suspended task too. */
  readonly newGenerationId?: string;
  /** Input for the next claim, any JSON value. At most 128 KiB as text. */
  readonly input?: unknown;
  readonly view?: TaskViewWord;
}

export interface Applied {
  /** Committed, now or (`replayed`) before. */
  readonly applied: boolean;
  /** The guard that did not hold; undefined for none. */
  readonly conflict: 'from_status' | 'revision' | 'lease' | 'unknown' | undefined;
  readonly replayed: boolean;
  readonly task: Task | undefined;
  readonly transitionId: string;
  readonly event: EventRef | undefined;
}

export interface TransitionOptions extends Caused {
  readonly requestId?: string;
  readonly generationId?: string;
  readonly fromStatus?: TaskStatusWord;
  readonly expectedRevision?: number;
  readonly lease?: { readonly generationId?: string; readonly epoch: number; readonly token: string };
  readonly authoritativeEventId?: string;
  /** Judge, but do not commit. */
  readonly validateOnly?: boolean;
  readonly view?: TaskViewWord;
}

export interface Transitioned extends Applied {
  readonly previousStatus: TaskStatusWord | 'unknown' | undefined;
  readonly currentStatus: TaskStatusWord | 'unknown' | undefined;
  /** After a claim. */
  readonly lease:
    | {
        readonly generation: Generation;
        readonly epoch: number;
        readonly token: string;
        readonly expireTime: Date | undefined;
      }
    | undefined;
  /** Each intent, and why not. */
  readonly allowed: readonly {
    readonly intent: Exclude<ReturnType<typeof intentWords.word>, undefined>;
    readonly allowed: boolean;
    readonly refusal: ReeveError | undefined;
  }[];
}

export function toCancelRequest(taskId: string, options: CancelOptions, actor: CallerActor | undefined): CancelRequest {
  const { requestId = uuidv7(), generationId, graceMs, waitFor, waitTimeoutMs, view } = options;
  const cause = toCause(options, TEXT_REASONS.request_cancellation, actor);
  return create(CancelRequestSchema, {
    taskId,
    requestId,
    ...(generationId !== undefined && { generationId }),
    ...(cause.reason !== undefined && { reason: cause.reason }),
    ...(cause.actor !== undefined && { actor: cause.actor }),
    ...(graceMs !== undefined && { grace: msToDuration(graceMs, 'graceMs') }),
    ...(waitFor !== undefined && { waitFor: receiptWords.value(waitFor) }),
    ...(waitTimeoutMs !== undefined && { waitTimeout: msToDuration(waitTimeoutMs, 'waitTimeoutMs') }),
    ...(view !== undefined && { view: viewWords.value(view) }),
  });
}

export function readCancelled(response: CancelResponse): Cancelled {
  const { receipts } = response;
  return {
    state: cancelWords.word(response.state) ?? 'unknown',
    generation: readGeneration(response.generation),
    replayed: response.replayed,
    task: response.task && readTask(response.task),
    transitionId: response.transitionId,
    event: readEventRef(response.event),
    deliveredTime: toDate(receipts?.deliveredTime),
    acknowledgedTime: toDate(receipts?.acknowledgedTime),
    settledTime: toDate(receipts?.settledTime),
  };
}

/** Many at once: by id, or by a description that leaves out those that are over. */
export type CancelScope = readonly string[] | TaskFilter;

export interface CancelBatchOptions extends Pick<CancelOptions, 'requestId' | 'reason' | 'actor' | 'graceMs' | 'view'> {
  /** With a description: how many at most in this call. 1 … 1,000; default 1,000. */
  readonly pageSize?: number;
  /** With a description: where the last call stopped. Needs the same `requestId`. */
  readonly pageToken?: string;
}

export type CancelVerdict = { readonly taskId: string } & (
  | { readonly accepted: Cancelled; readonly refused: undefined }
  | { readonly accepted: undefined; readonly refused: ReeveError }
);

export interface CancelledBatch {
  readonly verdicts: readonly CancelVerdict[];
  /** Names the request for the next page. */
  readonly requestId: string;
  /** Undefined: none left. */
  readonly nextPageToken: string | undefined;
}

export function toCancelBatchRequest(
  scope: CancelScope,
  options: CancelBatchOptions,
  actor: CallerActor | undefined,
): CancelBatchRequest {
  const { requestId = uuidv7(), graceMs, view, pageSize, pageToken = '' } = options;
  const cause = toCause(options, TEXT_REASONS.request_cancellation, actor);
  return create(CancelBatchRequestSchema, {
    requestId,
    ...(isIds(scope) ? { taskIds: [...scope] } : { filter: toTaskFilter(scope) }),
    ...(cause.reason !== undefined && { reason: cause.reason }),
    ...(cause.actor !== undefined && { actor: cause.actor }),
    ...(graceMs !== undefined && { grace: msToDuration(graceMs, 'graceMs') }),
    ...(pageSize !== undefined && { pageSize }),
    pageToken,
    ...(view !== undefined && { view: viewWords.value(view) }),
  });
}

export function readCancelledBatch(response: CancelBatchResponse, requestId: string): CancelledBatch {
  const { nextPageToken } = response;
  return {
    verdicts: response.verdicts.map(({ taskId, verdict }): CancelVerdict => {
      if (verdict.case === 'accepted') return { taskId, accepted: readCancelled(verdict.value), refused: undefined };
      return { taskId, accepted: undefined, refused: fromRefusal(verdict.value ?? create(RefusalSchema)) };
    }),
    requestId,
    nextPageToken: nextPageToken === '' ? undefined : nextPageToken,
  };
}

function isIds(scope: CancelScope): scope is readonly string[] {
  return Array.isArray(scope);
}

export function toResumeRequest(taskId: string, options: ResumeOptions, actor: CallerActor | undefined): ResumeRequest {
  const { requestId = uuidv7(), generationId, expectedRevision, newGenerationId, input, view } = options;
  return create(ResumeRequestSchema, {
    taskId,
    idempotencyKey: requestId,
    ...(generationId !== undefined && { generationId }),
    ...(expectedRevision !== undefined && { expectedRevision: BigInt(expectedRevision) }),
    ...(newGenerationId !== undefined && { newGenerationId }),
    ...(input !== undefined && { inputJson: requireJsonText(input, 'input') }),
    cause: toCause(options, TEXT_REASONS.resume, actor),
    ...(view !== undefined && { view: viewWords.value(view) }),
  });
}

export function toTransitionRequest(
  taskId: string,
  intent: Intent,
  options: TransitionOptions,
  actor: CallerActor | undefined,
): TransitionRequest {
  const { requestId = uuidv7(), generationId, fromStatus, expectedRevision, lease, view } = options;
  const cause = toCause(options, TEXT_REASONS[intent.type], actor);
  return create(TransitionRequestSchema, {
    taskId,
    idempotencyKey: requestId,
    ...(generationId !== undefined && { generationId }),
    ...(fromStatus !== undefined && { fromStatus: statusWords.value(fromStatus) }),
    ...(expectedRevision !== undefined && { expectedRevision: BigInt(expectedRevision) }),
    ...(lease !== undefined && {
      lease: { generationId: lease.generationId ?? '', epoch: BigInt(lease.epoch), leaseToken: lease.token },
    }),
    cause: { ...cause, authoritativeEventId: options.authoritativeEventId ?? '' },
    validateOnly: options.validateOnly ?? false,
    ...(view !== undefined && { view: viewWords.value(view) }),
    intent: toIntent(intent),
  });
}

export function readTransitioned(response: TransitionResponse): Transitioned {
  const { lease } = response;
  return {
    ...readApplied(response),
    previousStatus: statusWords.word(response.previousStatus),
    currentStatus: statusWords.word(response.currentStatus),
    lease: lease && {
      generation: readGeneration(lease.generation),
      epoch: Number(lease.epoch),
      token: lease.leaseToken,
      expireTime: toDate(lease.expireTime),
    },
    allowed: response.allowed.map(({ intent, allowed, refusal }) => ({
      intent: intentWords.word(intent) ?? 'unknown',
      allowed,
      refusal: refusal && fromRefusal(refusal),
    })),
  };
}

export function readApplied(response: ResumeResponse | TransitionResponse | UpdatePolicyResponse): Applied {
  const conflict = conflictWords.word(response.conflict);
  return {
    applied: response.applied,
    conflict: conflict === 'none' ? undefined : conflict,
    replayed: response.replayed,
    task: response.task && readTask(response.task),
    transitionId: response.transitionId,
    event: readEventRef(response.event),
  };
}

type CauseInit = Pick<MessageInitShape<typeof CauseSchema>, 'actor' | 'reason' | 'causationId'>;

export function toCause(caused: Caused, textCode: string, defaultActor: CallerActor | undefined): CauseInit {
  const { reason, actor = defaultActor, causationId = '' } = caused;
  return {
    causationId,
    ...(reason !== undefined && { reason: toReason(reason, textCode) }),
    ...(actor !== undefined && { actor: { type: actorWords.value(actor.type), id: actor.id } }),
  };
}

function toReason(reason: ReasonInput, textCode: string): MessageInitShape<typeof ReasonSchema> {
  if (typeof reason === 'string') return { code: textCode, summary: reason };
  return { code: reason.code, summary: reason.summary ?? '', evidenceRefs: [...(reason.evidenceRefs ?? [])] };
}
