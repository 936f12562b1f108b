/**
 * What a failure of the store means to whoever asked (lifecycle.md section 4, step 11). A write whose end is not known
 * says so; a read that failed changed nothing, whatever the store will be good for afterwards.
 */
import { type Refusal, refuse } from '../kernel/refusal.js';
import { StoreError } from '../store/store-error.js';

/** After a commit that failed. */
export function commitRefusal({ failure }: StoreError): Refusal {
  return failure === 'unavailable'
    ? storeUnavailable()
    : refuse('OUTCOME_UNKNOWN', 'whether this was committed is not known; retry with the same key');
}

/** After a read that failed: nothing was changed. Anything but a StoreError is a defect. */
export function storeRefusal(error: unknown, taskId: string | null = null): Refusal {
  if (!(error instanceof StoreError)) return refuse('INTERNAL', 'an invariant was broken; nothing was changed');
  return error.failure === 'damaged' && taskId !== null ? recordDamaged(taskId) : storeUnavailable();
}

export function storeUnavailable(): Refusal {
  return refuse('STORE_UNAVAILABLE', 'the store does not answer; nothing was changed; retry with the same key');
}

/** What stands where a plan would write is damaged: of a task, or of the key that it would take. */
export function writeDamaged(taskId: string | null): Refusal {
  if (taskId !== null) return recordDamaged(taskId);
  return refuse('RECORD_DAMAGED', 'what the store holds of this cannot be trusted; it is refused until repaired');
}

export function recordDamaged(taskId: string): Refusal {
  return refuse('RECORD_DAMAGED', 'the stored record of this task cannot be trusted; it is refused until repaired', {
    task_id: taskId,
  });
}

export function contention(): Refusal {
  return refuse('CONTENTION', 'other writers kept winning the race; retry with the same key');
}
