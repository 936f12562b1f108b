/**
 * The memory store: the port over plain maps, for tests and `reeve dev`. It forgets everything at its end and judges
 * exactly as the others do; its index reads sort what they find, so it is not for large backlogs.
 */
import { randomBytes } from 'node:crypto';
import type { CommitBatch, CommitPlan, Diagnostic, LedgerEntry, PlanVerdict, SessionRow } from '../commit-plan.js';
import type {
  AuditPage,
  AuditQuery,
  AuditedKeys,
  AuditedPermits,
  AuditedSessions,
  HistoryStretch,
  KeyName,
  NamedQuery,
} from '../audit-rows.js';
import type { ChildRow, FamilyCounts, StoredPropagation, WaiterRow } from '../family-rows.js';
import { HistoryChain } from '../history-chain.js';
import type { EventBounds, EventPage, EventScope } from '../event-pages.js';
import { isNeeded } from '../family-guards.js';
import { historyPage } from '../history-page.js';
import type { PermitWait } from '../../kernel/permits.js';
import { type PermitState, permitWritesOf } from '../permit-rows.js';
import { assertWellFormed, sessionIdOf, taskIdOf } from '../plan-shape.js';
import type { OperationEntry, PurgeableTask } from '../purge-rows.js';
import { sessionAfter } from '../session-guards.js';
import { StoreError } from '../store-error.js';
import {
  type DueTask,
  type LeasedTask,
  type ListPage,
  type ListQuery,
  MAX_BYTES_PER_LIST,
  MAX_ROWS_PER_LIST,
  type PurgedTask,
  type ReadyPosition,
  type ReadyTask,
  type StoredEvent,
  type StoredTask,
  type TaskStore,
} from '../task-store.js';
import { deepFreeze } from '../../lib/deep-freeze.js';
import { MemoryAudit } from './memory-audit.js';
import { checkPlan } from './memory-check.js';
import { readScope } from './memory-events.js';
import { comesAfter, matches, purgedOf, taskOf, withoutArgs } from './memory-list.js';
import { MemoryTables } from './memory-tables.js';

/** `chainKey`: of the hash chains; null for links without one. */
export function openMemoryStore(chainKey: Uint8Array | null = null): TaskStore {
  return new MemoryStore(new HistoryChain(chainKey));
}

class MemoryStore implements TaskStore {
  private readonly tables: MemoryTables;
  private readonly audit: MemoryAudit;
  private readonly storeSecret = randomBytes(32).toString('hex');
  private readonly storeIncarnation = randomBytes(8).toString('hex');
  private closed = false;

  constructor(chain: HistoryChain) {
    this.tables = new MemoryTables(chain);
    this.audit = new MemoryAudit(this.tables, chain);
  }

  async commit(batch: CommitBatch): Promise<readonly PlanVerdict[]> {
    assertWellFormed(batch);
    this.assertOpen();
    const changed = new Set<string>();
    return batch.plans.map((plan) => checkPlan(this.tables, plan, changed) ?? this.write(plan, changed));
  }

  private write(plan: CommitPlan, changed: Set<string>): PlanVerdict {
    const { tables } = this;
    const written = plan.records.map((write) => {
      changed.add(taskIdOf(write));
      return tables.write(write);
    });
    for (const repair of plan.repairs ?? []) {
      changed.add(repair.taskId);
      written.push(tables.repair(repair));
    }
    for (const write of plan.sessions) {
      const after = sessionAfter(tables.sessions.get(sessionIdOf(write)) ?? null, write);
      if (after !== null) tables.sessions.put(after);
    }
    for (const entry of plan.ledger) tables.tasks.get(entry.taskId)?.ledger.set(entry.intentKey, deepFreeze(entry));
    for (const link of plan.links ?? []) tables.family.write(link);
    const moved = tables.writePermits(permitWritesOf(plan));
    for (const diagnostic of plan.diagnostics) tables.keepDiagnostic(diagnostic);
    if (plan.purge !== undefined) tables.purge(plan.purge);
    for (const operation of plan.operations ?? []) tables.keepOperation(operation);
    for (const repair of plan.tombstones ?? []) tables.repairTombstone(repair);
    return {
      kind: 'committed',
      firstSequences: written.map(({ firstSequence }) => firstSequence),
      links: written.map(({ link }) => link),
      ...moved,
    };
  }

  /** Never needed: nothing comes between this store and its answer. */
  outcomeOf(batch: CommitBatch): Promise<readonly PlanVerdict[] | null> {
    return Promise.reject(
      new StoreError('fatal', `memory leaves no outcome unknown, that of ${batch.batchId} neither`),
    );
  }

  async loadTasks(taskIds: readonly string[]): Promise<readonly (StoredTask | PurgedTask | null)[]> {
    this.assertOpen();
    return taskIds.map((taskId) => {
      const entry = this.tables.tasks.get(taskId);
      return entry === undefined ? purgedOf(this.tables, taskId) : taskOf(entry);
    });
  }

  async findTaskId(namespace: string, idempotencyKey: string): Promise<string | null> {
    this.assertOpen();
    return this.tables.holderOfKey(namespace, idempotencyKey);
  }

