/**
 * Why a lease ended, as its worker is told: from the commit that ended it, or, for a worker that was away then, from
 * what its record says since.
 */
import type { Committed } from '../authority/publisher.js';
import type { TaskRecord } from '../kernel/record.js';
import type { LeaseLossCause } from './work-sink.js';

/** Why the worker has to be told that its lease ended; null when it ended the claim itself. */
export function lossCause(commit: Committed): LeaseLossCause | null {
  const ending = commit.events.find((event) => event.from === 'running');
  if (ending === undefined || ending.workerSeq !== null) return null;
  switch (ending.type) {
    case 'reeve.task.retry_scheduled':
      return retryLossCause(ending.data.cause, ending.cause.reason?.code);
    case 'reeve.task.suspended':
      return 'suspended';
    case 'task.timed_out':
      return ending.cause.actor.type === 'parent' ? 'parent' : 'deadline';
    case 'task.cancelled':
    case 'task.failed':
      return terminalLossCause(ending.cause.reason?.code);
    default:
      return 'superseded';
  }
}

function retryLossCause(cause: string, code: string | undefined): LeaseLossCause {
  if (cause === 'release') return 'released';
  if (cause === 'hand_back') return 'not_accepted';
  if (code === 'run.retry.no_progress') return 'no_progress';
  if (code === 'run.retry.attempt_timed_out') return 'attempt_timed_out';
  return code === 'run.requeued.claim_forgotten' ? 'not_held' : 'session_expired';
}

function terminalLossCause(code: string | undefined): LeaseLossCause {
  switch (code) {
    case 'run.cancelled.parent':
    case 'run.failed.parent':
      return 'parent';
    case 'run.cancelled.grace_expired':
      return 'cancel_grace';
    case 'run.cancelled.deadline':
      return 'deadline';
    case 'run.failed.no_progress':
      return 'no_progress';
    case 'run.failed.attempt_timed_out':
      return 'attempt_timed_out';
    case 'run.failed.undeliverable':
      return 'not_accepted';
    case 'run.failed.lease_attempts_exhausted':
    case 'run.cancelled.owner_lost':
      return 'session_expired';
    default:
      return 'superseded';
  }
}

/** Why the record says that nobody holds its last claim any more; `superseded` where a later claim hides it. */
export function lossCauseOf(record: TaskRecord, epoch: number): LeaseLossCause {
  if (record.lease !== null || record.epoch !== epoch) return 'superseded';
  const code = record.reason?.code;
  switch (record.status) {
    case 'suspended':
      return 'suspended';
    case 'timed_out':
      return code === 'run.timed_out.parent' ? 'parent' : 'deadline';
    case 'cancelled':
    case 'failed':
      return terminalLossCause(code);
    case 'queued':
    case 'retry_wait':
      return requeuedLossCause(code);
    default:
      return 'superseded';
  }
}

function requeuedLossCause(code: string | undefined): LeaseLossCause {
  switch (code) {
    case 'run.requeued.released':
      return 'released';
    case 'run.requeued.claim_undelivered':
      return 'not_accepted';
    case 'run.requeued.claim_forgotten':
      return 'not_held';
    case 'run.requeued.lease_lost':
      return 'session_expired';
    case 'run.retry.no_progress':
      return 'no_progress';
    case 'run.retry.attempt_timed_out':
      return 'attempt_timed_out';
    default:
      return 'superseded';
  }
}
