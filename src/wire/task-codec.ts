/**
 * Tasks from the domain to the wire, in three views (task.proto, TaskView).
 * Owns which fields a view has and how each is derived from the record. What the record only names (results,
 * checkpoints, inputs) is handed in by whoever read the history; this file reads nothing.
 */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  CancellationState,
  type CancellationSchema,
  OwnerStopped,
  type PhaseDetailsSchema,
  type TaskApplicationSchema,
  type TaskSchema,
  type TaskTimersSchema,
} from '../gen/reeve/v1/task_pb.js';
import type { TaskRecord } from '../kernel/record.js';
import { lifecycleOf, outcomeOf } from '../kernel/status.js';
import { type TimerKind, nextDueAt, timersOf } from '../kernel/timers.js';
import { actorMessage, reasonMessage } from './cause-codec.js';
import {
  type View,
  actorTypes,
  admissionSources,
  aepStates,
  cancellationPolicies,
  executionTargets,
  lifecycles,
  outcomes,
  statuses,
} from './enum-tables.js';
import type { Fields, OptionalField } from './message-fields.js';
import { parentMessage, policyMessage } from './policy-codec.js';
import { sessionAlias } from './session-alias.js';
import { errorMessage } from './settlement-codec.js';
import { toTimestamp } from './time-values.js';

export type TaskFields = Fields<typeof TaskSchema>;

/** What a view needs beside the record. */
export interface TaskExtras {
  /** Epoch ms at which the holder's session ends; null when it is not known or nobody holds the task. */
  readonly leaseExpiresAt: number | null;
  readonly resultJson: string | null;
  readonly checkpointJson: string | null;
  readonly inputJson: string | null;
}

export const NO_EXTRAS: TaskExtras = { leaseExpiresAt: null, resultJson: null, checkpointJson: null, inputJson: null };

export function taskMessage(record: TaskRecord, view: View, extras: TaskExtras = NO_EXTRAS): TaskFields {
  switch (view) {
    case 'name':
      return nameView(record);
    case 'basic':
      return basicView(record, extras);
    case 'full':
      return fullView(record, extras);
  }
}

function nameView(record: TaskRecord): TaskFields {
  const { admission } = record;
  return {
    taskId: admission.taskId,
    namespace: admission.namespace,
    idempotencyKey: admission.idempotencyKey,
    generation: { id: record.generationId, number: record.generation },
    revision: BigInt(record.revision),
    status: statuses.value(record.status),
    lastEventNumber: BigInt(record.lastEvent),
  };
}

function basicView(record: TaskRecord, extras: TaskExtras): TaskFields {
  const { admission, policy, ending, reason } = record;
  const outcome = outcomeOf(record.status);
  return {
    ...nameView(record),
    queue: admission.queue,
    application: applicationMessage(record),
    applicationHash: admission.applicationHash,
    lifecycle: lifecycles.value(lifecycleOf(record.status, record.everClaimed)),
    ...(outcome === null ? {} : { outcome: outcomes.value(outcome) }),
    aepState: aepStates.value(record.aep),
    attempt: record.attempt,
    maxAttempts: policy.retry.maxAttempts,
    ...leaseOf(record, extras),
    cancellation: cancellationMessage(record),
    phase: phaseMessage(record),
    ...(reason === null ? {} : { reason: reasonMessage(reason, ending?.evidenceRefs ?? []) }),
    ...(ending?.error ? { error: errorMessage(ending.error) } : {}),
    outputTruncated: record.outputTruncated,
    ...(ending === null || ending.exitCode === null ? {} : { exitCode: ending.exitCode }),
    errorDetail: ending?.errorDetail ?? '',
    invocationId: ending?.invocationId ?? '',
    admission: {
      ...(admission.source === 'authority' ? {} : { source: admissionSources.value(admission.source) }),
      scheduleId: admission.scheduleId ?? '',
      actor: { type: actorTypes.value(admission.actor.type), id: admission.actor.id },
      principal: admission.principal,
    },
    timers: timersMessage(record),
    labels: { ...policy.labels },
    ...(admission.policy.parent === null ? {} : { parent: parentMessage(admission.policy.parent) }),
    policy: policyMessage(policy),
    createTime: toTimestamp(admission.createdAt),
    ...timeField('queueTime', record.queuedAt),
    ...timeField('startTime', record.startedAt),
    ...timeField('finishTime', record.finishedAt),
    updateTime: toTimestamp(record.updatedAt),
  };
}

