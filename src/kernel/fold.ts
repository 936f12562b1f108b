/**
 * Folding: the record is the fold of its events over the admission document, and nothing else (promise C3).
 * `applyEvent` never refuses: what reaches it was decided. It must stay total and free of time and chance.
 */
import type { AepState } from './aep.js';
import type { OutputData, TaskEvent, TerminalData } from './event.js';
import type { Admission, EndedLease, Lease, TaskRecord } from './record.js';
import type { TerminalStatus } from './status.js';

/** The record after the first event: `task.submitted`, or where all before was lost, what was accepted instead. */
export function beginRecord(admission: Admission, event: TaskEvent): TaskRecord {
  if (event.type === 'reeve.task.repaired' && event.data.accepted !== null) {
    return { admission, ...event.data.accepted, lastEvent: event.number, updatedAt: event.at };
  }
  if (event.type !== 'task.submitted') throw new Error(`a history begins with task.submitted, not ${event.type}`);
  return {
    admission,
    policy: admission.policy,
    generation: event.generation,
    generationId: event.data.generationId,
    generationStartedAt: event.at,
    revision: event.revision ?? 0,
    lastEvent: event.number,
    status: 'queued',
    everClaimed: false,
    aep: 'submitted',
    attempt: 0,
    epoch: 0,
    handBacks: 0,
    lease: null,
    endedLease: null,
    notBeforeAt: event.data.notBeforeAt,
    queuedAt: event.data.notBeforeAt ?? event.at,
    retryAt: null,
    cancellation: null,
    ownerStopped: true,
    progress: null,
    message: null,
    blockedReason: null,
    ending: null,
    resultEvent: null,
    checkpointEvent: null,
    inputEvent: null,
    outputTruncated: false,
    hasChildren: false,
    hasWaiters: false,
    openDependencies: false,
    reason: null,
    startedAt: null,
    finishedAt: null,
    updatedAt: event.at,
  };
}

/** The whole history folded; null for an empty one. */
export function fold(admission: Admission, events: readonly TaskEvent[]): TaskRecord | null {
  let record: TaskRecord | null = null;
  for (const event of events) record = record === null ? beginRecord(admission, event) : applyEvent(record, event);
  return record;
}

