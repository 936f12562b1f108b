/**
 * The port of the store: finished plans in, records and history out. It never decides.
 * Implemented by memory (tests and `reeve dev`), sqlite (the embedded default) and, later, mysql; one contract suite
 * holds them all to what is written here.
 */
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { TaskStatus } from '../kernel/status.js';
import type {
  AuditPage,
  AuditQuery,
  AuditedKeys,
  AuditedPermits,
  AuditedSessions,
  HistoryStretch,
  KeyName,
  NamedQuery,
} from './audit-rows.js';
import type { Tombstone } from '../kernel/tombstone.js';
import type { EventBounds, EventPage, EventScope } from './event-pages.js';
import type { ChildRow, FamilyCounts, StoredPropagation, WaiterRow } from './family-rows.js';
import type { Link } from './history-chain.js';
import type { PermitWait } from '../kernel/permits.js';
import type { PermitState } from './permit-rows.js';
import type { CommitBatch, Diagnostic, LedgerEntry, PlanVerdict, SessionRow } from './commit-plan.js';
import type { OperationEntry, PurgeableTask } from './purge-rows.js';
import type { StoreError } from './store-error.js';

/** A record as it was read, or the fact that what is stored cannot be trusted. */
export type StoredTask =
  | { readonly kind: 'task'; readonly taskId: string; readonly order: number; readonly record: TaskRecord }
  /** Fails its schema, or does not match its last event. Only this task is refused; all others go on. */
  | { readonly kind: 'damaged'; readonly taskId: string; readonly order: number; readonly detail: string };

/** What is left of a task that was purged. */
export interface PurgedTask {
  readonly kind: 'purged';
  readonly taskId: string;
  readonly order: number;
  readonly tombstone: Tombstone;
  /** The sequence that its admission had. */
  readonly firstSequence: number;
}

/** A committed event with its place in the order of the whole store. */
export interface StoredEvent {
  readonly sequence: number;
  readonly taskId: string;
  readonly event: TaskEvent;
  /** Of the commit that carried it; null for one from before there were links. */
  readonly link: Link | null;
}

/** A position in the ready index of a route: (ready order, admission order), exclusive. */
export interface ReadyPosition {
  readonly readyOrder: number;
  readonly order: number;
}

/** A ready task by name: its record is read, and judged to be sound, only when it is claimed. */
export interface ReadyTask {
  readonly position: ReadyPosition;
  readonly taskId: string;
}

/** A task whose lease a session holds, by name. */
export interface LeasedTask {
  readonly taskId: string;
  /** Admission order: the position to continue from. */
  readonly order: number;
}

export interface DueTask {
  readonly taskId: string;
  readonly dueAt: number;
  /** Admission order; with `dueAt` the position to continue from. */
  readonly order: number;
}

export interface ListQuery {
  readonly namespace: string | null;
  readonly queue: string | null;
  readonly statuses: readonly TaskStatus[] | null;
  readonly actionKinds: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Children of this task, attached or not; null or absent: of any task or none. */
  readonly parentTaskId?: string | null;
  readonly descending: boolean;
  /** Admission order to continue after; null from the end that comes first. */
  readonly after: number | null;
  readonly limit: number;
  /**
   * Without them the args of every record are an empty text: enough for whoever shows tasks without their args, never
   * to decide on.
   */
  readonly withArgs: boolean;
}

export interface ListPage {
  readonly tasks: readonly StoredTask[];
  /**
   * Where to continue; null when nothing is left. A page may be short, even empty, and still go on: the rows looked at
   * are bounded, and so are the bytes handed out.
   */
  readonly next: number | null;
}

/** How many rows one `listTasks` call looks at. */
export const MAX_ROWS_PER_LIST = 10_000;
/** A page of `listTasks` ends when its tasks weigh so many bytes, about; it holds one however heavy. */
export const MAX_BYTES_PER_LIST = 4 * 1024 * 1024;

export interface TaskStore {
  /**
   * Writes one batch in one transaction, synced before it answers; a verdict per plan, in order.
   * Throws StoreError: `unavailable` (nothing written), `outcome_unknown` (ask `outcomeOf`), `fatal`.
   */
  commit(batch: CommitBatch): Promise<readonly PlanVerdict[]>;

  /**
   * Finds out what became of a batch whose commit ended `outcome_unknown`: its verdicts, or null when it was not
   * committed and never will be. Throws StoreError `unavailable` while that cannot be told.
   */
  outcomeOf(batch: CommitBatch): Promise<readonly PlanVerdict[] | null>;

  /**
   * By task id, in the order asked; null where there never was one. Sees every commit answered before the call. However
   * many are asked for, no single step of reading them handles more than a few MiB.
   */
  loadTasks(taskIds: readonly string[]): Promise<readonly (StoredTask | PurgedTask | null)[]>;
  /** Also that of a purged task: a key names its task for ever. */
  findTaskId(namespace: string, idempotencyKey: string): Promise<string | null>;
  findLedgerEntry(taskId: string, intentKey: string): Promise<LedgerEntry | null>;

  /**
   * Events of one task with numbers above `afterNumber`, ascending; at least one if there is any, at most `limit` and
   * about `maxBytes`. Throws StoreError `damaged`, as does `readEvent`.
   */
  readHistory(taskId: string, afterNumber: number, limit: number, maxBytes: number): Promise<readonly StoredEvent[]>;

  /** One event by its number; null when there is none. */
  readEvent(taskId: string, eventNumber: number): Promise<StoredEvent | null>;

