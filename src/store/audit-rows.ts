/**
 * What a store tells an audit: everything that it keeps of a task or of what is left of one, as it is and not as it
 * should be, each in one snapshot; then the keys and the sessions, which are found by no task. Nothing is judged here;
 * only what needs the payloads or the chain key is found where those are.
 */
import type { DependencyCondition } from '../kernel/admission/family-policy.js';
import type { TaskEvent } from '../kernel/event.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import type { Tombstone } from '../kernel/tombstone.js';
import type { RecordIndex, SessionState } from './commit-plan.js';
import type { Decoded } from './decode-guards.js';
import type { FamilyCounts, FollowedOutcome } from './family-rows.js';
import type { Link } from './history-chain.js';
import type { PermitRowState } from './permit-rules.js';
import type { SealState } from './record-seal.js';

/** These tasks, or all of them in admission order with all that is left of any other. */
export interface AuditQuery {
  readonly taskIds: readonly string[] | null;
  /** Where to continue after: an admission order, or how many of `taskIds` were read; 0 from the start. */
  readonly after: number;
  readonly limit: number;
}

export interface AuditPage {
  /** In the order asked; null for an id that no task has or had. */
  readonly entries: readonly (Audited | null)[];
  /** Null when nothing is left. */
  readonly next: number | null;
}

/** What stands at one place in the order of admission. */
export type Audited = AuditedTask | AuditedTombstone | AuditedRemains;

export interface AuditedTask {
  readonly kind: 'task';
  readonly order: number;
  readonly taskId: string;
  /** A tombstone stands in its place, or bears its id. */
  readonly hasTombstone: boolean;
  /** A sweep is to take away what is kept of it, as if it were purged. */
  readonly awaitsSweep: boolean;
  /** Without its args: never to decide on but for a repair. */
  readonly admission: Decoded<Admission>;
  /** Whether the args are those of the application's hash. */
  readonly argsHold: boolean;
  /** As it reads, whether it is the one that was written or not. */
  readonly record: Decoded<TaskRecord>;
  readonly seal: SealState;
  readonly version: number;
  readonly routeKey: string | null;
  /** Its places in the lines of permits, in the order of their names. */
  readonly permits: readonly AuditedPermitRow[];
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

/** What is left of a purged task. */
export interface AuditedTombstone {
  readonly kind: 'purged';
  readonly order: number;
  readonly taskId: string;
  readonly tombstone: Decoded<Tombstone>;
  /** It cannot be read, and an operator has said that it is lost. */
  readonly isGivenUp: boolean;
  /** The sequence that its admission had; 0 when that was not known. */
  readonly firstSequence: number;
  /** The admission order that its key leads to; null: nowhere, or the key is not known. */
  readonly keyOrder: number | null;
  readonly awaitsSweep: boolean;
  /** What else is still there. */
  readonly left: readonly Leftover[];
  /** Of the same moment, as is `given`. */
  readonly horizon: number;
  /** Sequences up to here at the least were given out. */
  readonly given: number;
  /** Changes with the tombstone. */
  readonly fingerprint: string;
}

/** Rows of what is neither a task nor a purged one. */
export interface AuditedRemains {
  readonly kind: 'remains';
  readonly order: number;
  readonly left: readonly Leftover[];
}

/** Kinds of rows that are kept of a task beside the one that names it. */
export const LEFTOVERS = [
  'admission',
  'history',
  'intents',
  'diagnostics',
  'place_as_child',
  'counts',
  'edges',
  'propagations',
  'permits',
  'sweep',
] as const;
export type Leftover = (typeof LEFTOVERS)[number];

/** What a sweep takes away of a purged task; all else went with the purge itself. */
export const SWEPT: readonly Leftover[] = ['admission', 'history', 'intents', 'diagnostics', 'sweep'];

export interface AuditedPermitRow {
  /** Null: the permit that it is of is not there. */
  readonly name: string | null;
  /** Null: it is none that there is. */
  readonly state: PermitRowState | null;
  /** Whether it stands under the route of its task. */
  readonly isOfRoute: boolean;
  /** Its place in line; of one that runs, where it stood. */
  readonly readyOrder: number;
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
  /** Its rows as a child, under whichever parent; at most two of them. */
  readonly asChild: readonly PlaceAsChild[];
  /** Of a child: its parent's record, null when there is none that can be read. */
  readonly parent: TaskRecord | null;
  /** Something of the parent's generation is still to be told. */
  readonly parentPropagates: boolean;
  /** Of a task that is asked to end: one of its first live children is not. */
  readonly hasUnaskedChild: boolean;
  /** What is still to be told of it; at most MAX_NEWS_AUDITED. */
  readonly propagations: readonly AuditedPropagation[];
  /** Its generations that others wait for; at most MAX_NEWS_AUDITED of them. */
  readonly awaited: readonly number[];
  /** What it waits for; never more than it may wait for and one. */
  readonly edges: readonly AuditedEdge[];
}

export interface PlaceAsChild {
  /** Whether it is under the parent that its admission names. */
  readonly isNamed: boolean;
  readonly live: boolean;
}

export interface AuditedPropagation {
  readonly generation: number;
  /** Null: it is none that there is. */
  readonly outcome: FollowedOutcome | null;
  readonly eventNumber: number;
}

export interface AuditedEdge {
  /** Null where neither a task nor a tombstone has the place that it names. */
  readonly upstreamId: string | null;
  readonly upstream: 'task' | 'purged' | 'nowhere';
  readonly generation: number;
  readonly condition: DependencyCondition | null;
}

/** Generations of which something is open; more than one at a time is rare. */
export const MAX_NEWS_AUDITED = 16;
/** Of a parent that is asked to end so many live children are looked at; each looks at its parent when its turn comes. */
export const MAX_CHILDREN_LOOKED_AT = 16;

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
  /** Where the next commit of any task begins; null: behind this one there is none. */
  readonly nextSequence: number | null;
}

