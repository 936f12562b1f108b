/**
 * What a store tells an audit of a task: everything that it keeps of it, as it is and not as it should be, each task in
 * one snapshot. Nothing is judged here; only what needs the payloads or the chain key is found where those are.
 */
import type { TaskEvent } from '../kernel/event.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import type { RecordIndex, SessionState } from './commit-plan.js';
import type { Decoded } from './decode-guards.js';
import type { FamilyCounts } from './family-rows.js';
import type { Link } from './history-chain.js';

/** These tasks, or all of them in admission order. */
export interface AuditQuery {
  readonly taskIds: readonly string[] | null;
  /** Where to continue after: an admission order, or how many of `taskIds` were read; 0 from the start. */
  readonly after: number;
  readonly limit: number;
}

export interface AuditPage {
  /** In the order asked; null for an id that no task has. */
  readonly tasks: readonly (AuditedTask | null)[];
  /** Null when nothing is left. */
  readonly next: number | null;
}

export interface AuditedTask {
  readonly order: number;
  /** Null: the row that names the task is gone, and something else of it is left. */
  readonly taskId: string | null;
  /** Without its args: never to decide on but for a repair. */
  readonly admission: Decoded<Admission>;
  /** Whether the args are those of the application's hash. */
  readonly argsHold: boolean;
  readonly record: Decoded<TaskRecord>;
  readonly version: number | null;
  readonly routeKey: string | null;
  /** It is in a line for a permit, and so not ready. */
  readonly waitsForPermit: boolean;
  readonly index: RecordIndex;
  /** The number of the last event of the history; null without any. */
  readonly lastNumber: number | null;
  /** The admission order that the task's key leads to; null: nowhere. */
  readonly keyOrder: number | null;
  /** Of the record's lease; null: there is none, or no lease. */
  readonly session: SessionStanding | null;
  readonly family: AuditedFamily;
  readonly history: HistoryStretch;
  /** Changes with anything of the record and of the history's end. */
  readonly fingerprint: string;
}

export interface SessionStanding {
  readonly state: SessionState;
  readonly expiresAt: number;
  readonly ttlMs: number;
}

export interface AuditedFamily {
  /** As the store counts. */
  readonly counts: FamilyCounts;
  /** As there are. */
  readonly found: FamilyCounts;
  /** Whether its parent's row says that it lives; null: there is no such row. */
  readonly livesAsChild: boolean | null;
  /** Of a child: its parent's record, null when there is none that can be read. */
  readonly parent: TaskRecord | null;
  /** Something of the parent is still to be told. */
  readonly parentPropagates: boolean;
}

/** Commits in order; `more` when others follow. */
export interface HistoryStretch {
  readonly commits: readonly AuditedCommit[];
  readonly more: boolean;
}

export interface AuditedCommit {
  readonly firstSequence: number;
  readonly lastNumber: number;
  readonly events: Decoded<readonly TaskEvent[]>;
  readonly link: Link | null;
  /** Whether its link is the one that follows from the commit before it; `unlinked`: it is from before there were links. */
  readonly chain: 'holds' | 'broken' | 'unlinked';
}

/** A task is told with its history up to this, in UTF-16 units, about; the rest comes in stretches of it. */
export const MAX_HISTORY_PER_STRETCH = 256 * 1024;
/** A page of an audit ends when it weighs so much, about; it holds one task however heavy. */
export const MAX_BYTES_PER_AUDIT = 2 * 1024 * 1024;
