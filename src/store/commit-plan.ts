/**
 * Commit plans: finished decisions, ready to be written (architecture.md, "the store never decides").
 * A plan says what its decision read and what it writes; a batch of plans is one transaction. The outcome is as if
 * the plans were committed one after another in their order: each is checked against the store as the plans before
 * it left it, a plan that lost is dropped whole, and the others are written.
 */
import type { Admission, TaskRecord } from '../kernel/record.js';
import type { TaskEvent } from '../kernel/event.js';
import type { LinkWrite } from './family-rows.js';
import type { Link } from './history-chain.js';
import type { OperationWrite, PurgeWrite, TombstoneRepair } from './purge-rows.js';
import type { PermitWish, PermitWrite, PermitsMoved } from './permit-rows.js';

export interface CommitPlan {
  /** Records that the decision looked at and that this plan does not write itself. */
  readonly recordReads: readonly RecordRead[];
  readonly sessionReads: readonly SessionRead[];
  readonly records: readonly RecordWrite[];
  readonly sessions: readonly SessionWrite[];
  /** Idempotency entries of intents on existing tasks. */
  readonly ledger: readonly LedgerEntry[];
  readonly diagnostics: readonly Diagnostic[];
  /** What it says of families and dependencies; absent for a task that has neither. */
  readonly links?: readonly LinkWrite[];
  /** Records that are overwritten as an operator said; absent but for a repair. */
  readonly repairs?: readonly RepairWrite[];
  /** Takes one task away; then the plan writes nothing else. Absent for nearly every plan, as are operations. */
  readonly purge?: PurgeWrite;
  readonly operations?: readonly OperationWrite[];
  /** What is left of purged tasks, mended as an operator said; absent but for that. */
  readonly tombstones?: readonly TombstoneRepair[];
  /** What it says of permits beside its record; absent for nearly every plan. */
  readonly permits?: readonly PermitWrite[];
}

export interface RecordRead {
  readonly taskId: string;
  /** The number of the last event the decision saw. */
  readonly version: number;
  /**
   * Set when a plan before it in the batch is to leave that version: it then holds only if that plan was written. The
   * number alone could be that of another writer's event.
   */
  readonly ofBatch?: true;
}

/** Holds while the session is not gone and is attached as the decision saw it. */
export interface SessionRead {
  readonly sessionId: string;
  readonly attachment: number;
  /** A claim needs a session that still takes work; a worker's word only one that is not gone. */
  readonly needs: 'live' | 'not_gone';
}

/** What the store indexes about a record, computed by the kernel. Null: not in that index. */
export interface RecordIndex {
  readonly readyOrder: number | null;
  readonly nextDueAt: number | null;
  readonly leaseSession: string | null;
  /** Epoch ms from which the task may be purged. */
  readonly purgeAt: number | null;
  /**
   * The permits without which it may not run, for the tasks that need any. Its ready order is then where it wants to
   * stand: it is in the ready index while it has passed all of them, and a claim of it is refused where one is full.
   */
  readonly permits?: PermitWish;
}

/** A new record: its key and its task id must both be free, also of purged tasks. */
export interface RecordInsert {
  readonly kind: 'insert';
  readonly admission: Admission;
  readonly routeKey: string;
  /** The id was made for this task: it need not be looked for among those of purged ones. */
  readonly idIsFresh?: true;
  readonly record: TaskRecord;
  readonly index: RecordIndex;
  readonly events: readonly TaskEvent[];
}

/** A changed record: its stored version must still be `baseVersion`. `events` continue from there without a gap. */
export interface RecordUpdate {
  readonly kind: 'update';
  readonly taskId: string;
  readonly baseVersion: number;
  readonly record: TaskRecord;
  readonly index: RecordIndex;
  readonly events: readonly TaskEvent[];
}

export type RecordWrite = RecordInsert | RecordUpdate;

/**
 * An operator's repair: the record is overwritten whatever is stored of it, and one event says so. Refused (conflict on
 * the record) unless everything that was seen of the task still is as it was.
 */
export interface RepairWrite {
  readonly taskId: string;
  /** `AuditedTask.fingerprint` of what the repair was decided on. */
  readonly fingerprint: string;
  readonly record: TaskRecord;
  readonly routeKey: string;
  readonly index: RecordIndex;
  /** Its number is the record's last event. */
  readonly event: TaskEvent;
  /** What is derived beside the record is written anew: its key, its place as a child, the counts of its family. */
  readonly rederive: boolean;
  /** And what is counted of its permits, by all who stand for them; it takes as long as their lines are. */
  readonly recount: boolean;
  /** Of this event the payloads are taken out. */
  readonly redact: number | null;
}

export type SessionState = 'live' | 'draining' | 'gone';

