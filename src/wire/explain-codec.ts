/**
 * Explanations from the domain to the wire (task_service.proto, Explain).
 */
import {
  BlockerKind,
  type BlockerSchema,
  type HolderSchema,
  type NextTimerSchema,
  TimerKind,
} from '../gen/reeve/v1/task_service_pb.js';
import type { Blocker, BlockerKind as BlockerWord, NextTimer } from '../kernel/explain.js';
import { EnumTable } from './enum-tables.js';
import type { Fields } from './message-fields.js';
import { sessionAlias } from './session-alias.js';
import { toTimestamp } from './time-values.js';

const MAX_HOLDERS = 20;

const blockerKinds = new EnumTable<BlockerWord, BlockerKind>({
  terminal: BlockerKind.TERMINAL,
  suspended: BlockerKind.SUSPENDED,
  not_before: BlockerKind.NOT_BEFORE,
  retry_backoff: BlockerKind.RETRY_BACKOFF,
  dependency: BlockerKind.DEPENDENCY,
  concurrency_key: BlockerKind.CONCURRENCY_KEY,
  serialized_capability: BlockerKind.SERIALIZED_CAPABILITY,
  kind_unregistered: BlockerKind.KIND_UNREGISTERED,
  no_worker_for_queue: BlockerKind.NO_WORKER_FOR_QUEUE,
  no_worker_for_kind: BlockerKind.NO_WORKER_FOR_KIND,
  no_worker_for_target: BlockerKind.NO_WORKER_FOR_TARGET,
  no_worker_with_capabilities: BlockerKind.NO_WORKER_WITH_CAPABILITIES,
  no_free_slot: BlockerKind.NO_FREE_SLOT,
  dispatching: BlockerKind.DISPATCHING,
  awaiting_accept: BlockerKind.AWAITING_ACCEPT,
  running: BlockerKind.RUNNING,
  worker_blocked: BlockerKind.WORKER_BLOCKED,
  cancel_undelivered: BlockerKind.CANCEL_UNDELIVERED,
  cancel_unacknowledged: BlockerKind.CANCEL_UNACKNOWLEDGED,
  cancel_unsettled: BlockerKind.CANCEL_UNSETTLED,
  recovery_hold: BlockerKind.RECOVERY_HOLD,
});

const timerKinds = new EnumTable<NextTimer['kind'], TimerKind>({
  total_deadline: TimerKind.DEADLINE,
  start_by: TimerKind.START_BY,
  not_before: TimerKind.NOT_BEFORE,
  accept: TimerKind.ACCEPT,
  attempt_time_out: TimerKind.ATTEMPT,
  no_progress: TimerKind.PROGRESS,
  retry: TimerKind.RETRY,
  cancel_grace: TimerKind.CANCEL_GRACE,
  session: TimerKind.SESSION,
});

export function blockerMessage({ kind, detail, holders, holderCount, until }: Blocker): Fields<typeof BlockerSchema> {
  return {
    kind: blockerKinds.value(kind),
    detail,
    holders: holders.slice(0, MAX_HOLDERS).map(holderMessage),
    holderCount,
    ...(until === null ? {} : { until: toTimestamp(until) }),
  };
}

function holderMessage(holder: Blocker['holders'][number]): Fields<typeof HolderSchema> {
  if ('taskId' in holder) return holder;
  return { workerName: holder.workerName, sessionAlias: sessionAlias(holder.sessionId) };
}

export function nextTimerMessage({ kind, dueAt }: NextTimer): Fields<typeof NextTimerSchema> {
  return { kind: timerKinds.value(kind), dueTime: toTimestamp(dueAt) };
}
