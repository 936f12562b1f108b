/**
 * The SQLite store: the port on this side, SQLite in two worker threads on the other. Here batches are encoded and rows
 * decoded; no database is touched on this thread, so a slow sync stalls neither streams nor leases.
 */
import type { CommitBatch, Diagnostic, LedgerEntry, PlanVerdict, SessionRow } from '../commit-plan.js';
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
import type { EventBounds, EventPage, EventScope } from '../event-pages.js';
import { eventPage } from '../event-rows.js';
import type { PermitWait } from '../../kernel/permits.js';
import type { PermitState } from '../permit-rows.js';
import { historyPage } from '../history-page.js';
import { assertWellFormed } from '../plan-shape.js';
import type { OperationEntry, PurgeableTask } from '../purge-rows.js';
import { StoreError } from '../store-error.js';
import { eventsOfRow, eventsOfRows, purgedOfRow, taskOfRow } from '../stored-row.js';
import type {
  DueTask,
  LeasedTask,
  ListPage,
  ListQuery,
  PurgedTask,
  ReadyPosition,
  ReadyTask,
  StoredEvent,
  StoredTask,
  TaskStore,
} from '../task-store.js';
import { auditedEntry, historyStretch } from './audited-rows.js';
import { encodeBatch, verdictsOf } from './batch-message.js';
import { realPathOf } from './file-lock.js';
import type { ReaderCalls, StoreIdentity, WriterCalls } from './protocol.js';
import { type SqliteOptions, settingsOf } from './settings.js';
import { ThreadClient } from './thread-client.js';

/** Throws StoreError `fatal` with what is wrong: in use by another process, of a newer schema, not a Reeve file. */
export async function openSqliteStore(options: SqliteOptions): Promise<TaskStore> {
  const settings = settingsOf({ ...options, path: realPathOf(options.path) });
  const { client: writer, opened } = await ThreadClient.start<WriterCalls>({ role: 'writer', settings });
  try {
    const { client: reader } = await ThreadClient.start<ReaderCalls>({ role: 'reader', settings });
    return new SqliteStore(writer, reader, opened as StoreIdentity);
  } catch (error) {
    await writer.close();
    throw error;
  }
}

class SqliteStore implements TaskStore {
  private closing: Promise<void> | null = null;

  constructor(
    private readonly writer: ThreadClient<WriterCalls>,
    private readonly reader: ThreadClient<ReaderCalls>,
    private readonly identity: StoreIdentity,
  ) {}

  async commit(batch: CommitBatch): Promise<readonly PlanVerdict[]> {
    assertWellFormed(batch);
    if (batch.plans.length === 0) return [];
    const reply = await this.writer.call('commit', encodeBatch(batch.plans));
    return verdictsOf(batch.plans, reply);
  }

  /** Never needed: this store knows what became of a commit, or it is `fatal`. */
  outcomeOf(batch: CommitBatch): Promise<readonly PlanVerdict[] | null> {
    return Promise.reject(
      new StoreError('fatal', `sqlite leaves no outcome unknown, that of ${batch.batchId} neither`),
    );
  }

  /** In as many steps as the bytes need: other work of this thread and commits of the writer come in between. */
  async loadTasks(taskIds: readonly string[]): Promise<readonly (StoredTask | PurgedTask | null)[]> {
    const tasks: (StoredTask | PurgedTask | null)[] = [];
    while (tasks.length < taskIds.length) {
      const rest = tasks.length === 0 ? taskIds : taskIds.slice(tasks.length);
      for (const row of await this.writer.call('loadTasks', rest)) {
        tasks.push(row && ('purged' in row ? purgedOfRow(row.purged) : taskOfRow(row)));
      }
    }
    return tasks;
  }

  findTaskId(namespace: string, idempotencyKey: string): Promise<string | null> {
    return this.writer.call('findTaskId', namespace, idempotencyKey);
  }

  findLedgerEntry(taskId: string, intentKey: string): Promise<LedgerEntry | null> {
    return this.writer.call('findLedgerEntry', taskId, intentKey);
  }

  async readHistory(
    taskId: string,
    afterNumber: number,
    limit: number,
    maxBytes: number,
  ): Promise<readonly StoredEvent[]> {
    const rows = await this.reader.call('readHistory', taskId, afterNumber, limit, maxBytes);
    return historyPage(eventsOfRows(taskId, rows, afterNumber), limit, maxBytes);
  }

  async readEvent(taskId: string, eventNumber: number): Promise<StoredEvent | null> {
    const row = await this.writer.call('readEvent', taskId, eventNumber);
    return (row && eventsOfRow(taskId, row).find(({ event }) => event.number === eventNumber)) ?? null;
  }

  async readEvents(scope: EventScope, after: number, limit: number, maxBytes: number): Promise<EventPage> {
    return eventPage(await this.reader.call('readEvents', scope, after, limit, maxBytes), after, limit, maxBytes);
  }

  eventBounds(): Promise<EventBounds> {
    return this.reader.call('eventBounds');
  }

  readDiagnostics(taskId: string, limit: number): Promise<readonly Diagnostic[]> {
    return this.writer.call('readDiagnostics', taskId, limit);
  }

