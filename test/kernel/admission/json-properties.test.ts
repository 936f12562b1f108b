// What must hold for every JSON value and every text: round trips, agreement with JSON.parse, an answer always.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { canonicalJson } from '../../../src/kernel/admission/canonical-json.js';
import { readJsonText } from '../../../src/kernel/admission/json-text.js';

const safeNumber = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ min: -1e15, max: 1e15, noNaN: true }),
  fc.constantFrom(0, -0, 5e-324, 2 ** 53 - 1, 1 - 2 ** 53),
);
const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));
const wellFormed = text.filter((candidate) => !/\p{Cs}/u.test(candidate));

const { value: jsonValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    wellFormed,
    safeNumber,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(wellFormed, tie('value'), { maxKeys: 6 }),
  ),
}));

/** Reverses members at every level, so that canonical order has to be made and is not merely kept. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [name, shuffled(member)]);
  return Object.fromEntries(entries.reverse());
}

/** One value for 0 and -0, as in JSON texts. */
function withoutMinusZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe('canonical JSON', () => {
  it('has the value it was made from, and is its own canonical form', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const made = canonicalJson(value, 'any');
        if (!made.ok) throw new Error(made.problem.detail);
        expect(JSON.parse(made.canonical)).toEqual(withoutMinusZero(value));
        expect(readJsonText(made.canonical, 'any')).toEqual(made);
        expect(canonicalJson(JSON.parse(made.canonical), 'any')).toEqual(made);
      }),
      { numRuns: 500 },
    );
  });

  it('does not depend on spelling: order, white space, escapes', () => {
    fc.assert(
      fc.property(jsonValue, fc.nat({ max: 4 }), (value, indent) => {
        const spelled = JSON.stringify(shuffled(value), null, indent);
        const escaped = spelled.replace(
          /[\u007f-\uffff]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        const made = canonicalJson(value, 'any');
        expect(readJsonText(spelled, 'any')).toEqual(made);
        expect(readJsonText(escaped, 'any')).toEqual(made);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the strict reader and JSON.parse', () => {
  const piece = fc.oneof(
    fc.constantFrom('{', '}', '[', ']', ':', ',', '"', '\\', '\\u', 'd83d', 'ude00', '\ud83d', '\ude00', ' ', '\n'),
    fc.constantFrom('true', 'null', '0', '-', '1.5', '1e5', '.', 'e', 'a', '"a"', '"b":', '{"a":1}', '[1,2]', '\u0000'),
    fc.string({ maxLength: 3 }),
  );
  const nearJson = fc.oneof(
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    fc.tuple(jsonValue, fc.nat(), fc.nat({ max: 3 }), piece).map(([value, at, cut, insert]) => {
      const whole = JSON.stringify(value);
      const place = at % (whole.length + 1);
      return whole.slice(0, place) + insert + whole.slice(place + cut);
    }),
  );

  function parse(candidate: string): { readonly value: unknown } | null {
    try {
      return { value: JSON.parse(candidate) };
    } catch {
      return null;
    }
  }

  it('agree on the value of everything that is accepted, and always answer', () => {
    let acceptedCount = 0;
    fc.assert(
      fc.property(nearJson, (candidate) => {
        const outcome = readJsonText(candidate, 'any');
        const parsed = parse(candidate);
        if (outcome.ok) {
          acceptedCount += 1;
          expect(parsed).not.toBeNull();
          expect(JSON.parse(outcome.canonical)).toEqual(withoutMinusZero(parsed?.value));
        } else {
          expect(outcome.problem.offset).toBeGreaterThanOrEqual(0);
          expect(outcome.problem.offset).toBeLessThanOrEqual(candidate.length);
          // Nothing is refused as a broken grammar that JSON.parse takes.
          if (parsed !== null) expect(outcome.problem.detail).toMatch(/twice|surrogate|2\^53|shortest|too large/);
        }
      }),
      { numRuns: 20_000 },
    );
    expect(acceptedCount).toBeGreaterThan(1_000);
  });

  it('always answer for any value of a program', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withSparseArray: true }), (value) => {
        const outcome = canonicalJson(value, 'any');
        if (outcome.ok) expect(readJsonText(outcome.canonical, 'any')).toEqual(outcome);
      }),
      { numRuns: 2_000 },
    );
  });
});
