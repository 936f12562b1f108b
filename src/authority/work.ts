/**
 * Works: what callers have asked of the authority and are still waiting for. A work may be judged more than once,
 * when a unit it joined loses a race; it is answered exactly once.
 */
import type { Refusal } from '../kernel/refusal.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { Batch } from './batch.js';

/** After this many lost races a work is told CONTENTION. */
export const MAX_JUDGEMENTS = 8;

export type Judged = 'later' | undefined | void;

export interface Work {
  /** The task whose record must be at hand before it is judged; null when it needs none. */
  readonly taskId: string | null;
  /** About what it holds in memory while it waits, in bytes. */
  readonly weightBytes: number;
  /** Other tasks that judging it reads; absent for most. */
  readonly alsoNeeds?: readonly string[];
  /**
   * Judges on the batch's drafts and joins a unit, or answers at once when there is nothing to join. `later`: it would
   * change what another decision of this batch rests on, and is judged in the next one.
   */
  judge(batch: Batch): Judged;
  /** Loads what judging needs beyond the record; absent for most. */
  readonly prefetch?: () => Promise<void>;
  /** Taken also when the queue is full; their number is bounded by what they are about. */
  readonly essential?: true;
  /** Judged before what has been waiting longer. */
  readonly urgent?: boolean;
  /** The authority's own works wait for an unknown outcome however long it takes; callers are told. */
  readonly waitsForOutcome?: true;
  /** What a verdict other than `committed` means to it; `retry` judges it again. */
  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'retry' | 'answered';
  /** The last word when it cannot be judged: overload, store failure, contention, a defect. */
  refuse(refusal: Refusal): void;
}
