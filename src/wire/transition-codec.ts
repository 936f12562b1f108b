/**
 * Intents on existing tasks from the wire to the domain: Transition, Cancel, Resume.
 * Owns which of their fields are required and what each means; the kernel judges. What a caller stated is kept apart
 * from what the server adds to it (proofs, chance, spare ids), because only the former is hashed.
 */
import type {
  CancelRequest,
  ClaimIntent,
  LeaseProof,
  ResumeIntent,
  ResumeRequest,
  TransitionRequest,
} from '../gen/reeve/v1/task_service_pb.js';
import { checkOperationKey, checkTaskId } from '../kernel/admission/identifiers.js';
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import type { TaskPolicy } from '../kernel/admission/policy.js';
import type { Duration } from '@bufbuild/protobuf/wkt';
import { MAX_WORKER_NAME_BYTES, claimTtlMs } from '../kernel/delivery.js';
import type { PolicyField } from '../kernel/policy-update.js';
import type { Ending } from '../kernel/record.js';
import type { SettledStatus, TaskStatus } from '../kernel/status.js';
import { NOTHING_STATED, type StatedCause, readActor, readCause, readReason } from './cause-codec.js';
import { boundedText } from './bounded-text.js';
import { statuses } from './enum-tables.js';
import { MAX_RESUME_INPUT_BYTES } from './frame-limits.js';
import { optionalJson } from './json-values.js';
import { checked, malformedField } from './refusal-error.js';
import { readEnding, readError, readTimeoutEnding } from './settlement-codec.js';
import { durationMs, durationMsWithin } from './time-values.js';
import { readEpoch, readMark } from './whole-numbers.js';

export type StatedIntent =
  | { readonly kind: 'claim'; readonly workerName: string; readonly ttlMs: number }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'resume'; readonly newGenerationId: string | null; readonly inputJson: string | null }
  | { readonly kind: 'request_cancellation'; readonly graceMs: number | null }
  | {
      readonly kind: 'settle';
      readonly outcome: SettledStatus;
      readonly resultJson: string | null;
      readonly ending: Ending | null;
      readonly retryAfterMs: number | null;
    }
  | { readonly kind: 'skip' }
  | { readonly kind: 'update_policy'; readonly fields: readonly PolicyField[]; readonly values: TaskPolicy };

export interface StatedGuards {
  readonly generationId: string | null;
  readonly fromStatus: TaskStatus | null;
  readonly expectedRevision: number | null;
  /** The epoch of the lease that was stated. */
  readonly epoch: number | null;
}

export interface StatedLease {
  readonly generationId: string | null;
  readonly epoch: number;
  readonly token: string;
}

export interface IntentCommand {
  readonly taskId: string;
  /** Null: `validate_only`. */
  readonly key: string | null;
  readonly intent: StatedIntent;
  readonly guards: StatedGuards;
  readonly lease: StatedLease | null;
  readonly cause: StatedCause;
}

export function readTransition(request: TransitionRequest): IntentCommand {
  const lease = request.lease === undefined ? null : readLease(request.lease);
  const { expectedRevision, fromStatus } = request;
  return {
    taskId: requiredTaskId('task_id', request.taskId),
    key:
      request.validateOnly && request.idempotencyKey === '' ? null : readKey('idempotency_key', request.idempotencyKey),
    intent: readIntent(request.intent),
    guards: {
      generationId: request.generationId === undefined ? null : requiredTaskId('generation_id', request.generationId),
      fromStatus: fromStatus === undefined ? null : statuses.read('from_status', fromStatus),
      expectedRevision: readRevision(expectedRevision),
      epoch: lease?.epoch ?? null,
    },
    lease,
    cause: readCause('cause', request.cause),
  };
}

type CancelWish = Pick<CancelRequest, 'requestId' | 'grace' | 'reason' | 'actor'> &
  Partial<Pick<CancelRequest, 'generationId'>>;

export function readCancel(request: CancelWish): Omit<IntentCommand, 'taskId'> {
  const { generationId, grace } = request;
  return {
    key: readKey('request_id', request.requestId),
    intent: { kind: 'request_cancellation', graceMs: readGrace('grace', grace) },
    guards: {
      generationId: generationId === undefined ? null : requiredTaskId('generation_id', generationId),
      fromStatus: null,
      expectedRevision: null,
      epoch: null,
    },
    lease: null,
    cause: {
      ...NOTHING_STATED,
      actor: readActor('actor', request.actor),
      reason: readReason('reason', request.reason),
    },
  };
}

