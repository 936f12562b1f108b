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
  'store.rows': { says: 'What is kept of a task has a row that names the task.', mendedBy: NONE },
  'store.admission': { says: 'The admission can be read.', mendedBy: NONE },
  'store.record': { says: 'The record can be read.', mendedBy: ['rebuild_record'] },
  'store.version': {
    says: "The record's version is that of its row and the number of its history's last event.",
    mendedBy: REBUILD,
  },
  'store.key': { says: 'The idempotency key leads to the task.', mendedBy: REINDEX },
  'admission.hash': { says: 'The args hash to what was admitted.', mendedBy: NONE },
  'chain.link': {
    says: 'Every commit has the link that follows from the commit before it and from what it says.',
    mendedBy: ACCEPT,
  },
  'history.readable': { says: 'Every commit of the history can be read.', mendedBy: ACCEPT },
  'history.numbers': { says: 'Event numbers are 1, 2, 3, … without gaps.', mendedBy: ACCEPT },
  'history.sequences': { says: 'Later events of a task have higher sequences.', mendedBy: ACCEPT },
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
  'index.due': { says: 'The earliest of its timers stands in the index of timers.', mendedBy: REINDEX },
  'index.lease': { says: 'A leased task stands in the index of leases under its session.', mendedBy: REINDEX },
  'family.counts': {
    says: 'The counts of live children and of open dependencies are what there is.',
    mendedBy: REINDEX,
  },
  'family.child': { says: 'A child stands under its parent, as live exactly while it is.', mendedBy: REINDEX },
  'family.parent': {
    says: 'An attached child lives under a live, unfenced parent generation, or is about to be told.',
    mendedBy: NONE,
    passes: true,
  },
  'family.completed': { says: 'A parent that completed has no live attached child.', mendedBy: NONE },
  'family.dependencies': {
    says: 'A task is marked to wait for others exactly while an edge to one of them is open.',
    mendedBy: NONE,
  },
  'timers.overdue': { says: 'No timer is overdue by more than the slack.', mendedBy: NONE, passes: true },
  'sessions.overdue': {
    says: 'No session that holds a lease is expired by more than the slack.',
    mendedBy: NONE,
    passes: true,
  },
} as const satisfies Readonly<Record<string, Invariant>>;

export type InvariantName = keyof typeof INVARIANTS;

export function invariant(name: InvariantName): Invariant {
  return INVARIANTS[name];
}
