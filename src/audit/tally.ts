/**
 * What an audit of a whole store adds up on its way from the first task to the last, and what it comes to: tombstones
 * against the purges counted, the horizon against all events there ever were. The store lives meanwhile, so that it
 * knows bounds only: what stood at the beginning was met, and what was met was there at the end.
 */
import type { Purges } from '../store/event-pages.js';
import type { Audited } from '../store/audit-rows.js';
import { type Finding, findingBeside } from './findings.js';
import { lastSequenceOf } from './tombstones.js';

export interface Tally {
  /** When it began. */
  readonly horizon: number;
  readonly purges: number;
  readonly tombstones: number;
  /** Events of all that was met; null when that cannot be told of something. */
  readonly events: number | null;
  /** The highest sequence that was met. */
  readonly highest: number;
}

export function beginTally({ horizon, purges }: Purges): Tally {
  return { horizon, purges, tombstones: 0, events: 0, highest: 0 };
}

export function tallied(tally: Tally, entry: Audited, lastSequence: number): Tally {
  const events = eventsOf(entry);
  const highest = entry.kind === 'purged' ? lastSequenceOf(entry) : lastSequence;
  return {
    ...tally,
    tombstones: tally.tombstones + (entry.kind === 'purged' ? 1 : 0),
    events: tally.events === null || events === null ? null : tally.events + events,
    highest: Math.max(tally.highest, highest),
  };
}

/** As its numbers say, however many of them can be read. */
function eventsOf(entry: Audited): number | null {
  switch (entry.kind) {
    case 'task':
      return Math.max(entry.version, entry.lastNumber ?? 0);
    case 'purged':
      return entry.tombstone.ok ? entry.tombstone.value.lastEvent : null;
    case 'remains':
      return null;
  }
}

/** At the end of the store; looked at again, with what the store says then. */
export function auditTally(tally: Tally, now: Purges): readonly Finding[] {
  const findings: Finding[] = [];
  const add = (invariant: 'store.purges' | 'store.horizon', detail: string): void => {
    findings.push(findingBeside(invariant, 'the store', detail));
  };
  const { tombstones } = tally;
  // Both only grow: what stood at the beginning is the least that there is at the end.
  const atLeast = Math.min(tally.purges, now.purges);
  const horizon = Math.min(tally.horizon, now.horizon);
  if (!isCount(now.purges)) add('store.purges', 'their count is no number');
  else if (tombstones > now.purges || tombstones < atLeast) {
    add('store.purges', `${now.purges} counted, ${tombstones} tombstones there`);
  }
  if (!isCount(now.horizon)) add('store.horizon', 'it is no number');
  else if (horizon > 0 && tombstones === 0 && atLeast === 0) {
    add('store.horizon', `it is ${horizon}, and nothing was purged`);
  } else if (horizon > highestGiven(tally)) add('store.horizon', `it is ${horizon}, above all events that there were`);
  return findings;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/**
 * No sequence above it was given. They are given one after the other, so that they are no more than the events; where a
 * damaged end has left some out, what stands behind those shows it.
 */
function highestGiven({ events, highest }: Tally): number {
  if (events === null) return Number.MAX_SAFE_INTEGER;
  return highest > events ? highest + events : events;
}
