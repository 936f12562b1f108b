// An authority embedded in the test, on a clock and a chance of the test's.

import { type OpenOptions, openEmbedded } from '../../src/embed/open-authority.js';
import { ReeveRefusal } from '../../src/embed/refusal.js';
import type { EmbeddedReeve } from '../../src/embed/embedded-reeve.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { SeededRandom } from '../support/seeded-random.js';

export interface Embedded {
  readonly reeve: EmbeddedReeve;
  readonly clock: ManualClock;
  readonly defects: unknown[];
}

let opened = 0;

export async function openEmbeddedFixture(options: Partial<OpenOptions> = {}, store?: TaskStore): Promise<Embedded> {
  const clock = new ManualClock();
  const defects: unknown[] = [];
  const surroundings = { clock, random: new SeededRandom(++opened), ...(store === undefined ? {} : { store }) };
  const onDefect = (error: unknown): void => void defects.push(error);
  const reeve = await openEmbedded({ store: 'memory:', onDefect, ...options }, surroundings);
  return { reeve, clock, defects };
}

/** The refusal that a call ends with; an answer instead is an error. */
export async function refusalOf(answer: Promise<unknown>): Promise<ReeveRefusal> {
  const ended: unknown = await answer.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (ended instanceof ReeveRefusal) return ended;
  throw new Error(`expected a refusal, got ${String(ended)}`);
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}
