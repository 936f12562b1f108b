/**
 * The commit path of the SQLite store: one batch, one transaction, one plan after the other. A plan that changes one
 * record is guarded by its own writes; any other is checked whole before it writes anything, so that a plan that is
 * dropped leaves no trace and needs no savepoint.
 */
import Database from 'better-sqlite3';
import { MAX_DIAGNOSTICS_PER_EPOCH, type PlanVerdict } from '../commit-plan.js';
import { HistoryChain } from '../history-chain.js';
import { type PermitsMoved, movedBy } from '../permit-rows.js';
import { countedAtEnd, sessionHolds } from '../session-guards.js';
import { StoreError } from '../store-error.js';
import {
  type BatchMessage,
  type BatchReply,
  type RareParts,
  type RowInsert,
  type RowPlan,
  type RowUpdate,
  decodeBatch,
} from './batch-message.js';
import { Counters } from './counters.js';
import { FamilyTables } from './family-tables.js';
import { type KnownTask, KnownTasks } from './known-tasks.js';
import { PermitTables } from './permit-tables.js';
import { PlanCheck } from './plan-check.js';
import { sealOf } from '../record-seal.js';
import { PurgeTables } from './purge-tables.js';
import { Rederiving } from './rederiving.js';
import { Repairs } from './repairs.js';
import { encodeEnd } from './session-end-codec.js';
import { SessionRows, columnsOf, standingOf } from './session-rows.js';
import { type AppendedRow, TaskChains, bytesOf } from './task-chains.js';
import { TombstoneRepairs } from './tombstone-repairs.js';
import { type WriteStatements, writeStatements } from './write-statements.js';

type Lost = Exclude<PlanVerdict, { readonly kind: 'committed' }>;

/** How often a batch is written whose rows are not what they should be; each time costs as much as the batch. */
const MAX_TRIES = 6;
/** A row stands where a checked write puts one. */
const TAKEN: ReadonlySet<string> = new Set(['UNIQUE', 'PRIMARYKEY', 'ROWID'].map((key) => `SQLITE_CONSTRAINT_${key}`));

export class Writer {
  readonly sessions: SessionRows;
  readonly routes: Counters['routes'];
  private readonly statements: WriteStatements;
  private readonly chains: TaskChains;
  /** Of the batch in the making, one after the other. */
  private links = '';
  private readonly counters: Counters;
  private readonly tasks: KnownTasks;
  readonly family: FamilyTables;
  private readonly repairs: Repairs;
  readonly purged: PurgeTables;
  readonly permits: PermitTables;
  private readonly check: PlanCheck;
  /** The plan that is being written; null when none is. */
  private inHand: number | null = null;
  /** What the plan that is being written has done to permits. */
  private moved: PermitsMoved[] = [];

  constructor(
    private readonly db: Database.Database,
    chain: HistoryChain = new HistoryChain(null),
  ) {
    this.statements = writeStatements(db);
    this.chains = new TaskChains(db, chain);
    this.sessions = new SessionRows(db);
    this.tasks = new KnownTasks(db);
    this.counters = new Counters(db);
    this.routes = this.counters.routes;
    this.family = new FamilyTables(db, this.tasks);
    const rederiving = new Rederiving(db);
    this.repairs = new Repairs(db, this.tasks, rederiving);
    this.purged = new PurgeTables(db, this.tasks, this.counters, new TombstoneRepairs(db, rederiving));
    this.permits = new PermitTables(db, this.tasks);
    const { tasks, sessions, family, repairs, purged, permits } = this;
    this.check = new PlanCheck(db, tasks, sessions, family, repairs, purged, permits);
  }

  /**
   * Throws StoreError `unavailable` (rolled back) or `fatal` (COMMIT failed, or the roll-back did). A plan that passed
   * its checks and cannot be written met rows that another program has changed: the batch is written once more without
   * anything taken for known, and that plan, if it comes to that again, is dropped alone.
   */
  commit(message: BatchMessage): BatchReply {
    const dropped = new Map<number, Lost>();
    for (let tries = 1; ; tries++) {
      this.inHand = null;
      try {
        return this.inTransaction(() => this.writeAll(message, dropped));
      } catch (error) {
        const lost = this.inHand === null || tries === MAX_TRIES ? null : lostTo(error);
        if (this.inHand === null || lost === null) throw error;
        if (tries > 1 || lost.kind === 'conflict') dropped.set(this.inHand, lost);
      }
    }
  }

