/**
 * What the store indexes about a record, as the kernel computes it: readiness, the one timer, the lease holder, and the
 * permits of a task that needs any.
 */
import { NO_PERMITS, type Permits, permitStance } from '../kernel/permits.js';
import { readyOrder } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import { nextDueAt } from '../kernel/timers.js';
import type { RecordIndex } from '../store/commit-plan.js';

/** @param claims whether the write is a claim, which its task must hold its permits for. */
export function placementIndex(record: TaskRecord, needs: Permits = NO_PERMITS, claims = false): RecordIndex {
  const index = {
    readyOrder: readyOrder(record),
    nextDueAt: nextDueAt(record),
    leaseSession: record.lease?.sessionId ?? null,
  };
  return needs.length === 0 ? index : { ...index, permits: { needs, stance: permitStance(record), claims } };
}
