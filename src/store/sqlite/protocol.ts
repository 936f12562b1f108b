/**
 * What the store and its threads say to each other. Each thread answers its requests one by one, in the order in which
 * they came, so an answer needs no name. Everything here survives a structured clone.
 */
import type { AuditQuery, AuditedKeys, AuditedPermits, AuditedSessions, KeyName, NamedQuery } from '../audit-rows.js';
import type { ChildRow, FamilyCounts, StoredPropagation, WaiterRow } from '../family-rows.js';
import type { PermitWait } from '../../kernel/permits.js';
import type { PermitState } from '../permit-rows.js';
import type { Diagnostic, LedgerEntry, SessionRow } from '../commit-plan.js';
import type { StoreFailure } from '../store-error.js';
import type { HistoryRow } from '../stored-row.js';
import type { EventBounds, EventScope } from '../event-pages.js';
import type { ScopedRows } from '../event-rows.js';
import type { OperationEntry, PurgeableTask } from '../purge-rows.js';
import type { DueTask, ListQuery, ReadyPosition } from '../task-store.js';
import type { AuditRows, HistoryRows } from './audit-reads.js';
import type { BatchMessage, BatchReply } from './batch-message.js';
import type { LeasedRow, LoadedRow, ReadyRow } from './hot-reads.js';
import type { ListedRows } from './long-reads.js';
import type { SqliteSettings } from './settings.js';

export interface WriterCalls {
  commit(batch: BatchMessage): BatchReply;
  /** The first of those asked for, as many as fit a step, and at least one. */
  loadTasks(taskIds: readonly string[]): LoadedRow[];
  findTaskId(namespace: string, idempotencyKey: string): string | null;
  findLedgerEntry(taskId: string, intentKey: string): LedgerEntry | null;
  readEvent(taskId: string, eventNumber: number): HistoryRow | null;
  readDiagnostics(taskId: string, limit: number): Diagnostic[];
  routeKeys(): string[];
  readyTasks(routeKey: string, after: ReadyPosition | null, limit: number): ReadyRow[];
  dueTasks(now: number, after: DueTask | null, limit: number): DueTask[];
  earliestTimer(): number | null;
  purgeable(now: number, after: PurgeableTask | null, limit: number): PurgeableTask[];
  sweepPurged(): boolean;
  isNeeded(taskId: string): boolean;
  findOperation(key: string): OperationEntry | null;
  loadSession(sessionId: string): SessionRow | null;
  sessions(expiredBefore: number | null, limit: number): SessionRow[];
  sessionsAhead(now: number, limit: number): SessionRow[];
  goneSessions(afterId: string | null, limit: number): SessionRow[];
  forgetSessions(now: number, most: number): boolean;
  leaseHolders(): string[];
  tasksOfSession(sessionId: string, afterOrder: number, limit: number): LeasedRow[];
  familyCounts(taskIds: readonly string[]): FamilyCounts[];
  liveChildren(parentId: string, afterOrder: number, limit: number): ChildRow[];
  waitersOf(taskId: string, generation: number, afterOrder: number, limit: number): WaiterRow[];
  propagations(after: StoredPropagation | null, limit: number): StoredPropagation[];
  permits(after: string | null, limit: number): PermitState[];
  permitWait(taskId: string): PermitWait | null;
  /** Checkpoints and closes; the thread ends after its answer. */
  close(): null;
}

export interface ReaderCalls {
  readHistory(taskId: string, afterNumber: number, limit: number, maxBytes: number): HistoryRow[];
  readEvents(scope: EventScope, after: number, limit: number, maxBytes: number): ScopedRows;
  eventBounds(): EventBounds;
  listTasks(query: ListQuery): ListedRows;
  auditTasks(query: AuditQuery): AuditRows;
  auditHistory(order: number, afterNumber: number, throughNumber: number): HistoryRows;
  auditKeys(query: NamedQuery<KeyName>): AuditedKeys;
  auditSessions(query: NamedQuery<string>): AuditedSessions;
  auditPermits(query: NamedQuery<string>): AuditedPermits;
  close(): null;
}

/** What the writer says once it is open. */
export interface StoreIdentity {
  readonly secret: string;
  readonly incarnation: string;
}

export interface ThreadData {
  readonly role: 'writer' | 'reader';
  readonly settings: SqliteSettings;
}

/** A call's name and its arguments. */
export type Request<Calls> = { [Name in keyof Calls]: readonly [Name, readonly unknown[]] }[keyof Calls];

export type Answer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly failure: StoreFailure; readonly message: string };