  private writeAll(message: BatchMessage, dropped: ReadonlyMap<number, Lost>): BatchReply {
    this.links = '';
    this.tasks.batch += 1;
    const lost: [number, Lost][] = [];
    const permits: [number, Partial<PermitsMoved>][] = [];
    const firstSequence = this.counters.beginBatch();
    let index = 0;
    for (const plan of decodeBatch(message)) {
      this.inHand = index;
      this.moved = [];
      const verdict = dropped.get(index) ?? this.write(plan);
      if (verdict !== null) lost.push([index, verdict]);
      if (this.moved.length > 0) permits.push([index, movedBy(this.moved)]);
      index += 1;
    }
    this.inHand = null;
    return { firstSequence, lost, links: this.links, permits };
  }

  /** One step; whether there is more. Throws as `commit` does. */
  sweepPurged(): boolean {
    return this.inTransaction(() => this.purged.sweep());
  }

  /** As `sweepPurged`. */
  forgetSessions(now: number, most: number): boolean {
    return this.inTransaction(() => this.sessions.forgetGone(now, most));
  }

  private inTransaction<Value>(work: () => Value): Value {
    let value: Value;
    try {
      this.statements.begin.run();
      value = work();
    } catch (error) {
      throw this.undo(error, 'unavailable');
    }
    try {
      this.statements.commit.run();
    } catch (error) {
      // A full disk stops the log before its commit mark is whole: the batch is not there. Whatever else goes wrong
      // at COMMIT may have reached the disk, and this process could no longer tell.
      throw this.undo(error, isFull(error) ? 'unavailable' : 'fatal');
    }
    return value;
  }

  private write(plan: RowPlan): Lost | null {
    const [only, second] = plan.writes;
    if (only === undefined || second !== undefined || plan.rare !== null) return this.writeChecked(plan);
    if (only.kind === 'update') {
      return this.check.version(only.taskId, only.baseVersion) ?? this.check.sessionReads(plan) ?? this.update(only);
    }
    const broken = plan.sessionReads.find((read) => !sessionHolds(this.sessions.get(read.sessionId), read));
    // With a session gone the key still answers first, and that takes the longer way.
    return broken === undefined ? this.insertGuarded(only) : this.check.all(plan);
  }

  private writeChecked(plan: RowPlan): Lost | null {
    const lost = this.check.all(plan);
    if (lost !== null) return lost;
    for (const write of plan.writes) {
      const refused = write.kind === 'insert' ? this.insertGuarded(write) : this.update(write);
      if (refused !== null) throw new Error(`a checked write of ${write.taskId} was refused`);
    }
    if (plan.rare !== null) this.writeRare(plan.rare);
    return null;
  }

  private insertGuarded(row: RowInsert): Lost | null {
    const { statements, counters } = this;
    const order = counters.nextOrder;
    if (statements.takeKey.run(row.namespace, row.idempotencyKey, order).changes === 0) {
      const holder = this.check.duplicate(row.namespace, row.idempotencyKey);
      if (holder === null) throw new Error('a key that was taken is free');
      return holder;
    }
    const { taskId, events } = row;
    if (this.check.isTombstone(row) || !this.insertTask(order, row)) {
      statements.freeKey.run(row.namespace, row.idempotencyKey);
      return { kind: 'task_id_taken', taskId };
    }
    counters.nextOrder = order + 1;
    statements.insertAdmission.run(order, row.admission);
    if (row.purgeAt !== undefined) statements.setPurgeAt.run(row.purgeAt, order);
    const task = this.tasks.remember(taskId, { order, version: events, writtenIn: this.tasks.batch, link: null });
    this.appendHistory(task, row, row.admission);
    return null;
  }

  /** False: the id is taken. */
  private insertTask(order: number, row: RowInsert): boolean {
    const { taskId, events, readyOrder, nextDueAt, leaseSession, record } = row;
    const route = this.routeId(row.routeKey);
    const { insertTask } = this.statements;
    const seal = sealOf(taskId, record);
    return (
      insertTask.run(order, taskId, events, route, readyOrder, nextDueAt, leaseSession, record, seal).changes === 1
    );
  }

