/**
 * The invariants that an audit checks, each by the name under which it is told and documented
 * (docs/operations/verify.md is written from here). A name, once released, keeps its meaning.
 */
import type { RepairKind } from '../kernel/event.js';

export interface Invariant {
  /** What must hold. */
  readonly says: string;
  /** The repairs that mend it; none for what cannot be mended here. */
  readonly mendedBy: readonly RepairKind[];
  /** Somebody is about to see to it: told only when it does not pass. */
  readonly passes?: true;
}

const REBUILD: readonly RepairKind[] = ['rebuild_record', 'accept_record'];
const ACCEPT: readonly RepairKind[] = ['accept_record'];
const REINDEX: readonly RepairKind[] = ['reindex'];
const NONE: readonly RepairKind[] = [];

export const INVARIANTS = {
  'store.rows': {
    says: 'What is kept is of a task or of a purged one: one of them stands in its place, and not both.',
    mendedBy: NONE,
  },
  'store.admission': { says: 'The admission can be read.', mendedBy: NONE },
  'store.record': { says: 'The record can be read.', mendedBy: ['rebuild_record'] },
  'store.version': {
    says: "The record's version is that of its row and the number of its history's last event.",
    mendedBy: REBUILD,
  },
  'store.seal': { says: 'The record is the one that was written, to the letter.', mendedBy: REBUILD },
  'store.key': { says: 'The idempotency key leads to the task.', mendedBy: REINDEX },
  'store.keys': { says: 'Every key leads to what was admitted under it, be it purged.', mendedBy: NONE },
  'store.sweep': { says: 'What is to be swept is of a purged task.', mendedBy: REINDEX },
  'store.purges': { says: 'There are as many tombstones as purges were counted.', mendedBy: NONE },
  'store.horizon': {
    says: 'The horizon is a sequence that was given, and 0 while nothing was purged.',
    mendedBy: NONE,
  },
  'admission.hash': { says: 'The args hash to what was admitted.', mendedBy: NONE },
  'chain.link': {
    says: 'Every commit has the link that follows from the commit before it and from what it says.',
    mendedBy: ACCEPT,
  },
  'history.readable': { says: 'Every commit of the history can be read.', mendedBy: ACCEPT },
  'history.numbers': { says: 'Event numbers are 1, 2, 3, … without gaps.', mendedBy: ACCEPT },
  'history.sequences': {
    says: 'Later events of a task have higher sequences, and no two events of any have the same.',
    mendedBy: ACCEPT,
  },
  'history.revisions': { says: 'Facts, and nothing else, have revisions 1, 2, 3, … without gaps.', mendedBy: ACCEPT },
  'history.edges': {
    says: 'Every change of status is declared and begins where the one before ended.',
    mendedBy: ACCEPT,
  },
  'history.terminal': { says: 'Nothing follows the end of a generation but the next one.', mendedBy: ACCEPT },
  'history.epochs': { says: 'Every claim has a higher epoch than the one before.', mendedBy: ACCEPT },
  'history.settlements': { says: 'Every epoch ends once, and no event names another epoch.', mendedBy: ACCEPT },
  'history.fence': { says: 'No claim follows a cancel request in its generation.', mendedBy: ACCEPT },
  'history.projection': {
    says: 'The AEP states of a generation are a legal path of the AEP table.',
    mendedBy: ACCEPT,
  },
  'history.fold': { says: 'The record is the fold of its history.', mendedBy: REBUILD },
  'record.lease': { says: 'A task runs exactly when it has a lease, and the lease has its epoch.', mendedBy: REBUILD },
  'record.attempts': { says: 'The attempt is the number of claims less those given back.', mendedBy: REBUILD },
  'record.times': {
    says: 'What waits for a retry has its time, what is queued its queue time, what is over its end.',
    mendedBy: REBUILD,
  },
  'record.session': { says: 'The session of a lease is there and not gone.', mendedBy: NONE, passes: true },
  'index.route': { says: 'The task stands under its route.', mendedBy: REINDEX },
  'index.ready': {
    says: 'A claimable task stands in the ready index where its order says, no other does.',
    mendedBy: REINDEX,
  },
  'index.purge': {
    says: 'Only a finished task is due for a purge, and when its own retention says.',
    mendedBy: REINDEX,
  },
  'index.due': { says: 'The earliest of its timers stands in the index of timers.', mendedBy: REINDEX },
  'index.lease': { says: 'A leased task stands in the index of leases under its session.', mendedBy: REINDEX },
  'family.counts': {
    says: 'The counts of live children and of open dependencies are what there is.',
    mendedBy: REINDEX,
  },
  'family.child': { says: 'A child stands under its parent, as live exactly while it is.', mendedBy: REINDEX },
  'family.parent': {
    says: 'An attached child lives under a live, unfenced parent generation, or is about to be told.',
    mendedBy: REINDEX,
  },
  'family.completed': { says: 'A parent that completed has no live attached child.', mendedBy: NONE },
  'family.dependencies': {
    says: 'A task is marked to wait for others exactly while an edge to one of them is open.',
    mendedBy: NONE,
  },
  'family.edges': {
    says: 'What a task waits for is a generation that there was of a task that its admission names.',
    mendedBy: NONE,
  },
  'family.purged': { says: 'No task waits for one that was purged.', mendedBy: REINDEX },
  'family.news': {
    says: 'What children and waiters have still to be told of a task has a row, and nothing else has.',
    mendedBy: REINDEX,
  },
  'permits.place': {
    says: 'A task has places in the lines of the permits that it needs, as its status, order and route want them, and in no others.',
    mendedBy: REINDEX,
  },
  'permits.counts': {
    says: 'As many are counted to run with a permit, and to stand in its lines, as do.',
    mendedBy: REINDEX,
  },
  'permits.settled': {
    says: 'Nobody waits in a line that has room, and nobody passed one that has none.',
    mendedBy: REINDEX,
    passes: true,
  },
  'purged.tombstone': {
    says: 'A tombstone can be read and does not contradict itself, or was given up.',
    mendedBy: ['accept_record'],
  },
  'purged.key': { says: 'The idempotency key of a tombstone leads to it.', mendedBy: REINDEX },
  'purged.rows': {
    says: 'Nothing is left of a purged task but its tombstone, its key and what is to be swept.',
    mendedBy: REINDEX,
  },
  'purged.horizon': { says: 'The horizon is not below any event of a purged task.', mendedBy: REINDEX },
  'timers.overdue': { says: 'No timer is overdue by more than the slack.', mendedBy: NONE, passes: true },
  'sessions.row': { says: 'A session can be read.', mendedBy: NONE },
  'sessions.overdue': {
    says: 'No session that is not gone has expired by more than the slack.',
    mendedBy: NONE,
    passes: true,
  },
  'sessions.ahead': {
    says: 'No session lasts longer than its TTL from now, and the slack.',
    mendedBy: NONE,
    passes: true,
  },
} as const satisfies Readonly<Record<string, Invariant>>;

export type InvariantName = keyof typeof INVARIANTS;

export function invariant(name: InvariantName): Invariant {
  return INVARIANTS[name];
}