  async listTasks(query: ListQuery): Promise<ListPage> {
    const { rows, next } = await this.reader.call('listTasks', query);
    return { tasks: rows.map((row) => taskOfRow(row, query.withArgs ? 'with_args' : 'without_args')), next };
  }

  routeKeys(): Promise<readonly string[]> {
    return this.writer.call('routeKeys');
  }

  async readyTasks(routeKey: string, after: ReadyPosition | null, limit: number): Promise<readonly ReadyTask[]> {
    const rows = await this.writer.call('readyTasks', routeKey, after, limit);
    return rows.map(([readyOrder, order, taskId]) => ({ position: { readyOrder, order }, taskId }));
  }

  dueTasks(now: number, after: DueTask | null, limit: number): Promise<readonly DueTask[]> {
    return this.writer.call('dueTasks', now, after, limit);
  }

  earliestTimer(): Promise<number | null> {
    return this.writer.call('earliestTimer');
  }

  purgeable(now: number, after: PurgeableTask | null, limit: number): Promise<readonly PurgeableTask[]> {
    return this.writer.call('purgeable', now, after, limit);
  }

  sweepPurged(): Promise<boolean> {
    return this.writer.call('sweepPurged');
  }

  isNeeded(taskId: string): Promise<boolean> {
    return this.writer.call('isNeeded', taskId);
  }

  findOperation(key: string): Promise<OperationEntry | null> {
    return this.writer.call('findOperation', key);
  }

  loadSession(sessionId: string): Promise<SessionRow | null> {
    return this.writer.call('loadSession', sessionId);
  }

  sessions(expiredBefore: number | null, limit: number): Promise<readonly SessionRow[]> {
    return this.writer.call('sessions', expiredBefore, limit);
  }

  sessionsAhead(now: number, limit: number): Promise<readonly SessionRow[]> {
    return this.writer.call('sessionsAhead', now, limit);
  }

  goneSessions(afterId: string | null, limit: number): Promise<readonly SessionRow[]> {
    return this.writer.call('goneSessions', afterId, limit);
  }

  forgetSessions(now: number, most: number): Promise<boolean> {
    return this.writer.call('forgetSessions', now, most);
  }

  leaseHolders(): Promise<readonly string[]> {
    return this.writer.call('leaseHolders');
  }

  async tasksOfSession(sessionId: string, afterOrder: number, limit: number): Promise<readonly LeasedTask[]> {
    const rows = await this.writer.call('tasksOfSession', sessionId, afterOrder, limit);
    return rows.map(([order, taskId]) => ({ order, taskId }));
  }

  familyCounts(taskIds: readonly string[]): Promise<readonly FamilyCounts[]> {
    return this.writer.call('familyCounts', taskIds);
  }

  liveChildren(parentId: string, afterOrder: number, limit: number): Promise<readonly ChildRow[]> {
    return this.writer.call('liveChildren', parentId, afterOrder, limit);
  }

  waitersOf(taskId: string, generation: number, afterOrder: number, limit: number): Promise<readonly WaiterRow[]> {
    return this.writer.call('waitersOf', taskId, generation, afterOrder, limit);
  }

  propagations(after: StoredPropagation | null, limit: number): Promise<readonly StoredPropagation[]> {
    return this.writer.call('propagations', after, limit);
  }

  async auditTasks(query: AuditQuery): Promise<AuditPage> {
    const { entries, next } = await this.reader.call('auditTasks', query);
    return { entries: entries.map((row) => row && auditedEntry(row)), next };
  }

  async auditHistory(order: number, afterNumber: number, throughNumber: number): Promise<HistoryStretch> {
    return historyStretch(await this.reader.call('auditHistory', order, afterNumber, throughNumber));
  }

  auditKeys(query: NamedQuery<KeyName>): Promise<AuditedKeys> {
    return this.reader.call('auditKeys', query);
  }

  auditSessions(query: NamedQuery<string>): Promise<AuditedSessions> {
    return this.reader.call('auditSessions', query);
  }

  auditPermits(query: NamedQuery<string>): Promise<AuditedPermits> {
    return this.reader.call('auditPermits', query);
  }

  permits(after: string | null, limit: number): Promise<readonly PermitState[]> {
    return this.writer.call('permits', after, limit);
  }

  permitWait(taskId: string): Promise<PermitWait | null> {
    return this.writer.call('permitWait', taskId);
  }

  secret(): Promise<string> {
    return Promise.resolve(this.identity.secret);
  }

  incarnation(): Promise<string> {
    return Promise.resolve(this.identity.incarnation);
  }

  /** Either thread: without its reader the store answers no lists and no histories, and must not seem to be well. */
  onDeath(listener: (error: StoreError) => void): void {
    let told = false;
    const once = (error: StoreError): void => {
      if (told || this.closing !== null) return;
      told = true;
      listener(error);
    };
    this.writer.onDeath(once);
    this.reader.onDeath(once);
  }

  /** Reader first, so that the last checkpoint finds nobody in the log. */
  close(): Promise<void> {
    this.closing ??= this.reader.close().then(() => this.writer.close());
    return this.closing;
  }
}
