// The small worlds explored whole: every state that can be reached is gone through, and every invariant holds in each.
// `npm run explore` takes the same worlds with more claims, more generations and more that may happen.

import process from 'node:process';
import { afterAll, describe, expect, it } from 'vitest';
import { EDGES } from '../../src/kernel/edges.js';
import { type Exploration, Violation, explore } from './explore.js';
import type { StoreGuard } from './model-store.js';
import {
  circling,
  clock,
  deadlines,
  dependencies,
  family,
  lineage,
  messages,
  operators,
  sessions,
  words,
  type WorldSize,
} from './worlds.js';

const SIZE: WorldSize = { large: process.env['REEVE_EXPLORE'] === 'large' };
/** The longer form goes so far into each world, and says of a world that has more that it was not gone through. */
const MAX_STATES = SIZE.large ? 60_000 : 25_000;
const PATIENCE_MS = SIZE.large ? 3_600_000 : 120_000;

const WORLDS: Readonly<Record<string, Exploration>> = {
  'words of workers, COOPERATIVE': words('COOPERATIVE', SIZE),
  'words of workers, FENCED': words('FENCED', SIZE),
  'operators, COOPERATIVE': operators('COOPERATIVE', SIZE),
  'operators, FENCED': operators('FENCED', SIZE),
  'the clock': clock('COOPERATIVE', SIZE),
  'a deadline that finds it anywhere, COOPERATIVE': deadlines('COOPERATIVE', SIZE),
  'a deadline that finds it anywhere, FENCED': deadlines('FENCED', SIZE),
  'a claim that circles': circling(),
  sessions: sessions(SIZE),
  messages: messages('COOPERATIVE', SIZE),
  'a parent, an attached and a detached child': family('either', SIZE),
  'dependencies that must succeed, else skipped': dependencies('succeeded', 'skip', SIZE),
  'dependencies that must succeed, else failed': dependencies('succeeded', 'fail', SIZE),
  'dependencies that must end': dependencies('terminal', 'cancel', SIZE),
  'three levels and one who waits': lineage(SIZE),
  ...(SIZE.large
    ? {
        'the clock, FENCED': clock('FENCED', SIZE),
        'messages, FENCED': messages('FENCED', SIZE),
        'dependencies that must succeed, else cancelled': dependencies('succeeded', 'cancel', SIZE),
      }
    : {}),
};

describe('every state of', () => {
  const edges = new Set<string>();
  const lines: string[] = [];

  it.each(Object.entries(WORLDS))(
    '%s keeps every invariant',
    (name, world) => {
      const explored = explore({ ...world, maxStates: MAX_STATES });
      for (const edge of explored.edges) edges.add(edge);
      const { states, transitions, races, lostRaces, closed } = explored;
      const end = closed ? '' : ', not gone through to its end';
      lines.push(`${name}: ${states} states, ${transitions} transitions, ${races} races (${lostRaces} lost)${end}`);
      expect(states).toBeGreaterThan(1_000);
      expect(closed || SIZE.large).toBe(true);
    },
    PATIENCE_MS,
  );

  it('takes every edge there is', () => {
    expect(EDGES.map(({ from, to }) => `${from ?? ''}>${to}`).filter((edge) => !edges.has(edge))).toEqual([]);
  });

  afterAll(() => {
    console.info(`explored, 0 violations:\n  ${lines.join('\n  ')}`);
  });
});

const BLIND: readonly (readonly [StoreGuard, Exploration])[] = [
  ['keys', family('either', { large: false })],
  ['ledger', operators('COOPERATIVE', { large: false })],
  ['versions', words('COOPERATIVE', { large: false })],
  ['reads', family('either', { large: false })],
  ['own batch', lineage({ large: false })],
  ['sessions', sessions({ large: false })],
  ['families', family('either', { large: false })],
];

describe('a store that does not check', () => {
  it.each(BLIND)('%s is found out', (missing, world) => {
    expect(() => explore({ ...world, missing })).toThrow(Violation);
  });
});
