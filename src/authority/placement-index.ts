/**
 * What the store indexes about a record, as the kernel computes it under the configuration in force: readiness, the one
 * timer, the lease holder, when it may be purged, and the permits of a task that needs any.
 */
import type { TaskEvent } from '../kernel/event.js';
import { NO_PERMITS, type PermitRules, type Permits, permitLimit, permitStance, permitsOf } from '../kernel/permits.js';
import { readyOrder } from '../kernel/placement.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import { KEEP_FOR_EVER, type RetentionDefaults, purgeAt } from '../kernel/retention.js';
import { nextDueAt } from '../kernel/timers.js';
import type { RecordIndex } from '../store/commit-plan.js';

/** What of the configuration a record's place in the store depends on. */
export interface IndexRules {
  readonly permitsOf: (admission: Admission) => Permits;
  /** Of the permit of this name; null when nobody needs it. */
  readonly permitLimit: (name: string) => number | null;
  /** Of tasks that name no retention of their own. */
  readonly retention: RetentionDefaults;
}

export const PLAIN_RULES: IndexRules = {
  permitsOf: () => NO_PERMITS,
  permitLimit: () => null,
  retention: KEEP_FOR_EVER,
};

export function indexRules(permits: PermitRules, retention: RetentionDefaults = KEEP_FOR_EVER): IndexRules {
  return {
    permitsOf: (admission) => permitsOf(admission, permits),
    permitLimit: (name) => permitLimit(name, permits),
    retention,
  };
}

/** Ready for a worker as it is: a task that needs permits is told to be so by the store, once it has passed them. */
export function isReady(record: TaskRecord, rules: IndexRules): boolean {
  return readyOrder(record) !== null && rules.permitsOf(record.admission).length === 0;
}

/** @param events those of the write: where a claim is among them, there must be room in its permits. */
export function placementIndex(
  record: TaskRecord,
  rules: IndexRules = PLAIN_RULES,
  events: readonly TaskEvent[] = [],
): RecordIndex {
  const needs = rules.permitsOf(record.admission);
  const index = {
    readyOrder: readyOrder(record),
    nextDueAt: nextDueAt(record),
    leaseSession: record.lease?.sessionId ?? null,
    purgeAt: purgeAt(record, rules.retention),
  };
  if (needs.length === 0) return index;
  const claims = events.some(({ type }) => type === 'reeve.task.claimed');
  return { ...index, permits: { needs, stance: permitStance(record), claims } };
}
