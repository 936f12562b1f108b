/**
 * What the store indexes about a record, as the kernel computes it: readiness, the one timer, the lease holder, and
 * when it may be purged.
 */
import { readyOrder } from '../kernel/placement.js';
import type { TaskRecord } from '../kernel/record.js';
import { KEEP_FOR_EVER, type RetentionDefaults, purgeAt } from '../kernel/retention.js';
import { nextDueAt } from '../kernel/timers.js';
import type { RecordIndex } from '../store/commit-plan.js';

export function placementIndex(record: TaskRecord, retention: RetentionDefaults = KEEP_FOR_EVER): RecordIndex {
  return {
    readyOrder: readyOrder(record),
    nextDueAt: nextDueAt(record),
    leaseSession: record.lease?.sessionId ?? null,
    purgeAt: purgeAt(record, retention),
  };
}
