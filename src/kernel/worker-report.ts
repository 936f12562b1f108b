/**
 * What a worker says about its claim, judged event by event in the order of its own numbers
 * (lifecycle.md sections 2, 4.5 and 7). One report is one frame's worth for one task: its legal events become one
 * record write. A refused event uses up its number and changes nothing; what a stale worker says is never applied.
 */
import { isLegalAep } from './aep.js';
import type { AepState } from './aep.js';
import { endFailedAttempt } from './attempt-end.js';
import { holds, leaseLost } from './decide.js';
import type { Draft } from './draft.js';
import { judgeSuspend } from './hold.js';
import type { WorkerEvent, WorkerReport, WorkerSaying } from './intent.js';
import { type Refusal, refuse } from './refusal.js';
import { settleCancelled, settleCompleted, settleTimedOut } from './settlement.js';
import { APPLIED, type Verdict, refused } from './verdict.js';

/** Outputs of one attempt beyond these are dropped and the task says `output_truncated`. */
export const MAX_OUTPUTS_PER_ATTEMPT = 10_000;
export const MAX_OUTPUT_BYTES_PER_ATTEMPT = 16 * 1024 * 1024;

export interface RefusedWorkerEvent {
  readonly seq: number;
  readonly refusal: Refusal;
}

export interface ReportAnswer {
  /** Every number up to here has its answer. */
  readonly judgedThrough: number;
  readonly refused: readonly RefusedWorkerEvent[];
}

export function judgeReport(draft: Draft, report: WorkerReport): ReportAnswer {
  const rejected: RefusedWorkerEvent[] = [];
  let mark = answeredMark(draft, report);
  for (const event of report.events) {
    if (event.seq <= mark) continue;
    if (!isCurrent(draft, report)) {
      rejected.push({ seq: event.seq, refusal: leaseLost(draft.record) });
      continue;
    }
    if (event.seq > mark + 1) {
      rejected.push({ seq: event.seq, refusal: gap(draft, mark + 1) });
      break;
    }
    mark = event.seq;
    const verdict = judgeSaying(draft, event, report);
    if (verdict.kind === 'refused') rejected.push({ seq: event.seq, refusal: verdict.refusal });
  }
  return { judgedThrough: mark, refused: rejected };
}

function isCurrent(draft: Draft, report: WorkerReport): boolean {
  return draft.record.generation === report.generation && holds(draft.record, report);
}

/** The highest number of this epoch that has its answer, from the lease, the lease before, or the worker's own word. */
function answeredMark(draft: Draft, report: WorkerReport): number {
  const { lease, endedLease } = draft.record;
  const known = lease?.epoch === report.epoch ? lease : endedLease?.epoch === report.epoch ? endedLease : null;
  const recorded = known !== null && known.sessionId === report.sessionId ? known.eventSeq : 0;
  return Math.max(recorded, report.answeredThrough);
}

function judgeSaying(draft: Draft, event: WorkerEvent, report: WorkerReport): Verdict {
  const { saying, seq: workerSeq } = event;
  const { cause } = report;
  const lease = draft.record.lease;
  if (lease === null) return refused(leaseLost(draft.record));
  const target = attemptTarget(saying);
  if (target !== null && !isLegalAep(lease.attemptState, target)) {
    return refused(illegal(draft, lease.attemptState, saying.kind));
  }
  switch (saying.kind) {
    case 'malformed':
      return refused(saying.refusal);
    case 'accepted':
      draft.append({ type: 'task.accepted', data: {} }, { cause, workerSeq });
      return APPLIED;
    case 'started':
      draft.append({ type: 'task.started', data: {} }, { cause, workerSeq });
      return APPLIED;
    case 'progress': {
      const { progress, message } = saying;
      draft.append({ type: 'task.progress', data: { progress, message } }, { cause, workerSeq });
      return APPLIED;
    }
    case 'output':
      return judgeOutput(draft, saying, cause, workerSeq);
    case 'blocked':
      draft.append({ type: 'task.blocked', data: { reason: saying.reason } }, { cause, workerSeq });
      return APPLIED;
    case 'checkpoint': {
      const { checkpointJson } = saying;
      draft.append({ type: 'reeve.task.checkpoint', data: { checkpointJson } }, { cause, workerSeq });
      return APPLIED;
    }
    case 'completed':
      return settleCompleted(draft, {
        resultJson: saying.resultJson,
        ending: saying.ending,
        authoritativeEvent: null,
        cause,
        workerSeq,
      });
    case 'cancelled':
      return settleCancelled(draft, saying.ending, cause, { workerSeq, reason: saying.reason });
    case 'timed_out':
      return settleTimedOut(draft, saying.ending, cause, workerSeq);
    case 'suspended':
      return judgeSuspend(draft, { kind: 'suspend', lease: report, cause }, { workerSeq, reason: saying.reason });
    case 'failed':
      endFailedAttempt(draft, {
        ending: saying.ending,
        cause,
        retryCause: 'failure',
        retryReason: 'run.retry.attempt_failed',
        failedReason: 'run.failed.attempts_exhausted',
        byOwner: true,
        retryAfterMs: saying.retryAfterMs,
        chance: report.chance,
        workerSeq,
      });
      return APPLIED;
  }
}

function judgeOutput(
  draft: Draft,
  saying: Extract<WorkerSaying, { kind: 'output' }>,
  cause: WorkerReport['cause'],
  workerSeq: number,
): Verdict {
  const { lease } = draft.record;
  // Beyond the limit the first output leaves a truncated mark; later ones are answered and dropped.
  if (lease === null || lease.outputTruncated) return APPLIED;
  const size = (saying.output.outputJson?.length ?? 0) + (saying.output.binaryBase64?.length ?? 0);
  const over = lease.outputs >= MAX_OUTPUTS_PER_ATTEMPT || lease.outputBytes + size > MAX_OUTPUT_BYTES_PER_ATTEMPT;
  const output = over
    ? { outputJson: null, binaryBase64: null, contentType: saying.output.contentType, truncated: true }
    : saying.output;
  draft.append({ type: 'task.output', data: output }, { cause, workerSeq });
  return APPLIED;
}

/** Where a saying would move the attempt in the AEP table; null when it has no place there. */
function attemptTarget(saying: WorkerSaying): AepState | null {
  switch (saying.kind) {
    case 'malformed':
    case 'checkpoint':
    case 'suspended':
      return null;
    case 'accepted':
    case 'started':
    case 'progress':
    case 'output':
    case 'blocked':
    case 'completed':
    case 'failed':
    case 'cancelled':
    case 'timed_out':
      return saying.kind;
  }
}

function illegal(draft: Draft, state: AepState, kind: string): Refusal {
  return refuse('ILLEGAL_EVENT', `the AEP table has no ${kind} after ${state}`, {
    task_id: draft.record.admission.taskId,
    attempt_state: state,
    event: kind,
  });
}

function gap(draft: Draft, expected: number): Refusal {
  return refuse('EVENT_GAP', `event ${String(expected)} of this claim is expected next`, {
    task_id: draft.record.admission.taskId,
    expected_event_seq: String(expected),
  });
}
