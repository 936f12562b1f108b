/**
 * The one error of the SDK for what a server, a connection or the SDK itself refuses: gRPC status, Reeve's reason,
 * every dynamic value, and whether to try again. It must never hide a reason it does not know.
 */
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { fromBinary } from '@bufbuild/protobuf';
import { Metadata, status } from '@grpc/grpc-js';
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../gen/google/rpc/status_pb.js';
import { ErrorReason, type Refusal } from '../../gen/reeve/v1/error_reason_pb.js';
import { durationToMs } from './time.js';

/**
 * A reason of proto/reeve/v1/error_reason.proto; for what no Reeve server said, the gRPC status by name; the SDK's own:
 * UNREACHABLE (nobody was ever reached at the address, nothing was sent) and THREAD_FAILED (a worker without the thread
 * that keeps its stream).
 */
export type ReeveErrorReason =
  | Exclude<keyof typeof ErrorReason, 'UNSPECIFIED'>
  | keyof typeof status
  | 'UNREACHABLE'
  | 'THREAD_FAILED'
  | (string & Record<never, never>);

export interface ReeveErrorFields {
  readonly reason: ReeveErrorReason;
  /** The gRPC status, 1 … 16. */
  readonly code: status;
  readonly message: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Wait at least so long before trying again, ms. */
  readonly retryAfterMs?: number | undefined;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

export class ReeveError extends Error {
  override readonly name = 'ReeveError';
  readonly reason: ReeveErrorReason;
  /** The gRPC status, 1 … 16. */
  readonly code: status;
  /** Every dynamic value, under the keys that the reason documents. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether the same call, with the same key, may succeed later. */
  readonly retryable: boolean;
  /** Wait at least so long before trying again, ms. */
  readonly retryAfterMs: number | undefined;

  constructor(fields: ReeveErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.reason = fields.reason;
    this.code = fields.code;
    this.metadata = fields.metadata ?? {};
    this.retryAfterMs = fields.retryAfterMs;
    this.retryable = fields.retryable ?? isRetryable(fields.code, fields.retryAfterMs !== undefined);
  }
}

/** True for a ReeveError, of this reason if one is given. */
export function isReeveError(error: unknown, reason?: ReeveErrorReason): error is ReeveError {
  return error instanceof ReeveError && (reason === undefined || error.reason === reason);
}

/** What a call ended with, whatever it threw, as a ReeveError. */
export function toReeveError(error: unknown): ReeveError {
  if (error instanceof ReeveError) return error;
  if (!isServiceError(error)) {
    const message = error instanceof Error ? error.message : String(error);
    return new ReeveError({ reason: 'UNKNOWN', code: status.UNKNOWN, message, cause: error });
  }
  return fromStatus(error.code, error.details, error.metadata);
}

/** The same from a stream's status. */
export function fromStatus(code: status, details: string, metadata: Metadata): ReeveError {
  const rich = readDetails(metadata);
  return new ReeveError({
    reason: rich?.reason ?? status[code] ?? 'UNKNOWN',
    code,
    message: details,
    metadata: rich?.metadata ?? {},
    retryAfterMs: rich?.retryAfterMs,
    // Without Reeve's own word RESOURCE_EXHAUSTED is a limit of the transport, which the next try meets as well.
    retryable: isRetryable(code, rich?.reason !== undefined || rich?.retryAfterMs !== undefined),
  });
}

export function fromRefusal(refusal: Refusal): ReeveError {
  return new ReeveError({
    reason: ErrorReason[refusal.reason] ?? status[refusal.grpcCode] ?? 'UNKNOWN',
    code: refusal.grpcCode,
    message: refusal.message,
    metadata: refusal.metadata,
    retryAfterMs: durationToMs(refusal.retryAfter),
    retryable: isRetryable(refusal.grpcCode, true),
  });
}

/** A refusal of the SDK itself: nothing was sent. */
export function refusedLocally(field: string, message: string): ReeveError {
  return new ReeveError({ reason: 'MALFORMED', code: status.INVALID_ARGUMENT, message, metadata: { field } });
}

function isRetryable(code: status, saidByReeve: boolean): boolean {
  if (code === status.UNAVAILABLE || code === status.ABORTED) return true;
  return code === status.RESOURCE_EXHAUSTED && saidByReeve;
}

interface ServiceErrorShape {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

function isServiceError(error: unknown): error is ServiceErrorShape {
  if (!(error instanceof Error) || !('code' in error) || !('metadata' in error) || !('details' in error)) return false;
  return typeof error.code === 'number' && typeof error.details === 'string' && error.metadata instanceof Metadata;
}

interface RichDetails {
  reason?: string;
  metadata?: Record<string, string>;
  retryAfterMs?: number | undefined;
}

function readDetails(metadata: Metadata): RichDetails | undefined {
  const [bytes] = metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) return undefined;
  const rich: RichDetails = {};
  try {
    for (const detail of fromBinary(StatusSchema, bytes).details) {
      const info = anyUnpack(detail, ErrorInfoSchema);
      if (info !== undefined) {
        rich.reason = info.reason;
        rich.metadata = info.metadata;
      }
      const retry = anyUnpack(detail, RetryInfoSchema);
      if (retry !== undefined) rich.retryAfterMs = durationToMs(retry.retryDelay);
    }
  } catch {
    // A proxy may garble trailers; the status itself still holds.
    return undefined;
  }
  return rich;
}