export function readResume(request: ResumeRequest): IntentCommand {
  const { generationId } = request;
  return {
    taskId: requiredTaskId('task_id', request.taskId),
    key: readKey('idempotency_key', request.idempotencyKey),
    intent: resumeIntent('', request),
    guards: {
      generationId: generationId === undefined ? null : requiredTaskId('generation_id', generationId),
      fromStatus: null,
      expectedRevision: readRevision(request.expectedRevision),
      epoch: null,
    },
    lease: null,
    cause: readCause('cause', request.cause),
  };
}

function readIntent(intent: TransitionRequest['intent']): StatedIntent {
  switch (intent.case) {
    case undefined:
      throw malformedField('intent', 'is required');
    case 'claim':
      return claimIntent(intent.value);
    case 'suspend':
      return { kind: 'suspend' };
    case 'resume':
      return resumeIntent('resume.', intent.value);
    case 'requestCancellation':
      return { kind: 'request_cancellation', graceMs: readGrace('request_cancellation.grace', intent.value.grace) };
    case 'settleCancellation':
      return settle('cancelled', readEnding('settle_cancellation', null, intent.value.detail, ''));
    case 'settleCompletion': {
      const { resultJson, resultRef, detail } = intent.value;
      const ending = readEnding('settle_completion', null, detail, resultRef);
      return settle('completed', ending, optionalJson('settle_completion.result_json', resultJson));
    }
    case 'settleFailure': {
      const { error, detail, retryAfter } = intent.value;
      const ending = readEnding('settle_failure', readError('settle_failure.error', error), detail, '');
      const retryAfterMs = readGrace('settle_failure.retry_after', retryAfter);
      return { ...settle('failed', ending), retryAfterMs };
    }
    case 'settleTimeout':
      return settle('timed_out', readTimeoutEnding('settle_timeout', intent.value.error, intent.value.detail));
    case 'skip':
      return { kind: 'skip' };
  }
}

function settle(
  outcome: SettledStatus,
  ending: Ending | null,
  resultJson: string | null = null,
): Extract<StatedIntent, { kind: 'settle' }> {
  return { kind: 'settle', outcome, resultJson, ending, retryAfterMs: null };
}

/** A life outside the bounds is clamped; the answer says which holds. */
function claimIntent({ workerName, ttl }: ClaimIntent): StatedIntent {
  return {
    kind: 'claim',
    workerName: boundedText('claim.worker_name', workerName, MAX_WORKER_NAME_BYTES),
    ttlMs: claimTtlMs(ttl === undefined ? null : durationMs('claim.ttl', ttl)),
  };
}

function resumeIntent(prefix: string, resume: Pick<ResumeIntent, 'newGenerationId' | 'inputJson'>): StatedIntent {
  const { newGenerationId, inputJson } = resume;
  return {
    kind: 'resume',
    newGenerationId:
      newGenerationId === undefined ? null : requiredTaskId(`${prefix}new_generation_id`, newGenerationId),
    inputJson: optionalJson(`${prefix}input_json`, inputJson, MAX_RESUME_INPUT_BYTES),
  };
}

function readLease(lease: LeaseProof): StatedLease {
  if (lease.leaseToken === '') throw malformedField('lease.lease_token', 'is required');
  return {
    generationId: lease.generationId === '' ? null : requiredTaskId('lease.generation_id', lease.generationId),
    epoch: readEpoch('lease.epoch', lease.epoch),
    token: lease.leaseToken,
  };
}

export function readRevision(revision: bigint | undefined): number | null {
  return revision === undefined ? null : readMark('expected_revision', revision);
}

function readGrace(field: string, grace: Duration | undefined): number | null {
  return grace === undefined ? null : durationMsWithin(field, grace, 0, MAX_DURATION_MS);
}

export function readKey(field: string, key: string): string {
  return checked(checkOperationKey(key, field));
}

/** Task and generation ids have one form: 1–128 of `A–Z a–z 0–9 . _ : -`. */
export function requiredTaskId(field: string, id: string): string {
  if (id === '') throw malformedField(field, 'is required');
  if (!checkTaskId(id).ok) throw malformedField(field, 'must be 1 to 128 characters of A–Z a–z 0–9 . _ : -');
  return id;
}
