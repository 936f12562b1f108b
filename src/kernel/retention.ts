/**
 * Retention: when a finished task may be purged (lifecycle.md section 9). Owns the moment alone: whether anybody still
 * needs the task is looked at when that moment has come, and checked once more by the write that takes it away.
 */
import type { TaskRecord } from './record.js';
import { type TerminalStatus, isTerminal } from './status.js';

/** How long the deployment keeps tasks that name no retention of their own, by how they ended; null: for ever. */
export type RetentionDefaults = Readonly<Record<TerminalStatus, number | null>>;

export const KEEP_FOR_EVER: RetentionDefaults = {
  completed: null,
  failed: null,
  timed_out: null,
  cancelled: null,
  skipped: null,
};

/**
 * No finished task is due earlier, whatever its retention: who waited for the end still has to read the result, and a
 * watch that broke has to come back before the horizon passes its cursor.
 */
export const MIN_KEPT_MS = 60_000;

/** Epoch ms from which the record may be purged; null while it lives, and for what is kept for ever. */
export function purgeAt(record: TaskRecord, defaults: RetentionDefaults): number | null {
  const { status, finishedAt, policy } = record;
  if (!isTerminal(status) || finishedAt === null) return null;
  const retentionMs = policy.retentionMs ?? defaults[status];
  return retentionMs === null ? null : finishedAt + Math.max(retentionMs, MIN_KEPT_MS);
}