  private update(row: RowUpdate): null {
    const { taskId, readyOrder, nextDueAt, leaseSession, record, purgeAt, baseVersion } = row;
    const task = this.tasks.get(taskId);
    const version = baseVersion + row.events;
    const seal = sealOf(taskId, record);
    const { updateTask } = this.statements;
    const changed =
      task !== null &&
      updateTask.run(version, readyOrder, nextDueAt, leaseSession, record, seal, task.order, baseVersion).changes === 1;
    if (!changed) throw new Overtaken(taskId);
    task.version = version;
    if (purgeAt !== undefined) this.statements.setPurgeAt.run(purgeAt, task.order);
    task.writtenIn = this.tasks.batch;
    this.appendHistory(task, row, null);
    return null;
  }

  /** `admission` is at hand for a new task only; an older one has it looked up where its first link needs it. */
  private appendHistory(task: KnownTask, row: AppendedRow, admission: string | null): void {
    const { counters } = this;
    const link = this.chains.next(task, row, admission);
    const { history, events } = row;
    this.statements.insertHistory.run(counters.nextSequence, task.order, task.version, history, bytesOf(link));
    this.links += link;
    counters.nextSequence += events;
  }

  private routeId(routeKey: string): number {
    const { routes } = this.counters;
    const known = routes.get(routeKey);
    if (known !== undefined) return known;
    const id = Number(this.statements.insertRoute.run(routeKey).lastInsertRowid);
    routes.set(routeKey, id);
    return id;
  }

  private writeRare(rare: RareParts): void {
    const { statements } = this;
    for (const write of rare.sessions) {
      const checked = this.check.sessionAfter(write);
      if (checked === null) throw new Error('a checked session write was refused');
      const after = this.sessions.remember(countedAtEnd(checked, (sessionId) => this.sessions.leasesOf(sessionId)));
      const { sessionId, ended } = after;
      if (write.kind === 'open' || write.kind === 'attach') statements.putSession.run(...columnsOf(after));
      else statements.updateSession.run(...standingOf(after));
      if (ended !== undefined) statements.endSession.run(ended.forgetAt, encodeEnd(ended), sessionId);
    }
    for (const { taskId, intentKey, contentHash, answerJson } of rare.ledger) {
      const task = this.tasks.get(taskId);
      if (task === null) throw new Error(`a checked ledger entry of ${taskId} has no task`);
      statements.insertLedger.run(task.order, intentKey, contentHash, answerJson);
    }
    for (const link of rare.links) this.family.write(link);
    for (const repair of rare.repairs) {
      this.appendHistory(this.repairs.write(repair, this.routeId(repair.routeKey)), repair, null);
    }
    for (const write of rare.permits) this.moved.push(this.permits.write(write));
    for (const { taskId, epoch, at, text } of rare.diagnostics) {
      const task = this.tasks.get(taskId);
      if (task === null) continue;
      statements.insertDiagnostic.run({ order: task.order, epoch, at, text, most: MAX_DIAGNOSTICS_PER_EPOCH });
    }
    if (rare.purge !== null) this.purged.purge(rare.purge);
    for (const operation of rare.operations) this.purged.keepOperation(operation);
    for (const repair of rare.tombstones) this.purged.repair(repair);
  }

  /** Rolls back and forgets everything that the transaction may have taught this process. */
  private undo(error: unknown, failure: 'unavailable' | 'fatal'): StoreError {
    try {
      if (this.db.inTransaction) this.statements.rollback.run();
      this.tasks.forget();
      this.sessions.forget();
      this.counters.reload();
    } catch (again) {
      return asStoreError(again, 'fatal');
    }
    return asStoreError(error, failure);
  }
}

/** The row of a task is not the one that is known. */
class Overtaken extends Error {
  constructor(readonly taskId: string) {
    super(`the version known of ${taskId} is not the one stored`);
  }
}

/** What becomes of a plan to which what is stored is no match; null for a failure of the disk or of the engine. */
function lostTo(error: unknown): Lost | null {
  if (!(error instanceof StoreError) || error.failure !== 'unavailable') return null;
  const { cause, message } = error;
  if (cause instanceof Overtaken) return { kind: 'conflict', subject: 'record', id: cause.taskId };
  return cause instanceof Database.SqliteError && !TAKEN.has(cause.code) ? null : { kind: 'damaged', detail: message };
}

function isFull(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code === 'SQLITE_FULL';
}

export function asStoreError(error: unknown, failure: 'unavailable' | 'fatal'): StoreError {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Database.SqliteError ? ` (${error.code})` : '';
  return new StoreError(failure, `sqlite: ${message}${code}`, { cause: error });
}