  async findLedgerEntry(taskId: string, intentKey: string): Promise<LedgerEntry | null> {
    this.assertOpen();
    return this.tables.tasks.get(taskId)?.ledger.get(intentKey) ?? null;
  }

  async readHistory(
    taskId: string,
    afterNumber: number,
    limit: number,
    maxBytes: number,
  ): Promise<readonly StoredEvent[]> {
    this.assertOpen();
    const events = this.tables.tasks.get(taskId)?.events ?? [];
    return historyPage(events.slice(afterNumber, afterNumber + Math.max(limit, 1)), limit, maxBytes);
  }

  async readEvent(taskId: string, eventNumber: number): Promise<StoredEvent | null> {
    this.assertOpen();
    return this.tables.tasks.get(taskId)?.events[eventNumber - 1] ?? null;
  }

  async readEvents(scope: EventScope, after: number, limit: number, maxBytes: number): Promise<EventPage> {
    this.assertOpen();
    return readScope(this.tables, scope, after, limit, maxBytes);
  }

  async eventBounds(): Promise<EventBounds> {
    this.assertOpen();
    const { log, horizon, purged } = this.tables;
    return { head: log.length - 1, horizon, purges: purged.size };
  }

  async readDiagnostics(taskId: string, limit: number): Promise<readonly Diagnostic[]> {
    this.assertOpen();
    const kept = this.tables.tasks.get(taskId)?.diagnostics ?? [];
    return kept.toSorted((left, right) => left.epoch - right.epoch).slice(0, limit);
  }

  async listTasks(query: ListQuery): Promise<ListPage> {
    this.assertOpen();
    const { byOrder } = this.tables;
    const tasks: StoredTask[] = [];
    const step = query.descending ? -1 : 1;
    // Admission order n stands at index n - 1.
    const start = query.after === null ? (query.descending ? byOrder.length - 1 : 0) : query.after - 1 + step;
    let seen = 0;
    let bytes = 0;
    for (let at = start; at >= 0 && at < byOrder.length; at += step) {
      const entry = byOrder[at];
      seen += 1;
      if (entry === undefined) continue;
      if (matches(entry, query)) {
        tasks.push(query.withArgs ? taskOf(entry) : withoutArgs(entry));
        bytes += query.withArgs ? entry.record.admission.application.argsJson.length : 0;
      }
      const full = tasks.length >= query.limit || bytes >= MAX_BYTES_PER_LIST;
      if (full || seen >= MAX_ROWS_PER_LIST) return { tasks, next: entry.order };
    }
    return { tasks, next: null };
  }

  async routeKeys(): Promise<readonly string[]> {
    this.assertOpen();
    return [...this.tables.routeKeys];
  }

  async readyTasks(routeKey: string, after: ReadyPosition | null, limit: number): Promise<readonly ReadyTask[]> {
    this.assertOpen();
    const ready: ReadyTask[] = [];
    for (const entry of this.tables.ready.get(routeKey) ?? []) {
      const { readyOrder } = entry.index;
      if (readyOrder === null) continue;
      const position = { readyOrder, order: entry.order };
      if (after === null || comesAfter(position, after)) ready.push({ position, taskId: entry.taskId });
    }
    return ready.sort((left, right) => (comesAfter(left.position, right.position) ? 1 : -1)).slice(0, limit);
  }

  async dueTasks(now: number, after: DueTask | null, limit: number): Promise<readonly DueTask[]> {
    this.assertOpen();
    const due: DueTask[] = [];
    for (const { taskId, order, index } of this.tables.due) {
      const dueAt = index.nextDueAt;
      if (dueAt === null || dueAt > now) continue;
      if (after !== null && (dueAt < after.dueAt || (dueAt === after.dueAt && order <= after.order))) continue;
      due.push({ taskId, dueAt, order });
    }
    return due.sort((left, right) => left.dueAt - right.dueAt || left.order - right.order).slice(0, limit);
  }

  async earliestTimer(): Promise<number | null> {
    this.assertOpen();
    let earliest: number | null = null;
    for (const { index } of this.tables.due) {
      if (index.nextDueAt !== null && (earliest === null || index.nextDueAt < earliest)) earliest = index.nextDueAt;
    }
    return earliest;
  }

  async purgeable(now: number, after: PurgeableTask | null, limit: number): Promise<readonly PurgeableTask[]> {
    this.assertOpen();
    const old: PurgeableTask[] = [];
    for (const { taskId, order, index, record } of this.tables.purgeable) {
      const { purgeAt } = index;
      if (purgeAt === null || purgeAt > now) continue;
      if (after !== null && (purgeAt < after.purgeAt || (purgeAt === after.purgeAt && order <= after.order))) continue;
      old.push({ taskId, version: record.lastEvent, purgeAt, order });
    }
    return old.sort((left, right) => left.purgeAt - right.purgeAt || left.order - right.order).slice(0, limit);
  }

  /** Nothing is left behind here. */
  async sweepPurged(): Promise<boolean> {
    this.assertOpen();
    return false;
  }

  async isNeeded(taskId: string): Promise<boolean> {
    this.assertOpen();
    return isNeeded(taskId, this.tables.family);
  }

