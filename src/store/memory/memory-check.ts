/**
 * The check phase of the memory store, in the order of answers that sqlite/plan-check.ts documents: keys first, then
 * records, families, permits and sessions. It writes nothing. `changed`: the tasks that the batch has written so far.
 */
import type { CommitPlan, PlanVerdict } from '../commit-plan.js';
import { brokenLink, isNeeded } from '../family-guards.js';
import { alignmentsOf } from '../permit-rows.js';
import { sessionIdOf, taskIdOf } from '../plan-shape.js';
import { sessionAfter, sessionHolds } from '../session-guards.js';
import { fingerprintOf } from './memory-audit.js';
import type { MemoryTables } from './memory-tables.js';

type Lost = Exclude<PlanVerdict, { readonly kind: 'committed' }>;

export function checkPlan(tables: MemoryTables, plan: CommitPlan, changed: ReadonlySet<string>): Lost | null {
  return (
    ledger(tables, plan) ??
    keys(tables, plan) ??
    records(tables, plan, changed) ??
    families(tables, plan) ??
    permits(tables, plan) ??
    purge(tables, plan) ??
    sessions(tables, plan) ??
    repairs(tables, plan)
  );
}

function ledger(tables: MemoryTables, plan: CommitPlan): Lost | null {
  for (const { taskId, intentKey } of plan.ledger) {
    const task = tables.tasks.get(taskId);
    if (task === undefined) {
      if (plan.records.some((write) => write.kind === 'insert' && taskIdOf(write) === taskId)) continue;
      return { kind: 'conflict', subject: 'record', id: taskId };
    }
    const original = task.ledger.get(intentKey);
    if (original !== undefined) return { kind: 'repeated', original };
  }
  return null;
}

function keys(tables: MemoryTables, { records: writes }: CommitPlan): Lost | null {
  for (const write of writes) {
    if (write.kind !== 'insert') continue;
    const { taskId, namespace, idempotencyKey } = write.admission;
    const holder = tables.holderOfKey(namespace, idempotencyKey);
    if (holder !== null) return { kind: 'duplicate', taskId: holder };
    if (tables.tasks.has(taskId) || tables.purged.has(taskId)) return { kind: 'task_id_taken', taskId };
  }
  return null;
}

function records(tables: MemoryTables, plan: CommitPlan, changed: ReadonlySet<string>): Lost | null {
  const holds = (taskId: string, version: number): boolean => tables.tasks.get(taskId)?.record.lastEvent === version;
  for (const write of plan.records) {
    if (write.kind === 'update' && !holds(write.taskId, write.baseVersion)) {
      return { kind: 'conflict', subject: 'record', id: write.taskId };
    }
  }
  if (plan.purge !== undefined && !holds(plan.purge.taskId, plan.purge.version)) {
    return { kind: 'conflict', subject: 'record', id: plan.purge.taskId };
  }
  for (const { taskId, version, ofBatch } of plan.recordReads) {
    const stands = holds(taskId, version) && (ofBatch !== true || changed.has(taskId));
    if (!stands) return { kind: 'conflict', subject: 'record', id: taskId };
  }
  return null;
}

function families({ family }: MemoryTables, { links = [] }: CommitPlan): Lost | null {
  const broken = brokenLink(links, family);
  return broken === null ? null : { kind: 'conflict', subject: 'family', id: broken };
}

function purge({ family }: MemoryTables, plan: CommitPlan): Lost | null {
  const taskId = plan.purge?.taskId;
  return taskId !== undefined && isNeeded(taskId, family) ? { kind: 'conflict', subject: 'family', id: taskId } : null;
}

function permits({ permits: kept }: MemoryTables, plan: CommitPlan): Lost | null {
  for (const { taskId, wish } of alignmentsOf(plan)) {
    const missing = kept.missing(taskId, wish);
    if (missing !== null) return { kind: 'conflict', subject: 'permit', id: missing };
  }
  return null;
}

function sessions(tables: MemoryTables, plan: CommitPlan): Lost | null {
  for (const read of plan.sessionReads) {
    if (!sessionHolds(tables.sessions.get(read.sessionId) ?? null, read)) {
      return { kind: 'conflict', subject: 'session', id: read.sessionId };
    }
  }
  for (const write of plan.sessions) {
    const id = sessionIdOf(write);
    if (sessionAfter(tables.sessions.get(id) ?? null, write) === null)
      return { kind: 'conflict', subject: 'session', id };
  }
  return null;
}

function repairs(tables: MemoryTables, plan: CommitPlan): Lost | null {
  const lostRecord = plan.repairs?.find(({ taskId, fingerprint }) => {
    const task = tables.tasks.get(taskId);
    return task === undefined || fingerprintOf(task) !== fingerprint;
  });
  const lostTombstone = plan.tombstones?.find(({ taskId, fingerprint }) => {
    const purged = tables.purged.get(taskId);
    return purged === undefined || tables.tombstoneFingerprint(purged) !== fingerprint;
  });
  const lost = lostRecord ?? lostTombstone;
  return lost === undefined ? null : { kind: 'conflict', subject: 'record', id: lost.taskId };
}
