/**
 * The order of judgement (lifecycle.md section 4, steps 3 to 9): the first rule that applies is the answer.
 * Pure: no clock, no I/O, no randomness. Steps 1, 2, 10 and 11 belong to the edge, the ledger and the committer.
 */
import { endLostAttempt, handBack, release } from './attempt-end.js';
import { judgeCancelRequest, judgeReceipt } from './cancellation.js';
import { Draft, type FamilyContext, NO_FAMILY } from './draft.js';
import { mayTake } from './edges.js';
import type { TaskEvent } from './event.js';
import { forgedPropagation, parentRefusal } from './family.js';
import { judgeResume, judgeSkip, judgeSuspend } from './hold.js';
import type { ClaimIntent, Guards, HandBackIntent, Intent, LeaseProof } from './intent.js';
import { NO_GUARDS } from './intent.js';
import { permitRefusal } from './permits.js';
import { isRegistered } from './placement.js';
import { judgePolicyUpdate } from './policy-update.js';
import type { TaskRecord } from './record.js';
import { reason } from './reason-codes.js';
import { actionKindUnregistered, malformed, refuse } from './refusal.js';
import { invalidTransition, judgeSettle } from './settlement.js';
import { isTerminal } from './status.js';
import { judgeTick } from './tick.js';
import { APPLIED, UNCHANGED, type Verdict, refused } from './verdict.js';

export type Decision =
  | { readonly kind: 'applied'; readonly record: TaskRecord; readonly events: readonly TaskEvent[] }
  | Exclude<Verdict, { readonly kind: 'applied' }>;

/** One intent on one record, as values: the events it makes and the record they leave, or why not. */
export function decide(
  record: TaskRecord,
  intent: Intent,
  now: number,
  guards: Guards = NO_GUARDS,
  family: FamilyContext = NO_FAMILY,
): Decision {
  const draft = Draft.of(record, now);
  draft.parent = family.parent;
  draft.liveChildren = family.liveChildren;
  draft.permitAwaited = family.permitAwaited;
  const verdict = judge(draft, intent, guards);
  return verdict.kind === 'applied' ? { kind: 'applied', record: draft.record, events: draft.events } : verdict;
}

/** One intent on a draft that may already carry others. Anything but `applied` leaves the draft untouched. */
export function judge(draft: Draft, intent: Intent, guards: Guards = NO_GUARDS): Verdict {
  const { record } = draft;
  if (intent.kind === 'skip' && intent.cause.reason === null) {
    return refused(malformed('cause.reason', 'a skip needs a reason'));
  }
  if (guards.generationId !== null && guards.generationId !== record.generationId)
    return refused(staleGeneration(record));
  const conflict = brokenGuard(record, guards, intent);
  if (conflict !== null) return conflict;
  if (intent.kind === 'settle' && intent.lease === null && record.status === 'running') {
    return refused(
      refuse(
        'LEASE_REQUIRED',
        'a running task is settled by its lease holder; to end it from outside, Cancel with a grace',
        {
          task_id: record.admission.taskId,
        },
      ),
    );
  }
  if ((intent.kind === 'receipt' || intent.kind === 'release') && !holds(record, intent.lease)) {
    return refused(leaseLost(record));
  }
  if (isTerminal(record.status) && intent.kind !== 'resume')
    return isInternal(intent) ? UNCHANGED : refused(terminal(record));
  // What a parent's end does to its children is read from the parent's record; no intent says so.
  if (intent.kind !== 'tick' && intent.cause.actor.type === 'parent') return refused(forgedPropagation(record));
  return judgeLive(draft, intent);
}

function judgeLive(draft: Draft, intent: Intent): Verdict {
  switch (intent.kind) {
    case 'claim':
      return judgeClaim(draft, intent);
    case 'settle':
      return judgeSettle(draft, intent);
    case 'suspend':
      return judgeSuspend(draft, intent);
    case 'resume':
      return judgeResume(draft, intent);
    case 'request_cancellation':
      return judgeCancelRequest(draft, intent);
    case 'skip':
      return judgeSkip(draft, intent);
    case 'update_policy':
      return judgePolicyUpdate(draft, intent);
    case 'tick':
      return judgeTick(draft, intent);
    case 'session_lost':
      if (draft.record.lease?.sessionId !== intent.sessionId) return UNCHANGED;
      endLostAttempt(draft, 'run.requeued.lease_lost', intent.cause.causation);
      return APPLIED;
    case 'receipt':
      return judgeReceipt(draft, intent);
    case 'release':
      return judgeRelease(draft, intent);
    case 'hand_back':
      if (!holds(draft.record, intent.lease)) return UNCHANGED;
      return judgeHandBack(draft, intent);
  }
}

