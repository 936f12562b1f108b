/**
 * Numbers that stand for names in stored text. Append only: a number, once written, keeps its meaning for ever,
 * whatever becomes of the order in which the kernel lists its names.
 */
import type { AepState } from '../kernel/aep.js';
import type { ExecutionTarget } from '../kernel/admission/application.js';
import type { DependencyCondition, OnUnsatisfied } from '../kernel/admission/family-policy.js';
import type { ActorType, Source } from '../kernel/cause.js';
import type { EventType, Follower, RepairKind, RetryCause } from '../kernel/event.js';
import type { PolicyField } from '../kernel/policy-update.js';
import type { TaskStatus } from '../kernel/status.js';
import type { SessionEndCause, SessionState } from './commit-plan.js';
import type { FollowedOutcome } from './family-rows.js';
import type { PermitRowState } from './permit-rules.js';

type Codes<Name extends string> = Readonly<Record<Name, number>>;

function namesByCode<Name extends string>(codes: Codes<Name>): readonly (Name | undefined)[] {
  const names: (Name | undefined)[] = [];
  for (const name of Object.keys(codes) as Name[]) names[codes[name]] = name;
  return names;
}

export const STATUS_CODES: Codes<TaskStatus> = {
  queued: 0,
  waiting_dependency: 1,
  running: 2,
  retry_wait: 3,
  suspended: 4,
  completed: 5,
  failed: 6,
  timed_out: 7,
  cancelled: 8,
  skipped: 9,
};
export const STATUSES = namesByCode(STATUS_CODES);

export const AEP_CODES: Codes<AepState> = {
  submitted: 0,
  accepted: 1,
  started: 2,
  progress: 3,
  output: 4,
  blocked: 5,
  completed: 6,
  failed: 7,
  cancelled: 8,
  timed_out: 9,
};
export const AEP_NAMES = namesByCode(AEP_CODES);

export const EVENT_CODES: Codes<EventType> = {
  'task.submitted': 1,
  'reeve.task.generation_started': 2,
  'reeve.task.claimed': 3,
  'task.accepted': 4,
  'task.started': 5,
  'task.progress': 6,
  'task.output': 7,
  'task.blocked': 8,
  'reeve.task.checkpoint': 9,
  'reeve.task.retry_scheduled': 10,
  'reeve.task.requeued': 11,
  'reeve.task.ready': 12,
  'reeve.task.suspended': 13,
  'reeve.task.resumed': 14,
  'task.cancel.requested': 15,
  'reeve.task.cancel_delivered': 16,
  'reeve.task.cancel_acknowledged': 17,
  'task.completed': 18,
  'task.failed': 19,
  'task.timed_out': 20,
  'task.cancelled': 21,
  'reeve.task.skipped': 22,
  'reeve.task.followed': 23,
  'reeve.task.held': 24,
  'reeve.task.dependencies_met': 25,
  'reeve.task.cancel_hastened': 26,
  'reeve.task.policy_updated': 30,
  'reeve.task.repaired': 40,
};
export const EVENT_TYPES = namesByCode(EVENT_CODES);

export const RETRY_CAUSE_CODES: Codes<RetryCause> = {
  failure: 0,
  time_out: 1,
  lease_lost: 2,
  hand_back: 3,
  release: 4,
};
export const RETRY_CAUSES = namesByCode(RETRY_CAUSE_CODES);

export const REPAIR_CODES: Codes<RepairKind> = {
  rebuild_record: 0,
  accept_record: 1,
  reindex: 2,
  redact_payload: 3,
};
export const REPAIRS = namesByCode(REPAIR_CODES);

/** Stored by name: there are few, and they are rare. */
export const POLICY_FIELDS: readonly PolicyField[] = [
  'priority',
  'labels',
  'description',
  'timeout',
  'start_by',
  'not_before',
  'attempt_timeout',
  'progress_timeout',
  'retry',
  'retention',
];

export const ACTOR_CODES: Codes<ActorType> = {
  producer: 0,
  worker: 1,
  operator: 2,
  schedule: 3,
  reaper: 4,
  parent: 5,
  dependency: 6,
  webhook: 7,
  recovery: 8,
  admin: 9,
};
export const ACTOR_TYPES = namesByCode(ACTOR_CODES);

export const SOURCE_CODES: Codes<Source> = {
  rpc: 0,
  stream: 1,
  cli: 2,
  schedule: 3,
  aep: 4,
  embedded: 5,
  authority: 6,
};
export const SOURCES = namesByCode(SOURCE_CODES);

/** What a follower is told of: a cancel request, or an end. */
export const OUTCOME_CODES: Codes<FollowedOutcome> = {
  cancel_requested: 0,
  completed: 1,
  failed: 2,
  timed_out: 3,
  cancelled: 4,
  skipped: 5,
};
export const OUTCOMES = namesByCode(OUTCOME_CODES);

export const CONDITION_CODES: Codes<DependencyCondition> = { succeeded: 0, terminal: 1 };
export const CONDITIONS = namesByCode(CONDITION_CODES);

export const UNSATISFIED_CODES: Codes<OnUnsatisfied> = { skip: 0, fail: 1, cancel: 2 };
export const UNSATISFIED = namesByCode(UNSATISFIED_CODES);

export const FOLLOWER_CODES: Codes<Follower> = { child: 0, waiter: 1 };
export const FOLLOWERS = namesByCode(FOLLOWER_CODES);

export const TARGET_CODES: Codes<ExecutionTarget> = {
  host: 0,
  local_worktree: 1,
  daytona: 2,
  remote_agent: 3,
  process: 4,
};
export const TARGETS = namesByCode(TARGET_CODES);

export const PERMIT_STATE_CODES: Codes<PermitRowState> = {
  waiting: 0,
  passed: 1,
  running: 2,
  to_come: 3,
  aside: 4,
};
export const PERMIT_STATES = namesByCode(PERMIT_STATE_CODES);

export const SESSION_CODES: Codes<SessionState> = { live: 0, draining: 1, gone: 2 };
export const SESSION_STATES = namesByCode(SESSION_CODES);

export const END_CAUSE_CODES: Codes<SessionEndCause> = { expired: 0, stream_ended: 1, claim_ended: 2 };
export const END_CAUSES = namesByCode(END_CAUSE_CODES);