/** A worker's presence. Times in epoch ms, spans in ms. */
export interface SessionRow {
  readonly sessionId: string;
  readonly state: SessionState;
  readonly expiresAt: number;
  /** Grows with every attach of a stream. */
  readonly attachment: number;
  readonly ttlMs: number;
  readonly lingerMs: number | null;
  readonly workerName: string;
  /** The subscription and versions of its Hello, as JSON text; opaque to the store. */
  readonly helloJson: string;
  readonly createdAt: number;
  /** Absent until it is gone, and for one that went before this was kept. */
  readonly ended?: EndedSession;
}

/**
 * Why a session is gone: it was not heard from in time; its stream ended and it had asked for no linger; it was a session
 * of one claim, and is over with it.
 */
export type SessionEndCause = 'expired' | 'stream_ended' | 'claim_ended';

/** What is said of a session that ends. Times in epoch ms. */
export interface SessionEnd {
  readonly at: number;
  readonly cause: SessionEndCause;
  /** From then on its row may be forgotten. */
  readonly forgetAt: number;
}

/** And what the store saw when it ended. */
export interface EndedSession extends SessionEnd {
  /** It was draining: it left on purpose. */
  readonly drained: boolean;
  /** How many leases it held, and the first of their tasks in admission order, at most MAX_TASKS_NAMED_AT_END. */
  readonly held: number;
  readonly taskIds: readonly string[];
}

/** So that the row of a session that held thousands stays small; their histories say the rest. */
export const MAX_TASKS_NAMED_AT_END = 32;

export type SessionWrite =
  | { readonly kind: 'open'; readonly session: SessionRow }
  /** A stream re-attaches: refused when the session is gone. `from` is the attachment that was seen. */
  | {
      readonly kind: 'attach';
      readonly sessionId: string;
      readonly from: number;
      readonly expiresAt: number;
      /** What its new Hello says takes the place of what the one before said. */
      readonly ttlMs: number;
      readonly lingerMs: number | null;
      readonly workerName: string;
      readonly helloJson: string;
    }
  /** Refused when the session is gone or was attached by another stream since. */
  | { readonly kind: 'renew'; readonly sessionId: string; readonly attachment: number; readonly expiresAt: number }
  /** The stream of this attachment ended: the session lasts no longer than `until`, and never longer than before. */
  | { readonly kind: 'linger'; readonly sessionId: string; readonly attachment: number; readonly until: number }
  /** Refused unless it is live under this attachment. */
  | { readonly kind: 'drain'; readonly sessionId: string; readonly attachment: number }
  /** Takes an expired session: refused when it is gone already or `expiresAt` is not strictly below `end.at`. */
  | { readonly kind: 'expire'; readonly sessionId: string; readonly end: SessionEnd }
  /** Ends a session of this attachment at once, whatever its expiry. */
  | { readonly kind: 'end'; readonly sessionId: string; readonly attachment: number; readonly end: SessionEnd };

/** The original answer to a keyed intent, kept as long as its task is. */
export interface LedgerEntry {
  readonly taskId: string;
  readonly intentKey: string;
  /** `sha256:<hex>` of the intent's canonical content. */
  readonly contentHash: string;
  /** What a repeat is answered with, as JSON text; opaque to the store. */
  readonly answerJson: string;
}

/** What a stale worker said; at most 16 are kept per task and epoch, further ones are dropped. */
export interface Diagnostic {
  readonly taskId: string;
  readonly epoch: number;
  readonly at: number;
  readonly text: string;
}

export const MAX_DIAGNOSTICS_PER_EPOCH = 16;

export type PlanVerdict =
  /**
   * `firstSequences[i]` is the sequence of the first event of `records[i]`, those of `repairs` behind; the other events
   * follow it one by one. `links[i]` is the link of that write in the hash chain of its task.
   */
  | ({
      readonly kind: 'committed';
      readonly firstSequences: readonly number[];
      readonly links: readonly Link[];
    } & Partial<PermitsMoved>)
  /** Something the decision read has changed; judge again on fresh records. */
  | { readonly kind: 'conflict'; readonly subject: 'record' | 'session' | 'family'; readonly id: string }
  /** It claims a task though as many run with the permit named as may: it is not claimable now. */
  | { readonly kind: 'conflict'; readonly subject: 'permit'; readonly id: string }
  /** The (namespace, key) of an insert is taken by this task, if only by a purged one. */
  | { readonly kind: 'duplicate'; readonly taskId: string }
  | { readonly kind: 'task_id_taken'; readonly taskId: string }
  /** A ledger key is taken; `original` is what stands there. */
  | { readonly kind: 'repeated'; readonly original: LedgerEntry }
  /** What stands where the plan would write cannot be trusted; only this plan is dropped. `detail` is for the log. */
  | { readonly kind: 'damaged'; readonly detail: string };

/** One transaction's worth. */
export interface CommitBatch {
  /** Names the batch, so that an unknown outcome can be found out. Unique per attempt. */
  readonly batchId: string;
  readonly plans: readonly CommitPlan[];
}

/** At most this many plans in one transaction, so that its time is bounded; their bytes are the committer's to bound. */
export const MAX_PLANS_PER_BATCH = 1_024;