  async findOperation(key: string): Promise<OperationEntry | null> {
    this.assertOpen();
    return this.tables.operations.get(key) ?? null;
  }

  async loadSession(sessionId: string): Promise<SessionRow | null> {
    this.assertOpen();
    return this.tables.sessions.get(sessionId) ?? null;
  }

  async sessions(expiredBefore: number | null, limit: number): Promise<readonly SessionRow[]> {
    this.assertOpen();
    return this.tables.sessions.alive(expiredBefore, limit);
  }

  async sessionsAhead(now: number, limit: number): Promise<readonly SessionRow[]> {
    this.assertOpen();
    return this.tables.sessions.ahead(now, limit);
  }

  async goneSessions(afterId: string | null, limit: number): Promise<readonly SessionRow[]> {
    this.assertOpen();
    return this.tables.sessions.gone(afterId, limit);
  }

  async forgetSessions(now: number, most: number): Promise<boolean> {
    this.assertOpen();
    this.tables.sessions.forget(now, most);
    return false;
  }

  async leaseHolders(): Promise<readonly string[]> {
    this.assertOpen();
    return [...this.tables.leased.keys()].sort();
  }

  async tasksOfSession(sessionId: string, afterOrder: number, limit: number): Promise<readonly LeasedTask[]> {
    this.assertOpen();
    return this.tables
      .leasedTo(sessionId)
      .filter(({ order }) => order > afterOrder)
      .slice(0, limit)
      .map(({ taskId, order }) => ({ taskId, order }));
  }

  async familyCounts(taskIds: readonly string[]): Promise<readonly FamilyCounts[]> {
    this.assertOpen();
    return taskIds.map((taskId) => this.tables.family.counts(taskId));
  }

  async liveChildren(parentId: string, afterOrder: number, limit: number): Promise<readonly ChildRow[]> {
    this.assertOpen();
    const children = [...(this.tables.family.children.get(parentId) ?? [])].filter(([, live]) => live);
    return this.inOrder(children, afterOrder, limit).map(({ taskId, order }) => ({ taskId, order }));
  }

  async waitersOf(
    taskId: string,
    generation: number,
    afterOrder: number,
    limit: number,
  ): Promise<readonly WaiterRow[]> {
    this.assertOpen();
    const { family } = this.tables;
    return this.inOrder([...family.waitersOf(taskId, generation)], afterOrder, limit).map((row) => ({
      taskId: row.taskId,
      order: row.order,
      condition: row.value,
      unsatisfied: family.counts(row.taskId).unsatisfied,
    }));
  }

  async propagations(after: StoredPropagation | null, limit: number): Promise<readonly StoredPropagation[]> {
    this.assertOpen();
    return [...this.tables.family.propagations.values()]
      .map((row) => ({ ...row, order: this.tables.tasks.get(row.taskId)?.order ?? 0 }))
      .sort((left, right) => left.order - right.order || left.generation - right.generation)
      .filter(
        (row) =>
          after === null || row.order > after.order || (row.order === after.order && row.generation > after.generation),
      )
      .slice(0, limit);
  }

  async auditTasks(query: AuditQuery): Promise<AuditPage> {
    this.assertOpen();
    return this.audit.entries(query);
  }

  async auditHistory(order: number, afterNumber: number, throughNumber: number): Promise<HistoryStretch> {
    this.assertOpen();
    return this.audit.history(order, afterNumber, throughNumber);
  }

  async auditKeys(query: NamedQuery<KeyName>): Promise<AuditedKeys> {
    this.assertOpen();
    return this.audit.keys(query);
  }

  async auditSessions(query: NamedQuery<string>): Promise<AuditedSessions> {
    this.assertOpen();
    return this.audit.sessions(query);
  }

  async auditPermits(query: NamedQuery<string>): Promise<AuditedPermits> {
    this.assertOpen();
    return this.audit.permits(query);
  }

  async permits(after: string | null, limit: number): Promise<readonly PermitState[]> {
    this.assertOpen();
    return this.tables.permits.states(after, limit);
  }

  async permitWait(taskId: string): Promise<PermitWait | null> {
    this.assertOpen();
    return this.tables.permitWait(taskId);
  }

  secret(): Promise<string> {
    return Promise.resolve(this.storeSecret);
  }

  incarnation(): Promise<string> {
    return Promise.resolve(this.storeIncarnation);
  }

  /** Nothing here can die. */
  onDeath(): void {
    return;
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  /** What is known of these tasks, in admission order, after the one given. */
  private inOrder<Value>(
    known: readonly (readonly [string, Value])[],
    afterOrder: number,
    limit: number,
  ): { readonly taskId: string; readonly order: number; readonly value: Value }[] {
    return known
      .map(([taskId, value]) => ({ taskId, order: this.tables.tasks.get(taskId)?.order ?? 0, value }))
      .filter(({ order }) => order > afterOrder)
      .sort((left, right) => left.order - right.order)
      .slice(0, limit);
  }

  private assertOpen(): void {
    if (this.closed) throw new StoreError('fatal', 'the store is closed');
  }
}
