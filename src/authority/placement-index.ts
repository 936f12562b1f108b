/**
 * What the store indexes about a record, as the kernel computes it: readiness, the one timer, the lease holder.
 */
import { readyOrder } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import { nextDueAt } from '../kernel/timers.js';
import type { RecordIndex } from '../store/commit-plan.js';

export function placementIndex(record: TaskRecord): RecordIndex {
  return {
    readyOrder: readyOrder(record),
    nextDueAt: nextDueAt(record),
    leaseSession: record.lease?.sessionId ?? null,
  };
}
