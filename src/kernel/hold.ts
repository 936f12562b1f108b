/**
 * Suspending, resuming and skipping (lifecycle.md section 3): taking a generation off the queue without ending it,
 * putting it back, starting the next one, and deciding by policy that it shall never start.
 */
import { withReason } from './attempt-end.js';
import type { Draft } from './draft.js';
import { childrenActive, parentRefusal } from './family.js';
import { mayTake } from './edges.js';
import type { ResumeIntent, SkipIntent, SuspendIntent } from './intent.js';
import { reason } from './reason-codes.js';
import { malformed } from './refusal.js';
import { type Spoken, fenced, invalidTransition } from './settlement.js';
import { isTerminal } from './status.js';
import { APPLIED, type Verdict, refused } from './verdict.js';

/** By the holder the attempt is given back; by an operator the lease is revoked and the attempt spent. */
export function judgeSuspend(draft: Draft, intent: SuspendIntent, spoken: Spoken = {}): Verdict {
  const { record } = draft;
  if (!mayTake(record.status, 'suspended', 'suspend')) return refused(invalidTransition(record, 'suspended'));
  if (record.cancellation !== null) return refused(fenced(record, 'it can no longer be suspended'));
  const byHolder = intent.lease !== null;
  const { workerSeq } = spoken;
  const why = reason(byHolder ? 'run.suspended.worker' : 'run.suspended.operator', spoken.reason ?? undefined);
  draft.append(
    { type: 'reeve.task.suspended', data: { byHolder, wasRunning: record.status === 'running' } },
    { cause: withReason(intent.cause, why), to: 'suspended', ...(workerSeq === undefined ? {} : { workerSeq }) },
  );
  return APPLIED;
}

/** Suspended: the same generation again. Terminal, or with a new id: the next generation. */
export function judgeResume(draft: Draft, intent: ResumeIntent): Verdict {
  const { record } = draft;
  const terminal = isTerminal(record.status);
  const { inputJson, newGenerationId } = intent;
  if (!terminal && record.status !== 'suspended') return refused(invalidTransition(record, 'queued'));
  const cause = withReason(intent.cause, reason(inputJson === null ? 'run.resumed.operator' : 'run.resumed.input'));
  if (!terminal && newGenerationId === null) {
    const to = record.openDependencies ? 'waiting_dependency' : 'queued';
    draft.append({ type: 'reeve.task.resumed', data: { inputJson } }, { cause, to });
    return APPLIED;
  }
  if (newGenerationId === record.generationId) {
    return refused(malformed('new_generation_id', 'names the current generation; a new one needs an id of its own'));
  }
  if (newGenerationId !== null && intent.formerGenerationIds?.has(newGenerationId) === true) {
    return refused(malformed('new_generation_id', 'named a generation of this task before; each has an id of its own'));
  }
  // A new generation of an attached child joins its family anew, under the same rule as the first.
  const refusal = parentRefusal(draft) ?? childrenActive(draft);
  if (refusal !== null) return refused(refusal);
  draft.append(
    {
      type: 'reeve.task.generation_started',
      data: { generationId: newGenerationId ?? intent.spareGenerationId, inputJson },
    },
    { cause, to: 'queued', generation: record.generation + 1 },
  );
  return APPLIED;
}

export function judgeSkip(draft: Draft, intent: SkipIntent): Verdict {
  const { record } = draft;
  if (!mayTake(record.status, 'skipped', 'skip')) return refused(invalidTransition(record, 'skipped'));
  const data = { resultJson: null, ending: null, ownerStopped: record.ownerStopped };
  draft.append({ type: 'reeve.task.skipped', data }, { cause: intent.cause, to: 'skipped' });
  return APPLIED;
}
