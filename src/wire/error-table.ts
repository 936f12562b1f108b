/**
 * The one table from refusals to gRPC statuses (api.md, "Conventions"; error_reason.proto). Whatever answers a caller
 * looks here and nowhere else. It decides no wording: message and metadata are the refusal's own.
 */
import { Code } from '../gen/google/rpc/code_pb.js';
import { ErrorReason } from '../gen/reeve/v1/error_reason_pb.js';
import type { Refusal, RefusalReason } from '../kernel/refusal.js';

export interface StatusRule {
  readonly code: Code;
  readonly reason: ErrorReason;
  /** Which google.rpc detail goes beside ErrorInfo. */
  readonly detail?: 'bad_request' | 'precondition';
  /** Set where a retry makes sense, in ms: wait at least so long. A refusal may bring its own. */
  readonly retryAfterMs?: number;
}

/** A lost race is over at once; the caller's next try meets other records. */
const CONTENTION_RETRY_MS = 50;
/** About the time in which a full queue of commits drains. */
const OVERLOAD_RETRY_MS = 250;
/** A store that does not answer seldom comes back within less. */
const STORE_RETRY_MS = 500;
/** Another server has to be found, or the outcome be found out. */
const ELSEWHERE_RETRY_MS = 1_000;

function malformed(reason: ErrorReason): StatusRule {
  return { code: Code.INVALID_ARGUMENT, reason, detail: 'bad_request' };
}

function precondition(reason: ErrorReason): StatusRule {
  return { code: Code.FAILED_PRECONDITION, reason, detail: 'precondition' };
}

export const ERROR_TABLE: Readonly<Record<RefusalReason, StatusRule>> = {
  MALFORMED: malformed(ErrorReason.MALFORMED),
  CURSOR_INVALID: malformed(ErrorReason.CURSOR_INVALID),
  TASK_NOT_FOUND: { code: Code.NOT_FOUND, reason: ErrorReason.TASK_NOT_FOUND },
  NOT_FOUND: { code: Code.NOT_FOUND, reason: ErrorReason.NOT_FOUND },
  IDEMPOTENCY_CONFLICT: { code: Code.ALREADY_EXISTS, reason: ErrorReason.IDEMPOTENCY_CONFLICT },
  TASK_ID_TAKEN: { code: Code.ALREADY_EXISTS, reason: ErrorReason.TASK_ID_TAKEN },
  INVALID_TRANSITION: precondition(ErrorReason.INVALID_TRANSITION),
  ILLEGAL_EVENT: precondition(ErrorReason.ILLEGAL_EVENT),
  TERMINAL_GENERATION: precondition(ErrorReason.TERMINAL_GENERATION),
  STALE_GENERATION: precondition(ErrorReason.STALE_GENERATION),
  LEASE_LOST: precondition(ErrorReason.LEASE_LOST),
  LEASE_REQUIRED: precondition(ErrorReason.LEASE_REQUIRED),
  EVENT_GAP: precondition(ErrorReason.EVENT_GAP),
  SESSION_GONE: precondition(ErrorReason.SESSION_GONE),
  CANCELLATION_FENCED: precondition(ErrorReason.CANCELLATION_FENCED),
  CANCELLATION_NOT_REQUESTED: precondition(ErrorReason.CANCELLATION_NOT_REQUESTED),
  PARENT_CONSTRAINT: precondition(ErrorReason.PARENT_CONSTRAINT),
  CHILDREN_ACTIVE: precondition(ErrorReason.CHILDREN_ACTIVE),
  ACTION_KIND_UNREGISTERED: precondition(ErrorReason.ACTION_KIND_UNREGISTERED),
  CONTENTION: { code: Code.ABORTED, reason: ErrorReason.CONTENTION, retryAfterMs: CONTENTION_RETRY_MS },
  OVERLOADED: { code: Code.RESOURCE_EXHAUSTED, reason: ErrorReason.OVERLOADED, retryAfterMs: OVERLOAD_RETRY_MS },
  SLOW_READER: { code: Code.RESOURCE_EXHAUSTED, reason: ErrorReason.SLOW_READER, retryAfterMs: OVERLOAD_RETRY_MS },
  CURSOR_EXPIRED: { code: Code.OUT_OF_RANGE, reason: ErrorReason.CURSOR_EXPIRED },
  STORE_UNAVAILABLE: { code: Code.UNAVAILABLE, reason: ErrorReason.STORE_UNAVAILABLE, retryAfterMs: STORE_RETRY_MS },
  OUTCOME_UNKNOWN: { code: Code.UNAVAILABLE, reason: ErrorReason.OUTCOME_UNKNOWN, retryAfterMs: ELSEWHERE_RETRY_MS },
  DRAINING: { code: Code.UNAVAILABLE, reason: ErrorReason.DRAINING, retryAfterMs: ELSEWHERE_RETRY_MS },
  RECORD_DAMAGED: { code: Code.DATA_LOSS, reason: ErrorReason.RECORD_DAMAGED },
  UNSUPPORTED: { code: Code.UNIMPLEMENTED, reason: ErrorReason.UNSUPPORTED },
  INTERNAL: { code: Code.INTERNAL, reason: ErrorReason.INTERNAL },
};

/** Whether the same may be said again, unchanged. */
export function isRetryable({ reason }: Refusal): boolean {
  return ERROR_TABLE[reason].retryAfterMs !== undefined;
}
