/**
 * Committing with honesty about failure: a definite failure is passed on, an unknown outcome is found out before
 * anything else is written (lifecycle.md section 4, step 11; promise C9).
 */
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { Clock } from '../lib/clock.js';
import type { CommitBatch, PlanVerdict } from '../store/commit-plan.js';
import { StoreError } from '../store/store-error.js';
import type { TaskStore } from '../store/task-store.js';

/** How long callers wait for an unknown outcome to be found out before they are told so. */
export const UNKNOWN_OUTCOME_PATIENCE_MS = 5_000;
const FIRST_PROBE_DELAY_MS = 20;
const MAX_PROBE_DELAY_MS = 2_000;

export type CommitOutcome =
  | { readonly kind: 'verdicts'; readonly verdicts: readonly PlanVerdict[] }
  | { readonly kind: 'failed'; readonly error: StoreError };

/**
 * Resolves when the outcome is certain. `onOutage` is called when the store fails and when an unknown outcome is found
 * out; `onUnknown` again and again once patience has run out: the answers that follow then only bring the cache and
 * the listeners up to date.
 */
export async function commitBatch(
  store: TaskStore,
  clock: Clock,
  batch: CommitBatch,
  onOutage: () => void,
  onUnknown: (refusal: Refusal) => void,
): Promise<CommitOutcome> {
  try {
    return { kind: 'verdicts', verdicts: await store.commit(batch) };
  } catch (error) {
    onOutage();
    if (!(error instanceof StoreError)) return fatal(error);
    if (error.failure !== 'outcome_unknown') return { kind: 'failed', error };
  }
  const since = clock.monotonicMs();
  for (let delayMs = FIRST_PROBE_DELAY_MS; ; delayMs = Math.min(delayMs * 2, MAX_PROBE_DELAY_MS)) {
    try {
      const verdicts = await store.outcomeOf(batch);
      onOutage();
      if (verdicts !== null) return { kind: 'verdicts', verdicts };
      return { kind: 'failed', error: new StoreError('unavailable', 'the batch was not committed') };
    } catch (error) {
      if (!(error instanceof StoreError)) return fatal(error);
      if (error.failure === 'fatal') return { kind: 'failed', error };
    }
    if (clock.monotonicMs() - since > UNKNOWN_OUTCOME_PATIENCE_MS) {
      onUnknown(refuse('OUTCOME_UNKNOWN', 'whether this was committed is not known; retry with the same key'));
    }
    await new Promise<void>((resolve) => clock.after(delayMs, resolve));
  }
}

/** A defect inside the store: what it wrote is not known, and it cannot be asked. */
function fatal(error: unknown): CommitOutcome {
  return { kind: 'failed', error: new StoreError('fatal', 'the store broke its contract', { cause: error }) };
}
