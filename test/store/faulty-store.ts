// A store that fails on purpose, around another: an error before anything is written, an error after everything was
// (the answer lost on its way), an outcome that can't be told yet, and gates that hold a call until a test lets it go.
// Faults are queued: each commit takes the next one, and runs clean when there is none.

import type { CommitBatch, PlanVerdict } from '../../src/store/commit-plan.js';
import type { AuditQuery, KeyName, NamedQuery } from '../../src/store/audit-rows.js';
import type { StoredPropagation } from '../../src/store/family-rows.js';
import type { EventScope } from '../../src/store/event-pages.js';
import type { PurgeableTask } from '../../src/store/purge-rows.js';
import { StoreError } from '../../src/store/store-error.js';
import type { ListQuery, DueTask, ReadyPosition, TaskStore } from '../../src/store/task-store.js';

export type CommitFault =
  /** Nothing is written: `unavailable`. */
  | { readonly kind: 'error_before' }
  /**
   * Written (or not, with `lost`), then `outcome_unknown`. `outcomeOf` answers `unavailable` that many times before it
   * tells the truth.
   */
  | { readonly kind: 'error_after'; readonly unavailableLookUps?: number; readonly lost?: boolean }
  /** Nothing is written and nothing will be. */
  | { readonly kind: 'fatal' }
  /** Waits for the gate, then writes. */
  | { readonly kind: 'wait'; readonly gate: Gate };

/** Holds what passes it until it is opened; `reached` resolves when somebody waits at it. */
export class Gate {
  readonly reached: Promise<void>;
  private readonly opened: Promise<void>;
  private arrive: () => void = () => undefined;
  private letGo: () => void = () => undefined;

  constructor() {
    this.reached = new Promise((resolve) => (this.arrive = resolve));
    this.opened = new Promise((resolve) => (this.letGo = resolve));
  }

  open(): void {
    this.letGo();
  }

  async pass(): Promise<void> {
    this.arrive();
    await this.opened;
  }
}

interface Unknown {
  lookUpsLeft: number;
  readonly verdicts: readonly PlanVerdict[] | null;
}

export class FaultyStore implements TaskStore {
  /** Batches in the order in which they reached the store, those that failed too. */
  readonly batches: CommitBatch[] = [];
  private readonly faults: CommitFault[] = [];
  private readonly unknown = new Map<string, Unknown>();
  private readsUnavailable = false;
  private readGate: Gate | null = null;

  constructor(readonly inner: TaskStore) {}

  /** The next commits fail so, one each. */
  failNextCommits(...faults: readonly CommitFault[]): void {
    this.faults.push(...faults);
  }

  /** Every read is `unavailable` until told otherwise. */
  failReads(fail: boolean): void {
    this.readsUnavailable = fail;
  }

  /** Every read waits at the gate; null takes it away. */
  holdReads(gate: Gate | null): void {
    this.readGate = gate;
  }

  async commit(batch: CommitBatch): Promise<readonly PlanVerdict[]> {
    this.batches.push(batch);
    const fault = this.faults.shift();
    switch (fault?.kind) {
      case undefined:
        return this.inner.commit(batch);
      case 'error_before':
        throw new StoreError('unavailable', 'injected: before anything was written');
      case 'fatal':
        throw new StoreError('fatal', 'injected: beyond use');
      case 'wait':
        await fault.gate.pass();
        return this.inner.commit(batch);
      case 'error_after': {
        const verdicts = fault.lost === true ? null : await this.inner.commit(batch);
        this.unknown.set(batch.batchId, { verdicts, lookUpsLeft: fault.unavailableLookUps ?? 0 });
        throw new StoreError('outcome_unknown', 'injected: the answer was lost');
      }
    }
  }

  async outcomeOf(batch: CommitBatch): Promise<readonly PlanVerdict[] | null> {
    const unknown = this.unknown.get(batch.batchId);
    if (unknown === undefined) return this.inner.outcomeOf(batch);
    if (unknown.lookUpsLeft > 0) {
      unknown.lookUpsLeft -= 1;
      throw new StoreError('unavailable', 'injected: the outcome cannot be told yet');
    }
    return unknown.verdicts;
  }

  loadTasks(taskIds: readonly string[]) {
    return this.read(() => this.inner.loadTasks(taskIds));
  }

  findTaskId(namespace: string, idempotencyKey: string) {
    return this.read(() => this.inner.findTaskId(namespace, idempotencyKey));
  }

  findLedgerEntry(taskId: string, intentKey: string) {
    return this.read(() => this.inner.findLedgerEntry(taskId, intentKey));
  }