export function applyEvent(before: TaskRecord, event: TaskEvent): TaskRecord {
  const base: TaskRecord = {
    ...before,
    revision: event.revision ?? before.revision,
    lastEvent: event.number,
    status: event.to ?? before.status,
    aep: event.aep ?? before.aep,
    updatedAt: event.at,
  };
  switch (event.type) {
    case 'task.submitted':
      throw new Error('task.submitted can only be the first event of a history');
    case 'reeve.task.generation_started':
      return newGeneration(base, event.generation, event.data.generationId, event.data.inputJson !== null, event);
    case 'reeve.task.claimed':
      return {
        ...base,
        everClaimed: true,
        attempt: before.attempt + 1,
        epoch: event.epoch ?? before.epoch,
        // A claim after the delay ends it, also one that came before the timer did.
        notBeforeAt: null,
        lease: {
          sessionId: event.data.sessionId,
          worker: event.data.worker,
          sessionTtlMs: event.data.sessionTtlMs,
          epoch: event.epoch ?? before.epoch,
          claimedAt: event.at,
          acceptBy: event.data.acceptBy,
          acceptedAt: null,
          lastWordAt: event.at,
          attemptState: 'submitted',
          eventSeq: 0,
          outputs: 0,
          outputBytes: 0,
          outputTruncated: false,
        },
        progress: null,
        message: null,
        blockedReason: null,
        outputTruncated: false,
        reason: null,
      };
    case 'reeve.task.followed':
      return event.data.by === 'child' ? { ...base, hasChildren: true } : { ...base, hasWaiters: true };
    case 'reeve.task.held':
      return { ...base, openDependencies: true, reason: event.cause.reason };
    case 'reeve.task.dependencies_met':
      return dependenciesMet(before, base, event);
    case 'task.accepted':
      return { ...base, handBacks: 0, lease: word(before.lease, event, 'accepted', { acceptedAt: event.at }) };
    case 'task.started':
      return {
        ...base,
        startedAt: before.startedAt ?? event.at,
        blockedReason: null,
        lease: word(before.lease, event, 'started', {}),
      };
    case 'task.progress':
      return {
        ...base,
        progress: event.data.progress ?? before.progress,
        message: event.data.message ?? before.message,
        blockedReason: null,
        lease: word(before.lease, event, 'progress', {}),
      };
    case 'task.output':
      return {
        ...base,
        outputTruncated: before.outputTruncated || event.data.truncated,
        lease: word(before.lease, event, 'output', {
          outputs: (before.lease?.outputs ?? 0) + 1,
          outputBytes: (before.lease?.outputBytes ?? 0) + outputBytes(event.data),
          outputTruncated: (before.lease?.outputTruncated ?? false) || event.data.truncated,
        }),
      };
    case 'task.blocked':
      return { ...base, blockedReason: event.data.reason, lease: word(before.lease, event, 'blocked', {}) };
    case 'reeve.task.checkpoint':
      return { ...base, checkpointEvent: event.number, lease: word(before.lease, event, null, {}) };
    case 'reeve.task.retry_scheduled': {
      const { retryAt, cause, attemptGivenBack, ending } = event.data;
      return {
        ...base,
        attempt: attemptGivenBack ? before.attempt - 1 : before.attempt,
        handBacks: cause === 'hand_back' ? before.handBacks + 1 : 0,
        lease: null,
        endedLease: ended(before, event),
        retryAt,
        ownerStopped: cause === 'failure' || cause === 'release',
        blockedReason: null,
        ending: ending ?? before.ending,
        reason: event.cause.reason,
      };
    }
    case 'reeve.task.requeued':
      return {
        ...base,
        retryAt: null,
        queuedAt: event.data.keepsPlace ? (before.queuedAt ?? event.at) : waitsFrom(before.notBeforeAt, event.at),
        reason: event.cause.reason,
      };
    case 'reeve.task.ready':
      return { ...base, notBeforeAt: null };
    case 'reeve.task.suspended':
      return {
        ...base,
        attempt: event.data.byHolder ? before.attempt - 1 : before.attempt,
        lease: null,
        endedLease: ended(before, event),
        retryAt: null,
        ownerStopped: event.data.wasRunning ? event.data.byHolder : before.ownerStopped,
        reason: event.cause.reason,
      };
    case 'reeve.task.resumed':
      return {
        ...base,
        queuedAt: waitsFrom(before.notBeforeAt, event.at),
        inputEvent: event.data.inputJson === null ? before.inputEvent : event.number,
        reason: event.cause.reason,
      };
    case 'reeve.task.policy_updated': {
      const { policy, notBeforeAt } = event.data;
      const moved = before.status === 'queued' && notBeforeAt !== before.notBeforeAt;
      return { ...base, policy, notBeforeAt, queuedAt: moved ? waitsFrom(notBeforeAt, event.at) : before.queuedAt };
    }
    case 'task.cancel.requested':
      return {
        ...base,
        cancellation: {
          requestedAt: event.at,
          requestedBy: event.cause.actor,
          principal: event.cause.principal,
          reason: event.cause.reason,
          eventNumber: event.number,
          revision: event.revision ?? before.revision,
          graceEndsAt: event.data.graceEndsAt,
          deliveredAt: null,
          acknowledgedAt: null,
        },
      };
    case 'reeve.task.cancel_hastened': {
      const { graceEndsAt } = event.data;
      return { ...base, cancellation: before.cancellation && { ...before.cancellation, graceEndsAt } };
    }
    case 'reeve.task.cancel_delivered':
      return { ...base, cancellation: before.cancellation && { ...before.cancellation, deliveredAt: event.at } };
    case 'reeve.task.cancel_acknowledged':
      return { ...base, cancellation: before.cancellation && { ...before.cancellation, acknowledgedAt: event.at } };
    case 'task.completed':
      return settle(base, event, event.data, 'completed');
    case 'task.failed':
      return settle(base, event, event.data, 'failed');
    case 'task.timed_out':
      return settle(base, event, event.data, 'timed_out');
    case 'task.cancelled':
      return settle(base, event, event.data, 'cancelled');
    case 'reeve.task.skipped':
      return settle(base, event, event.data, 'skipped');
    case 'reeve.task.repaired':
      return event.data.accepted === null ? base : beginRecord(before.admission, event);
  }
}