function fullView(record: TaskRecord, extras: TaskExtras): TaskFields {
  return {
    ...basicView(record, extras),
    application: { ...applicationMessage(record), argsJson: record.admission.application.argsJson },
    resultJson: extras.resultJson ?? '',
    resultRef: record.ending?.resultRef ?? '',
    checkpointJson: extras.checkpointJson ?? '',
    resumeInputJson: extras.inputJson ?? '',
  };
}

function applicationMessage(record: TaskRecord): Fields<typeof TaskApplicationSchema> {
  const { application } = record.admission;
  return {
    actionKind: application.actionKind,
    executionTarget: executionTargets.value(application.executionTarget),
    requiredCapabilities: [...application.requiredCapabilities],
    ...(application.libraryRef === null ? {} : { libraryRef: application.libraryRef }),
    ...(application.libraryContentHash === null ? {} : { libraryContentHash: application.libraryContentHash }),
  };
}

function leaseOf(record: TaskRecord, extras: TaskExtras): Pick<TaskFields, 'lease'> {
  const { lease } = record;
  if (lease === null) return {};
  return {
    lease: {
      workerName: lease.worker,
      sessionAlias: sessionAlias(lease.sessionId),
      epoch: BigInt(lease.epoch),
      ...timeField('expireTime', extras.leaseExpiresAt),
    },
  };
}

function cancellationMessage(record: TaskRecord): Fields<typeof CancellationSchema> {
  const { cancellation } = record;
  const policy = cancellationPolicies.value(record.policy.cancellationPolicy);
  const settled = record.status === 'cancelled';
  const owner = record.ownerStopped ? OwnerStopped.CONFIRMED : OwnerStopped.UNCONFIRMED;
  const stopped = settled ? { ownerStopped: owner } : {};
  if (cancellation === null) {
    return { state: settled ? CancellationState.SETTLED : CancellationState.NONE, policy, ...stopped };
  }
  return {
    state: settled ? CancellationState.SETTLED : CancellationState.REQUESTED,
    policy,
    ...stopped,
    requestTime: toTimestamp(cancellation.requestedAt),
    requestedBy: actorMessage(cancellation.requestedBy),
    ...timeField('deliveredTime', cancellation.deliveredAt),
    ...timeField('acknowledgedTime', cancellation.acknowledgedAt),
    ...(cancellation.reason === null ? {} : { reason: reasonMessage(cancellation.reason) }),
  };
}

function phaseMessage(record: TaskRecord): Fields<typeof PhaseDetailsSchema> {
  return {
    ...(record.progress === null ? {} : { progress: record.progress }),
    message: record.message ?? '',
    blockedReason: record.status === 'retry_wait' ? 'retry' : (record.blockedReason ?? ''),
  };
}

const TIMER_FIELDS = {
  total_deadline: 'deadline',
  start_by: 'startBy',
  cancel_grace: 'graceDeadline',
  attempt_time_out: 'attemptDeadline',
  no_progress: 'progressDeadline',
  accept: 'acceptDeadline',
  retry: 'retryTime',
  not_before: 'notBefore',
} as const satisfies Readonly<Record<TimerKind, string>>;

function timersMessage(record: TaskRecord): Fields<typeof TaskTimersSchema> {
  let timers: Fields<typeof TaskTimersSchema> = timeField('nextDueTime', nextDueAt(record));
  for (const timer of timersOf(record)) timers = { ...timers, [TIMER_FIELDS[timer.kind]]: toTimestamp(timer.dueAt) };
  return timers;
}

function timeField<Name extends string>(name: Name, epochMs: number | null): OptionalField<Name, Timestamp> {
  return epochMs === null ? {} : { [name]: toTimestamp(epochMs) };
}