  /**
   * Events in scope with sequences above `after`, ascending: at most `limit` and about `maxBytes`, at least one if a row
   * that is looked at has any. Horizon and events are of one moment.
   */
  readEvents(scope: EventScope, after: number, limit: number, maxBytes: number): Promise<EventPage>;
  eventBounds(): Promise<EventBounds>;

  /** What stale workers said of this task, by epoch and then as it came; at most MAX_DIAGNOSTICS_PER_EPOCH per epoch. */
  readDiagnostics(taskId: string, limit: number): Promise<readonly Diagnostic[]>;

  /** Admission order descending or ascending, filtered; see ListPage. */
  listTasks(query: ListQuery): Promise<ListPage>;

  /** Every route that any task was ever admitted under. */
  routeKeys(): Promise<readonly string[]>;
  /**
   * Ready tasks of a route in order, strictly after `after`. Cost does not depend on the backlog. Sees also every
   * commit of this process that was begun before the call: a window filled from it must not miss one in flight.
   */
  readyTasks(routeKey: string, after: ReadyPosition | null, limit: number): Promise<readonly ReadyTask[]>;

  /** Tasks whose timer is due at `now` (epoch ms) or before, earliest first, strictly after the position given. */
  dueTasks(now: number, after: DueTask | null, limit: number): Promise<readonly DueTask[]>;
  /** The earliest timer of any task in epoch ms; null when none runs. */
  earliestTimer(): Promise<number | null>;

  /** Finished tasks that may go at `now` (epoch ms), longest due first, strictly after the position given. */
  purgeable(now: number, after: PurgeableTask | null, limit: number): Promise<readonly PurgeableTask[]>;
  /** Removes a bounded part of what purged tasks left behind; whether there is more. Throws StoreError `unavailable`. */
  sweepPurged(): Promise<boolean>;
  /** Whether anything lives under this task, waits for it or is still to hear of it: what would keep it from a purge. */
  isNeeded(taskId: string): Promise<boolean>;
  findOperation(key: string): Promise<OperationEntry | null>;

  loadSession(sessionId: string): Promise<SessionRow | null>;
  /** Sessions not gone, all of them if `expiredBefore` is null, else those with `expiresAt` strictly below it. */
  sessions(expiredBefore: number | null, limit: number): Promise<readonly SessionRow[]>;
  /**
   * Sessions not gone that would outlast `now` (epoch ms) by more than their TTL: a clock that was set back since wrote
   * them.
   */
  sessionsAhead(now: number, limit: number): Promise<readonly SessionRow[]>;
  /** Sessions that are gone and not forgotten, in the order of their ids, after the one given. */
  goneSessions(afterId: string | null, limit: number): Promise<readonly SessionRow[]>;
  /**
   * Removes a bounded number of rows of gone sessions that hold no lease: those whose time has come at `now` (epoch ms),
   * and of the others so many that about `most` gone ones are left, those first whose time would come first. Whether
   * there is more. Throws StoreError `unavailable`.
   */
  forgetSessions(now: number, most: number): Promise<boolean>;
  /** The sessions that hold the lease of any task, each once. */
  leaseHolders(): Promise<readonly string[]>;
  /** Tasks whose lease a session holds, in admission order, after the one given. */
  tasksOfSession(sessionId: string, afterOrder: number, limit: number): Promise<readonly LeasedTask[]>;

  /** By task id, in the order asked: the counts that its followers share; zeros where it has none. */
  familyCounts(taskIds: readonly string[]): Promise<readonly FamilyCounts[]>;
  /** Attached children that live, in admission order, after the one given. */
  liveChildren(parentId: string, afterOrder: number, limit: number): Promise<readonly ChildRow[]>;
  /** Open edges from this generation to the tasks that wait for it, in admission order of those, after the one given. */
  waitersOf(taskId: string, generation: number, afterOrder: number, limit: number): Promise<readonly WaiterRow[]>;
  /** What was committed and not yet told to all who follow, by task and generation, after the one given. */
  propagations(after: StoredPropagation | null, limit: number): Promise<readonly StoredPropagation[]>;

  /**
   * What is stored of tasks and of what is left of others, in admission order or those named, each in one snapshot; as
   * it is, damaged or not. Bounded in entries and in bytes.
   */
  auditTasks(query: AuditQuery): Promise<AuditPage>;
  /**
   * Commits of the task of this admission order whose last events have numbers above `afterNumber` and up to
   * `throughNumber`; see MAX_HISTORY_PER_STRETCH. At least one if there is any.
   */
  auditHistory(order: number, afterNumber: number, throughNumber: number): Promise<HistoryStretch>;
  /** Idempotency keys, ordered by themselves. */
  auditKeys(query: NamedQuery<KeyName>): Promise<AuditedKeys>;
  /** Sessions, ordered by their ids. */
  auditSessions(query: NamedQuery<string>): Promise<AuditedSessions>;
  /** Permits as they are counted and as they stand. */
  auditPermits(query: NamedQuery<string>): Promise<AuditedPermits>;
  /** Permits that somebody runs with or waits for, in the order of their names, after the one given. */
  permits(after: string | null, limit: number): Promise<readonly PermitState[]>;
  /** The permit that a task waits for; null when it waits for none. */
  permitWait(taskId: string): Promise<PermitWait | null>;

  /** 32 random bytes made when the store was, as hex: leases and sessions derive their tokens from it. */
  secret(): Promise<string>;
  /** Made with the store; another one when the store is restored or copied, so that a cursor tells whose it is. */
  incarnation(): Promise<string>;

  /**
   * The listener is told once when the store must not be used any more, whether or not anybody asks it anything then;
   * at once if that is known already. A proper close tells nobody.
   */
  onDeath(listener: (error: StoreError) => void): void;

  close(): Promise<void>;
}
