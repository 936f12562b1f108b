/**
 * The check phase: everything that a plan read or presumes, against the store as the plans before it left it. It writes
 * nothing. Order of answers: keys first (what was done before stands whatever else changed), then records, then
 * families, then permits, then sessions.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { PlanVerdict, SessionRow, SessionWrite } from '../commit-plan.js';
import { sessionIdOf } from '../plan-shape.js';
import { sessionAfter, sessionHolds } from '../session-guards.js';
import { brokenLink, isNeeded } from '../family-guards.js';
import type { RowInsert, RowPlan } from './batch-message.js';
import type { FamilyTables } from './family-tables.js';
import type { KnownTasks } from './known-tasks.js';
import type { PermitTables } from './permit-tables.js';
import type { PurgeTables } from './purge-tables.js';
import type { Repairs } from './repairs.js';
import type { SessionRows } from './session-rows.js';

const KEY_WITHOUT_TASK = 'an idempotency key stands without its task';

type Lost = Exclude<PlanVerdict, { readonly kind: 'committed' }>;

export class PlanCheck {
  private readonly holderOfKey: Statement<[string, string], string | null>;
  private readonly ledgerEntry: Statement<[number, string], [string, string]>;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
    private readonly sessions: SessionRows,
    private readonly family: FamilyTables,
    private readonly mended: Repairs,
    private readonly purged: PurgeTables,
    private readonly permitTables: PermitTables,
  ) {
    this.holderOfKey = db
      .prepare<[string, string], string | null>(
        `SELECT coalesce(t.task_id, d.task_id) FROM task_keys k LEFT JOIN tasks t ON t.task_order = k.task_order
         LEFT JOIN tombstones d ON d.task_order = k.task_order
         WHERE k.namespace = ? AND k.idempotency_key = ?`,
      )
      .pluck();
    this.ledgerEntry = db
      .prepare<[number, string], [string, string]>(
        'SELECT content_hash, answer FROM intent_keys WHERE task_order = ? AND intent_key = ?',
      )
      .raw();
  }

  all(plan: RowPlan): Lost | null {
    return (
      this.ledger(plan) ??
      this.keys(plan) ??
      this.records(plan) ??
      this.links(plan) ??
      this.permits(plan) ??
      this.purge(plan) ??
      this.sessionReads(plan) ??
      this.sessionWrites(plan) ??
      this.repairs(plan)
    );
  }

  private ledger({ rare, writes }: RowPlan): Lost | null {
    for (const { taskId, intentKey } of rare?.ledger ?? []) {
      const task = this.tasks.get(taskId);
      if (task === null) {
        if (writes.some((write) => write.kind === 'insert' && write.taskId === taskId)) continue;
        return recordConflict(taskId);
      }
      const entry = this.ledgerEntry.get(task.order, intentKey);
      if (entry === undefined) continue;
      const [contentHash, answerJson] = entry;
      return { kind: 'repeated', original: { taskId, intentKey, contentHash, answerJson } };
    }
    return null;
  }

  private keys({ writes }: RowPlan): Lost | null {
    for (const write of writes) {
      if (write.kind !== 'insert') continue;
      const taken = this.duplicate(write.namespace, write.idempotencyKey);
      if (taken !== null) return taken;
      if (this.tasks.get(write.taskId) !== null || this.isTombstone(write)) {
        return { kind: 'task_id_taken', taskId: write.taskId };
      }
    }
    return null;
  }

  private records({ writes, rare }: RowPlan): Lost | null {
    for (const write of writes) {
      const lost = write.kind === 'update' ? this.version(write.taskId, write.baseVersion) : null;
      if (lost !== null) return lost;
    }
    const purge = rare?.purge ?? null;
    const moved = purge === null ? null : this.version(purge.taskId, purge.version);
    if (moved !== null) return moved;
    for (const { taskId, version, ofBatch } of rare?.recordReads ?? []) {
      const lost = ofBatch === true && !this.changed(taskId) ? recordConflict(taskId) : this.version(taskId, version);
      if (lost !== null) return lost;
    }
    return null;
  }

  private links({ rare }: RowPlan): Lost | null {
    const broken = rare === null ? null : brokenLink(rare.links, this.family);
    return broken === null ? null : { kind: 'conflict', subject: 'family', id: broken };
  }

  private purge({ rare }: RowPlan): Lost | null {
    const taskId = rare?.purge?.taskId;
    return taskId !== undefined && isNeeded(taskId, this.family)
      ? { kind: 'conflict', subject: 'family', id: taskId }
      : null;
  }

  /** An id that was made for its task is nobody else's. */
  isTombstone({ idIsFresh, taskId }: RowInsert): boolean {
    return !idIsFresh && this.purged.hasId(taskId);
  }

  private permits({ rare }: RowPlan): Lost | null {
    for (const write of rare?.permits ?? []) {
      const missing = write.kind === 'aligned' ? this.permitTables.missing(write.taskId, write.wish) : null;
      if (missing !== null) return { kind: 'conflict', subject: 'permit', id: missing };
    }
    return null;
  }

  version(taskId: string, version: number): Lost | null {
    const holds = this.tasks.get(taskId)?.version === version || this.tasks.lookAgain(taskId)?.version === version;
    return holds ? null : recordConflict(taskId);
  }

  /** Whether a plan of the batch in hand has written it. */
  private changed(taskId: string): boolean {
    return this.tasks.get(taskId)?.writtenIn === this.tasks.batch;
  }

  sessionReads({ sessionReads }: RowPlan): Lost | null {
    for (const read of sessionReads) {
      if (!sessionHolds(this.sessions.get(read.sessionId), read)) return sessionConflict(read.sessionId);
    }
    return null;
  }

  private sessionWrites({ rare }: RowPlan): Lost | null {
    for (const write of rare?.sessions ?? []) {
      if (this.sessionAfter(write) === null) return sessionConflict(sessionIdOf(write));
    }
    return null;
  }

  private repairs({ rare }: RowPlan): Lost | null {
    const lost =
      rare?.repairs.find((repair) => !this.mended.fits(repair)) ??
      rare?.tombstones.find((repair) => !this.purged.fits(repair));
    return lost === undefined ? null : recordConflict(lost.taskId);
  }

  sessionAfter(write: SessionWrite): SessionRow | null {
    return sessionAfter(this.sessions.get(sessionIdOf(write)), write);
  }

  /** The task that holds a key; null when it is free. */
  duplicate(namespace: string, idempotencyKey: string): Lost | null {
    const taskId = this.holderOfKey.get(namespace, idempotencyKey);
    if (taskId === undefined) return null;
    return taskId === null ? { kind: 'damaged', detail: KEY_WITHOUT_TASK } : { kind: 'duplicate', taskId };
  }
}

function recordConflict(id: string): Lost {
  return { kind: 'conflict', subject: 'record', id };
}

function sessionConflict(id: string): Lost {
  return { kind: 'conflict', subject: 'session', id };
}
