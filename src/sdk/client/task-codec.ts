/**
 * Task messages into what users see. int64 values become numbers: they count commits and stay far below 2^53.
 */
import type * as pb from '../../gen/reeve/v1/task_pb.js';
import { parseJson } from '../transport/json.js';
import { durationToMs, toDate } from '../transport/time.js';
import type {
  Actor,
  EventRef,
  Generation,
  Reason,
  Task,
  TaskCancellation,
  TaskErrorInfo,
  TaskName,
  TaskPolicy,
  TaskTimers,
} from './task.js';
import {
  actorWords,
  aepWords,
  attachmentWords,
  cancellationPolicyWords,
  cancellationWords,
  conditionWords,
  outcomeWords,
  ownerWords,
  phaseWords,
  sourceWords,
  statusWords,
  targetWords,
  unsatisfiedWords,
} from './words.js';

export function readTaskName(task: pb.Task): TaskName {
  return {
    id: task.taskId,
    namespace: task.namespace,
    key: task.idempotencyKey,
    status: statusWords.word(task.status) ?? 'unknown',
    revision: Number(task.revision),
    generation: readGeneration(task.generation),
    lastEventNumber: Number(task.lastEventNumber),
    purged: task.purged,
  };
}

export function readTask(task: pb.Task): Task {
  const { application, lease, admission, parent, phase } = task;
  return {
    ...readTaskName(task),
    queue: task.queue,
    kind: application?.actionKind ?? '',
    args: parseJson(application?.argsJson ?? ''),
    argsJson: application?.argsJson ?? '',
    target: application && targetWords.word(application.executionTarget),
    capabilities: application?.requiredCapabilities ?? [],
    libraryRef: application?.libraryRef,
    libraryContentHash: application?.libraryContentHash,
    applicationHash: task.applicationHash,
    lifecycle: phaseWords.word(task.lifecycle),
    outcome: outcomeWords.word(task.outcome),
    aepState: aepWords.word(task.aepState),
    attempt: task.attempt,
    maxAttempts: task.maxAttempts,
    lease: lease && {
      workerName: lease.workerName,
      sessionAlias: lease.sessionAlias,
      epoch: Number(lease.epoch),
      expireTime: toDate(lease.expireTime),
    },
    cancellation: task.cancellation && readCancellation(task.cancellation),
    phase: {
      progress: phase?.progress,
      message: phase?.message ?? '',
      blockedReason: phase?.blockedReason ?? '',
    },
    reason: readReason(task.reason),
    error: task.error && readTaskError(task.error),
    result: parseJson(task.resultJson),
    resultJson: task.resultJson,
    resultRef: task.resultRef,
    outputTruncated: task.outputTruncated,
    exitCode: task.exitCode,
    errorDetail: task.errorDetail,
    invocationId: task.invocationId,
    admission: admission && {
      source: sourceWords.word(admission.source),
      scheduleId: admission.scheduleId,
      actor: readActor(admission.actor),
      principal: admission.principal,
    },
    parent: parent && {
      taskId: parent.taskId,
      generationId: parent.generationId,
      attachment: attachmentWords.word(parent.attachment),
    },
    timers: readTimers(task.timers),
    labels: task.labels,
    policy: task.policy && readPolicy(task.policy),
    createTime: toDate(task.createTime),
    queueTime: toDate(task.queueTime),
    startTime: toDate(task.startTime),
    finishTime: toDate(task.finishTime),
    updateTime: toDate(task.updateTime),
    checkpoint: parseJson(task.checkpointJson),
    checkpointJson: task.checkpointJson,
    resumeInput: parseJson(task.resumeInputJson),
    resumeInputJson: task.resumeInputJson,
  };
}

export function readGeneration(generation: pb.Generation | undefined): Generation {
  return { id: generation?.id ?? '', number: generation?.number ?? 0 };
}

export function readActor(actor: pb.Actor | undefined): Actor | undefined {
  return actor && { type: actorWords.word(actor.type) ?? 'unknown', id: actor.id };
}

export function readReason(reason: pb.Reason | undefined): Reason | undefined {
  return reason && { code: reason.code, summary: reason.summary, evidenceRefs: reason.evidenceRefs };
}

export function readTaskError(error: pb.TaskError): TaskErrorInfo {
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable ?? true,
    details: parseJson(error.detailsJson),
    detailsJson: error.detailsJson,
    truncated: error.truncated,
  };
}

export function readEventRef(event: pb.EventRef | undefined): EventRef | undefined {
  return event && { eventId: event.eventId, sequence: Number(event.sequence), eventNumber: Number(event.eventNumber) };
}

function readCancellation(cancellation: pb.Cancellation): TaskCancellation {
  return {
    state: cancellationWords.word(cancellation.state) ?? 'unknown',
    policy: cancellationPolicyWords.word(cancellation.policy) ?? 'unknown',
    requestTime: toDate(cancellation.requestTime),
    requestedBy: readActor(cancellation.requestedBy),
    deliveredTime: toDate(cancellation.deliveredTime),
    acknowledgedTime: toDate(cancellation.acknowledgedTime),
    ownerStopped: ownerWords.word(cancellation.ownerStopped),
    reason: readReason(cancellation.reason),
  };
}

function readTimers(timers: pb.TaskTimers | undefined): TaskTimers {
  return {
    nextDueTime: toDate(timers?.nextDueTime),
    deadline: toDate(timers?.deadline),
    startBy: toDate(timers?.startBy),
    notBefore: toDate(timers?.notBefore),
    acceptDeadline: toDate(timers?.acceptDeadline),
    attemptDeadline: toDate(timers?.attemptDeadline),
    progressDeadline: toDate(timers?.progressDeadline),
    retryTime: toDate(timers?.retryTime),
    graceDeadline: toDate(timers?.graceDeadline),
  };
}

function readPolicy(policy: pb.TaskPolicy): TaskPolicy {
  const { retry } = policy;
  return {
    priority: policy.priority,
    description: policy.description,
    timeoutMs: durationToMs(policy.timeout),
    startByMs: durationToMs(policy.startBy),
    notBefore: toDate(policy.notBefore),
    attemptTimeoutMs: durationToMs(policy.attemptTimeout),
    progressTimeoutMs: durationToMs(policy.progressTimeout),
    retry: retry && {
      maxAttempts: retry.maxAttempts,
      initialMs: durationToMs(retry.initial),
      multiplier: retry.multiplier,
      maximumMs: durationToMs(retry.maximum),
      jitter: retry.jitter,
      nonRetryableCodes: retry.nonRetryableCodes,
    },
    onUnsatisfied: policy.onUnsatisfied === undefined ? undefined : unsatisfiedWords.word(policy.onUnsatisfied),
    concurrencyKey: policy.concurrencyKey,
    retentionMs: durationToMs(policy.retention),
    dependsOn: policy.dependsOn.map(({ taskId, condition }) => ({
      taskId,
      condition: conditionWords.word(condition) ?? 'unknown',
    })),
  };
}
