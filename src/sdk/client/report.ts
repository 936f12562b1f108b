/**
 * Report as users write it: what happened to one claim, said without a stream, and what became of it. The claim comes
 * from `transition(taskId, { type: 'claim' })`, or from a worker's stream.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { RefusalSchema } from '../../gen/reeve/v1/error_reason_pb.js';
import {
  type ReportRequest,
  ReportRequestSchema,
  type ReportResponse,
  type WorkerEventSchema,
} from '../../gen/reeve/v1/worker_service_pb.js';
import {
  type CompletionInput,
  type ErrorInput,
  type ExecutionDetail,
  type FailureInput,
  toCompleted,
  toFailed,
  toTimedOut,
  withDetail,
} from '../settlement.js';
import { requireJsonText } from '../transport/json.js';
import { fromRefusal, type ReeveError } from '../transport/reeve-error.js';
import { durationToMs, toDate } from '../transport/time.js';
import type { Reason } from './task.js';
import { readReason } from './task-codec.js';
import { receiptWords } from './words.js';

/** Which claim, and its proof. */
export interface ClaimProof {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly token: string;
}

/** What a worker may say of its claim. */
export type Saying =
  | { readonly type: 'accepted' }
  | { readonly type: 'started' }
  /** 0 … 1. */
  | { readonly type: 'progress'; readonly fraction?: number; readonly message?: string }
  /** Any JSON value, at most 1 MiB as text; so a checkpoint. */
  | { readonly type: 'output'; readonly output: unknown }
  | { readonly type: 'checkpoint'; readonly checkpoint: unknown }
  | { readonly type: 'blocked'; readonly reason: string }
  | { readonly type: 'suspended'; readonly reason?: string }
  | ({ readonly type: 'completed' } & CompletionInput)
  | ({ readonly type: 'failed' } & FailureInput)
  | ({ readonly type: 'cancelled'; readonly reason?: string } & ExecutionDetail)
  | ({ readonly type: 'timed_out'; readonly error?: ErrorInput } & ExecutionDetail);

export interface ReportInput {
  /** Numbered 1, 2, 3 … over the life of the claim; none only renews. */
  readonly events?: readonly (Saying & { readonly seq: number })[];
  /** The highest number whose verdict was seen. */
  readonly answeredThrough?: number;
  readonly receipts?: readonly { readonly cancellationToken: string; readonly kind: 'delivered' | 'acknowledged' }[];
}

export interface Reported {
  /** Everything up to here has its answer. */
  readonly judgedThrough: number;
  readonly rejected: readonly { readonly seq: number; readonly error: ReeveError }[];
  /** When the lease ends unless it is renewed; undefined: the claim is over. */
  readonly expireTime: Date | undefined;
  readonly ttlMs: number | undefined;
  /** Pending: stop, and settle with `cancelled`. */
  readonly cancel:
    | { readonly cancellationToken: string; readonly reason: Reason | undefined; readonly graceMs: number | undefined }
    | undefined;
}

export function toReportRequest(claim: ClaimProof, input: ReportInput): ReportRequest {
  const { events = [], receipts = [], answeredThrough = 0 } = input;
  return create(ReportRequestSchema, {
    taskId: claim.taskId,
    generation: claim.generation,
    epoch: BigInt(claim.epoch),
    leaseToken: claim.token,
    events: events.map((event) => ({ eventSeq: BigInt(event.seq), event: toSaying(event) })),
    receipts: receipts.map(({ cancellationToken, kind }) => ({ cancellationToken, kind: receiptWords.value(kind) })),
    answeredThrough: BigInt(answeredThrough),
  });
}

export function readReported({ verdict, expireTime, ttl, cancel }: ReportResponse): Reported {
  return {
    judgedThrough: Number(verdict?.judgedThrough ?? 0n),
    rejected: (verdict?.rejected ?? []).map(({ eventSeq, refusal }) => ({
      seq: Number(eventSeq),
      error: fromRefusal(refusal ?? create(RefusalSchema)),
    })),
    expireTime: toDate(expireTime),
    ttlMs: durationToMs(ttl),
    cancel: cancel && {
      cancellationToken: cancel.cancellationToken,
      reason: readReason(cancel.reason),
      graceMs: durationToMs(cancel.grace),
    },
  };
}

type EventInit = Exclude<MessageInitShape<typeof WorkerEventSchema>['event'], undefined>;

function toSaying(saying: Saying): EventInit {
  switch (saying.type) {
    case 'accepted':
      return { case: 'accepted', value: {} };
    case 'started':
      return { case: 'started', value: {} };
    case 'progress': {
      const { fraction, message = '' } = saying;
      return { case: 'progress', value: { message, ...(fraction !== undefined && { fraction }) } };
    }
    case 'output': {
      const content = { case: 'outputJson' as const, value: requireJsonText(saying.output, 'output') };
      return { case: 'output', value: { content } };
    }
    case 'checkpoint':
      return { case: 'checkpoint', value: { checkpointJson: requireJsonText(saying.checkpoint, 'checkpoint') } };
    case 'blocked':
      return { case: 'blocked', value: { reason: saying.reason } };
    case 'suspended':
      return { case: 'suspended', value: { reason: saying.reason ?? '' } };
    case 'completed':
      return { case: 'completed', value: toCompleted(saying) };
    case 'failed':
      return { case: 'failed', value: toFailed(saying) };
    case 'cancelled':
      return { case: 'cancelled', value: { reason: saying.reason ?? '', ...withDetail(saying) } };
    case 'timed_out':
      return { case: 'timedOut', value: toTimedOut(saying) };
  }
}