/** A task is told with its history up to this, in UTF-16 units, about; the rest comes in stretches of it. */
export const MAX_HISTORY_PER_STRETCH = 256 * 1024;
/** A page of an audit ends when it weighs so much, about; it holds one task however heavy. */
export const MAX_BYTES_PER_AUDIT = 2 * 1024 * 1024;

/** What is found by no task: these, as far as there are any, or all in the order of their names after the one given. */
export interface NamedQuery<Name> {
  readonly names: readonly Name[] | null;
  readonly after: Name | null;
  readonly limit: number;
}

export interface KeyName {
  readonly namespace: string;
  readonly idempotencyKey: string;
}

export interface AuditedKey {
  readonly name: KeyName;
  /** The admission order that it leads to. */
  readonly order: number;
  /** `own`: what stands there was admitted under it; `unread`: that cannot be told, since what stands there is damaged. */
  readonly leads: 'own' | 'to_another' | 'nowhere' | 'unread';
}

/** Idempotency keys in their own order. */
export interface AuditedKeys {
  readonly keys: readonly AuditedKey[];
  readonly next: KeyName | null;
}

export interface AuditedSession {
  readonly sessionId: string;
  /** Null: what is stored of it is no session. */
  readonly standing: SessionStanding | null;
}

/** Sessions in the order of their ids, also those that are gone. */
export interface AuditedSessions {
  readonly sessions: readonly AuditedSession[];
  readonly next: string | null;
}

export interface AuditedPermit {
  readonly name: string;
  /** As the store counts, and as there are. */
  readonly running: number;
  readonly found: number;
  /** Whether its lines are counted as they stand. */
  readonly linesAgree: boolean;
  /** As those counts have it (`PermitState.settled`). */
  readonly settled: boolean;
  /** Any task that runs with it or stands in line for it; null without any. */
  readonly taskId: string | null;
}

/** A page of permits ends when so many tasks were counted that stand for them, about; it holds one however many do. */
export const MAX_PLACES_PER_AUDIT = 100_000;

export interface AuditedPermits {
  readonly permits: readonly AuditedPermit[];
  readonly next: string | null;
}
