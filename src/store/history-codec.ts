/**
 * Stored form of the history: one row per task and commit with the list of its events. What they share (time,
 * generation, causes) stands once; an event is a tuple of its type, a mask of what it has, those items, its data.
 * Format 1: `1[at, generation, first revision, [causes], [events], [lengths of payloads]]` and payloads behind; without
 * payloads there is no such list. Event numbers are not stored: they follow from the number of the row's last event.
 * Format 2 is a row that was redacted (history-row.ts).
 */
import type { Cause } from '../kernel/cause.js';
import type { TaskEvent } from '../kernel/event.js';
import { decodeCause, encodeCause } from './cause-codec.js';
import { AEP_CODES, AEP_NAMES, EVENT_CODES, EVENT_TYPES, STATUSES, STATUS_CODES } from './code-tables.js';
import { Damage, integerOf, nameOf, tupleOf } from './decode-guards.js';
import { decodeBody, encodeBody } from './event-body-codec.js';
import { unredacted } from './history-row.js';
import { PayloadTail, instant } from './json-writing.js';
import { readStoredText } from './payload-reading.js';

/** Bits of the mask, in the order in which their items follow it. */
const FACT = 1;
const STATUS = 2;
const AEP = 4;
const EPOCH = 8;
const WORKER_SEQ = 16;
const INFERRED = 32;
const OTHER_TIME = 64;
const OTHER_GENERATION = 128;
const OTHER_CAUSE = 256;
const OTHER_REVISION = 512;

/** Stands for "no status before" in a pair of statuses. */
const NO_STATUS = 15;

export function encodeEvents(events: readonly TaskEvent[]): string {
  const first = events[0];
  if (first === undefined) throw new Error('a history row holds at least one event');
  const { at, generation } = first;
  const causes: Cause[] = [first.cause];
  const tail = new PayloadTail();
  const firstRevision = first.revision ?? events.find((event) => event.revision !== null)?.revision ?? 0;
  let revision = firstRevision;
  let list = '';
  for (const event of events) {
    let mask = 0;
    let items = '';
    if (event.revision !== null) {
      mask |= FACT;
      if (event.revision !== revision) mask |= OTHER_REVISION;
      revision = event.revision + 1;
    }
    if (event.to !== null) {
      mask |= STATUS;
      const from = event.from === null ? NO_STATUS : STATUS_CODES[event.from];
      items += `,${String(from * 16 + STATUS_CODES[event.to])}`;
    }
    if (event.aep !== null) {
      mask |= AEP;
      items += `,${String(AEP_CODES[event.aep])}`;
    }
    if (event.epoch !== null) {
      mask |= EPOCH;
      items += `,${String(event.epoch)}`;
    }
    if (event.workerSeq !== null) {
      mask |= WORKER_SEQ;
      items += `,${String(event.workerSeq)}`;
    }
    if (event.inferred) mask |= INFERRED;
    if (event.at !== at) {
      mask |= OTHER_TIME;
      items += `,${String(event.at - at)}`;
    }
    if (event.generation !== generation) {
      mask |= OTHER_GENERATION;
      items += `,${String(event.generation)}`;
    }
    const cause = causeIndex(causes, event.cause);
    if (cause !== 0) {
      mask |= OTHER_CAUSE;
      items += `,${String(cause)}`;
    }
    if ((mask & OTHER_REVISION) !== 0) items += `,${String(event.revision)}`;
    list += `${list === '' ? '' : ','}[${String(EVENT_CODES[event.type])},${String(mask)}${items}${encodeBody(event, event.at, tail)}]`;
  }
  const shared = `${instant(at)},${String(generation)},${String(firstRevision)}`;
  const payloads = tail.lengths === '' ? '' : `,[${tail.lengths}]`;
  return tail.after(`1[${shared},[${causes.map(encodeCause).join()}],[${list}]${payloads}]`);
}

/** By identity: the intents of one commit share few cause objects, and an equal one written twice does no harm. */
function causeIndex(causes: Cause[], cause: Cause): number {
  const known = causes.indexOf(cause);
  return known === -1 ? causes.push(cause) - 1 : known;
}

/**
 * The events of a row whose last event has the number `lastNumber`. Throws `Damage`. `onEvent` is told the places of
 * each event's payloads among those of the row, from the first to before the last one.
 */
export function decodeEvents(
  row: string,
  lastNumber: number,
  onEvent: (number: number, from: number, to: number) => void = () => undefined,
): readonly TaskEvent[] {
  const { taken, rest } = unredacted(row);
  if (rest.charAt(0) !== '1') throw new Damage('history row is of an unknown format');
  const { head, payloads } = readStoredText(rest, 1, 'history row', taken);
  const [atItem, generationItem, revisionItem, causeList, eventList] = tupleOf(head, 'history row');
  const at = integerOf(atItem, 'time');
  const generation = integerOf(generationItem, 'generation');
  const causes = tupleOf(causeList, 'causes').map(decodeCause);
  const encoded = tupleOf(eventList, 'events');
  let number = lastNumber - encoded.length;
  let revision = integerOf(revisionItem, 'revision');
  return encoded.map((item): TaskEvent => {
    const items = tupleOf(item, 'event');
    const type = nameOf(EVENT_TYPES, items[0], 'event type');
    const mask = integerOf(items[1], 'event mask');
    let next = 2;
    const has = (bit: number): boolean => (mask & bit) !== 0;
    const integer = (): number => integerOf(items[next++], 'event item');
    const pair = has(STATUS) ? integer() : null;
    const from = pair === null || pair >> 4 === NO_STATUS ? null : nameOf(STATUSES, pair >> 4, 'status');
    const to = pair === null ? null : nameOf(STATUSES, pair & 15, 'status');
    const aep = has(AEP) ? nameOf(AEP_NAMES, integer(), 'AEP state') : null;
    const epoch = has(EPOCH) ? integer() : null;
    const workerSeq = has(WORKER_SEQ) ? integer() : null;
    const eventAt = has(OTHER_TIME) ? at + integer() : at;
    const eventGeneration = has(OTHER_GENERATION) ? integer() : generation;
    const cause = causes[has(OTHER_CAUSE) ? integer() : 0];
    if (cause === undefined) throw new Damage('event names no cause');
    if (has(OTHER_REVISION)) revision = integer();
    number += 1;
    const place = payloads.place;
    const body = decodeBody(type, items.slice(next), eventAt, payloads);
    onEvent(number, place, payloads.place);
    return {
      ...body,
      number,
      generation: eventGeneration,
      revision: has(FACT) ? revision++ : null,
      from,
      to,
      aep,
      epoch,
      workerSeq,
      inferred: has(INFERRED),
      at: eventAt,
      cause,
    };
  });
}

/** How many events a row holds. Throws `Damage`. */
export function countEvents(row: string): number {
  const { head } = readStoredText(unredacted(row).rest, 1, 'history row');
  return tupleOf(tupleOf(head, 'history row')[4], 'events').length;
}

/** The places of an event's payloads in its row; empty when it has none that stand behind the head. Throws `Damage`. */
export function payloadPlaces(row: string, lastNumber: number, eventNumber: number): ReadonlySet<number> {
  const places = new Set<number>();
  decodeEvents(row, lastNumber, (number, from, to) => {
    for (let place = from; number === eventNumber && place < to; place++) places.add(place);
  });
  return places;
}