/** The holder's lease is the one named. A claim that was accepted was delivered, whatever its stream said. */
function judgeHandBack(draft: Draft, { why, cause }: HandBackIntent): Verdict {
  if (why === 'forgotten') {
    endLostAttempt(draft, 'run.requeued.claim_forgotten', cause.causation);
    return APPLIED;
  }
  if (draft.record.lease?.acceptedAt !== null) return UNCHANGED;
  handBack(draft, reason('run.requeued.claim_undelivered'), cause.causation);
  return APPLIED;
}

function judgeClaim(draft: Draft, intent: ClaimIntent): Verdict {
  const { record, now } = draft;
  if (!mayTake(record.status, 'running', 'claim')) return refused(invalidTransition(record, 'running'));
  if (record.notBeforeAt !== null && record.notBeforeAt > now) {
    return refused(
      refuse('INVALID_TRANSITION', 'the start of this task is delayed', {
        task_id: record.admission.taskId,
        not_before_ms: String(record.notBeforeAt),
      }),
    );
  }
  if (draft.permitAwaited !== null) return refused(permitRefusal(record.admission.taskId, draft.permitAwaited));
  const { actionKind } = record.admission.application;
  if (intent.rules !== undefined && !isRegistered(actionKind, intent.rules)) {
    return refused(actionKindUnregistered(actionKind));
  }
  const orphaned = parentRefusal(draft);
  if (orphaned !== null) return refused(orphaned);
  draft.append(
    {
      type: 'reeve.task.claimed',
      data: {
        sessionId: intent.sessionId,
        worker: intent.worker,
        sessionTtlMs: intent.sessionTtlMs,
        acceptBy: now + intent.acceptTimeoutMs,
      },
    },
    { cause: intent.cause, to: 'running', epoch: record.epoch + 1 },
  );
  return APPLIED;
}

function judgeRelease(draft: Draft, intent: Extract<Intent, { kind: 'release' }>): Verdict {
  const { checkpointJson, cause } = intent;
  if (checkpointJson !== null) draft.append({ type: 'reeve.task.checkpoint', data: { checkpointJson } }, { cause });
  release(draft, cause);
  return APPLIED;
}

function brokenGuard(record: TaskRecord, guards: Guards, intent: Intent): Verdict | null {
  if (guards.fromStatus !== null && guards.fromStatus !== record.status) {
    return { kind: 'conflict', guard: 'FROM_STATUS', observed: record.status };
  }
  if (guards.expectedRevision !== null && guards.expectedRevision !== record.revision) {
    return { kind: 'conflict', guard: 'REVISION', observed: String(record.revision) };
  }
  const named = intent.kind === 'settle' || intent.kind === 'suspend' ? intent.lease : (guards.lease ?? null);
  if (named !== null && !holds(record, named)) {
    return { kind: 'conflict', guard: 'LEASE', observed: record.lease === null ? 'none' : String(record.lease.epoch) };
  }
  return null;
}

/** Whether the proof names the lease in force. A null session was proved by its lease token. */
export function holds(record: TaskRecord, proof: LeaseProof): boolean {
  const { lease } = record;
  return (
    lease !== null && lease.epoch === proof.epoch && (proof.sessionId === null || proof.sessionId === lease.sessionId)
  );
}

/** Intents of the authority's own: that their task ended meanwhile is no error. */
function isInternal(intent: Intent): boolean {
  return intent.kind === 'tick' || intent.kind === 'session_lost' || intent.kind === 'hand_back';
}

export function leaseLost(record: TaskRecord): ReturnType<typeof refuse> {
  return refuse('LEASE_LOST', 'the lease named is not the one in force; stop this attempt', {
    task_id: record.admission.taskId,
    current_generation: String(record.generation),
    current_epoch: String(record.epoch),
    status: record.status,
  });
}

function terminal(record: TaskRecord): ReturnType<typeof refuse> {
  return refuse('TERMINAL_GENERATION', `this generation ended as ${record.status}; Resume starts the next`, {
    task_id: record.admission.taskId,
    status: record.status,
    generation: String(record.generation),
  });
}

function staleGeneration(record: TaskRecord): ReturnType<typeof refuse> {
  return refuse('STALE_GENERATION', 'the generation named is not the current one', {
    task_id: record.admission.taskId,
    current_generation_id: record.generationId,
    current_generation: String(record.generation),
  });
}
