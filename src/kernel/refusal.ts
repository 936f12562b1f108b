/**
 * Refusals: the closed set of typed "no" answers (lifecycle.md section 4, api.md's error table).
 * Values only: which status each becomes on the wire is decided at the edge, in one table.
 */

export type RefusalReason =
  | 'MALFORMED'
  | 'TASK_NOT_FOUND'
  | 'TASK_ID_TAKEN'
  | 'IDEMPOTENCY_CONFLICT'
  | 'INVALID_TRANSITION'
  | 'ILLEGAL_EVENT'
  | 'TERMINAL_GENERATION'
  | 'STALE_GENERATION'
  | 'LEASE_LOST'
  | 'LEASE_REQUIRED'
  | 'EVENT_GAP'
  | 'SESSION_GONE'
  | 'CANCELLATION_FENCED'
  | 'CANCELLATION_NOT_REQUESTED'
  | 'PARENT_CONSTRAINT'
  | 'CHILDREN_ACTIVE'
  | 'ACTION_KIND_UNREGISTERED'
  | 'RECORD_DAMAGED'
  | 'CONTENTION'
  | 'OVERLOADED'
  | 'SLOW_READER'
  | 'CURSOR_INVALID'
  | 'CURSOR_EXPIRED'
  | 'STORE_UNAVAILABLE'
  | 'OUTCOME_UNKNOWN'
  | 'DRAINING'
  | 'UNSUPPORTED'
  | 'NOT_FOUND'
  | 'INTERNAL';

export interface Refusal {
  readonly reason: RefusalReason;
  /** One plain sentence for a person; never SQL, a stack, a host or a path. */
  readonly message: string;
  /** Every dynamic value, by name: `task_id`, `field`, `status`, `expected_event_seq`, … */
  readonly metadata: Readonly<Record<string, string>>;
}

export function refuse(
  reason: RefusalReason,
  message: string,
  metadata: Readonly<Record<string, string>> = {},
): Refusal {
  return { reason, message, metadata };
}

/** MALFORMED with the place named: `field` is the path in the request as the caller wrote it. */
export function malformed(field: string, detail: string, metadata: Readonly<Record<string, string>> = {}): Refusal {
  return { reason: 'MALFORMED', message: `${field}: ${detail}`, metadata: { field, ...metadata } };
}

export function actionKindUnregistered(actionKind: string): Refusal {
  const message = 'this action kind is not registered in this deployment';
  return refuse('ACTION_KIND_UNREGISTERED', message, { action_kind: actionKind });
}
