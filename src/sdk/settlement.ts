/**
 * How work ends, as users say it and as proto says it: shared by workers (who settle what they hold) and by callers
 * of Transition. Limits are those of proto/reeve/v1/task.proto and are the server's to judge.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  CompletedSchema,
  ExecutionDetailSchema,
  FailedSchema,
  TaskErrorSchema,
  TimedOutSchema,
} from '../gen/reeve/v1/task_pb.js';
import { requireJsonText } from './transport/json.js';
import { msToDuration } from './transport/time.js';

/** What an execution leaves behind besides its result. */
export interface ExecutionDetail {
  readonly exitCode?: number;
  /** Diagnostic text, the tail of a log. At most 64 KiB; the beginning of longer text is cut. */
  readonly errorDetail?: string;
  /** The executor's own id for this run. At most 255 bytes. */
  readonly invocationId?: string;
  /** URIs or JSON objects as text. At most 32 of at most 2 KiB. */
  readonly evidenceRefs?: readonly string[];
}

export interface CompletionInput extends ExecutionDetail {
  /** Any JSON value, at most 1 MiB as text; undefined for none. */
  readonly result?: unknown;
  /** A URI where the result is. */
  readonly resultRef?: string;
}

export interface ErrorInput {
  /** A stable word for programs, 1–128 bytes without white space. */
  readonly code: string;
  /** For people. At most 8 KiB; longer text is cut. */
  readonly message?: string;
  /** Whether another attempt could help. Default: true. */
  readonly retryable?: boolean;
  /** Any JSON value, at most 64 KiB as text. */
  readonly details?: unknown;
}

export interface FailureInput extends ErrorInput, ExecutionDetail {
  /** The wait before the next attempt instead of the policy's, ms. */
  readonly retryAfterMs?: number;
}

const MAX_ERROR_DETAIL_LENGTH = 64 * 1024;

/** Throws MALFORMED when the result is not JSON. */
export function toCompleted(input: CompletionInput): MessageInitShape<typeof CompletedSchema> {
  const resultJson = input.result === undefined ? undefined : requireJsonText(input.result, 'result');
  return {
    ...(resultJson !== undefined && { resultJson }),
    ...(input.resultRef !== undefined && { resultRef: input.resultRef }),
    ...withDetail(input),
  };
}

export function toFailed(input: FailureInput): MessageInitShape<typeof FailedSchema> {
  return {
    error: toTaskError(input),
    ...(input.retryAfterMs !== undefined && { retryAfter: msToDuration(input.retryAfterMs, 'retryAfterMs') }),
    ...withDetail(input),
  };
}

export function toTimedOut(
  input: ExecutionDetail & { readonly error?: ErrorInput },
): MessageInitShape<typeof TimedOutSchema> {
  return { ...(input.error !== undefined && { error: toTaskError(input.error) }), ...withDetail(input) };
}

export function withDetail(input: ExecutionDetail): { detail?: MessageInitShape<typeof ExecutionDetailSchema> } {
  const { exitCode, errorDetail, invocationId, evidenceRefs } = input;
  if (exitCode === undefined && errorDetail === undefined && invocationId === undefined && evidenceRefs === undefined) {
    return {};
  }
  return {
    detail: {
      ...(exitCode !== undefined && { exitCode }),
      // What the server would cut need not travel, and might not fit into a frame. It counts bytes, this UTF-16 units.
      errorDetail: (errorDetail ?? '').slice(-MAX_ERROR_DETAIL_LENGTH),
      invocationId: invocationId ?? '',
      evidenceRefs: [...(evidenceRefs ?? [])],
    },
  };
}

function toTaskError(input: ErrorInput): MessageInitShape<typeof TaskErrorSchema> {
  return {
    code: input.code,
    message: input.message ?? '',
    retryable: input.retryable ?? true,
    ...(input.details !== undefined && { detailsJson: requireJsonText(input.details, 'details') }),
  };
}