/** A task with a delayed start waits from the moment it may start. */
function waitsFrom(notBeforeAt: number | null, at: number): number {
  return Math.max(at, notBeforeAt ?? at);
}

function settle(base: TaskRecord, event: TaskEvent, data: TerminalData, status: TerminalStatus): TaskRecord {
  return {
    ...base,
    status,
    lease: null,
    endedLease: ended(base, event),
    retryAt: null,
    notBeforeAt: null,
    blockedReason: null,
    openDependencies: false,
    ownerStopped: data.ownerStopped,
    ending: data.ending,
    resultEvent: data.resultJson === null ? null : event.number,
    reason: event.cause.reason,
    finishedAt: event.at,
  };
}

function newGeneration(
  base: TaskRecord,
  generation: number,
  generationId: string,
  hasInput: boolean,
  event: TaskEvent,
): TaskRecord {
  return {
    ...base,
    generation,
    generationId,
    generationStartedAt: event.at,
    everClaimed: false,
    attempt: 0,
    handBacks: 0,
    lease: null,
    notBeforeAt: null,
    queuedAt: event.at,
    retryAt: null,
    cancellation: null,
    ownerStopped: true,
    progress: null,
    message: null,
    blockedReason: null,
    ending: null,
    resultEvent: null,
    checkpointEvent: null,
    inputEvent: hasInput ? event.number : null,
    outputTruncated: false,
    hasChildren: false,
    hasWaiters: false,
    openDependencies: false,
    reason: event.cause.reason,
    startedAt: null,
    finishedAt: null,
  };
}

/** A task that waited is queued from now on, or from when it may start; one that is suspended only learns of it. */
function dependenciesMet(before: TaskRecord, base: TaskRecord, event: TaskEvent): TaskRecord {
  const met = { ...base, openDependencies: false };
  if (event.to === null) return met;
  const { notBeforeAt } = before;
  const delayed = notBeforeAt !== null && notBeforeAt > event.at;
  return {
    ...met,
    notBeforeAt: delayed ? notBeforeAt : null,
    queuedAt: delayed ? notBeforeAt : event.at,
    reason: event.cause.reason,
  };
}

/** The lease after a word of its holder; `state` null leaves the attempt where it is (checkpoints). */
function word(lease: Lease | null, event: TaskEvent, state: AepState | null, change: Partial<Lease>): Lease | null {
  if (lease === null) return null;
  return {
    ...lease,
    ...change,
    attemptState: state ?? lease.attemptState,
    eventSeq: event.workerSeq ?? lease.eventSeq,
    lastWordAt: event.at,
  };
}

function ended(before: TaskRecord, event: TaskEvent): EndedLease | null {
  const { lease } = before;
  if (lease === null) return before.endedLease;
  return { epoch: lease.epoch, sessionId: lease.sessionId, eventSeq: event.workerSeq ?? lease.eventSeq };
}

function outputBytes({ outputJson, binaryBase64, redactedBytes }: OutputData): number {
  return redactedBytes ?? (outputJson?.length ?? 0) + (binaryBase64?.length ?? 0);
}