  readHistory(taskId: string, afterNumber: number, limit: number, maxBytes: number) {
    return this.read(() => this.inner.readHistory(taskId, afterNumber, limit, maxBytes));
  }

  readEvent(taskId: string, eventNumber: number) {
    return this.read(() => this.inner.readEvent(taskId, eventNumber));
  }

  readDiagnostics(taskId: string, limit: number) {
    return this.read(() => this.inner.readDiagnostics(taskId, limit));
  }

  listTasks(query: ListQuery) {
    return this.read(() => this.inner.listTasks(query));
  }

  routeKeys() {
    return this.read(() => this.inner.routeKeys());
  }

  readyTasks(routeKey: string, after: ReadyPosition | null, limit: number) {
    return this.read(() => this.inner.readyTasks(routeKey, after, limit));
  }

  dueTasks(now: number, after: DueTask | null, limit: number) {
    return this.read(() => this.inner.dueTasks(now, after, limit));
  }

  earliestTimer() {
    return this.read(() => this.inner.earliestTimer());
  }

  readEvents(scope: EventScope, after: number, limit: number, maxBytes: number) {
    return this.read(() => this.inner.readEvents(scope, after, limit, maxBytes));
  }

  eventBounds() {
    return this.read(() => this.inner.eventBounds());
  }

  purgeable(now: number, after: PurgeableTask | null, limit: number) {
    return this.read(() => this.inner.purgeable(now, after, limit));
  }

  sweepPurged() {
    return this.read(() => this.inner.sweepPurged());
  }

  isNeeded(taskId: string) {
    return this.read(() => this.inner.isNeeded(taskId));
  }

  findOperation(key: string) {
    return this.read(() => this.inner.findOperation(key));
  }

  incarnation() {
    return this.inner.incarnation();
  }

  loadSession(sessionId: string) {
    return this.read(() => this.inner.loadSession(sessionId));
  }

  sessions(expiredBefore: number | null, limit: number) {
    return this.read(() => this.inner.sessions(expiredBefore, limit));
  }

  sessionsAhead(now: number, limit: number) {
    return this.read(() => this.inner.sessionsAhead(now, limit));
  }

  goneSessions(afterId: string | null, limit: number) {
    return this.read(() => this.inner.goneSessions(afterId, limit));
  }

  forgetSessions(now: number, most: number) {
    return this.read(() => this.inner.forgetSessions(now, most));
  }

  leaseHolders() {
    return this.read(() => this.inner.leaseHolders());
  }

  tasksOfSession(sessionId: string, afterOrder: number, limit: number) {
    return this.read(() => this.inner.tasksOfSession(sessionId, afterOrder, limit));
  }

  onDeath(listener: (error: StoreError) => void) {
    this.inner.onDeath(listener);
  }

  familyCounts(taskIds: readonly string[]) {
    return this.read(() => this.inner.familyCounts(taskIds));
  }

  liveChildren(parentId: string, afterOrder: number, limit: number) {
    return this.read(() => this.inner.liveChildren(parentId, afterOrder, limit));
  }

  waitersOf(taskId: string, generation: number, afterOrder: number, limit: number) {
    return this.read(() => this.inner.waitersOf(taskId, generation, afterOrder, limit));
  }

  propagations(after: StoredPropagation | null, limit: number) {
    return this.read(() => this.inner.propagations(after, limit));
  }

  auditTasks(query: AuditQuery) {
    return this.read(() => this.inner.auditTasks(query));
  }

  auditKeys(query: NamedQuery<KeyName>) {
    return this.read(() => this.inner.auditKeys(query));
  }

  auditSessions(query: NamedQuery<string>) {
    return this.read(() => this.inner.auditSessions(query));
  }

  auditPermits(query: NamedQuery<string>) {
    return this.read(() => this.inner.auditPermits(query));
  }

  auditHistory(order: number, afterNumber: number, throughNumber: number) {
    return this.read(() => this.inner.auditHistory(order, afterNumber, throughNumber));
  }

  permits(after: string | null, limit: number) {
    return this.read(() => this.inner.permits(after, limit));
  }

  permitWait(taskId: string) {
    return this.read(() => this.inner.permitWait(taskId));
  }

  secret() {
    return this.inner.secret();
  }

  close() {
    return this.inner.close();
  }

  private async read<T>(call: () => Promise<T>): Promise<T> {
    if (this.readsUnavailable) throw new StoreError('unavailable', 'injected: no reads');
    if (this.readGate !== null) await this.readGate.pass();
    return call();
  }
}
