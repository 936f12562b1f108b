// Canonical JSON: RFC 8785's samples from text and from values, and what has no JSON form.

import { describe, expect, it } from 'vitest';

import { byCodeUnits, canonicalJson } from '../../../src/kernel/admission/canonical-json.js';
import { MAX_JSON_BYTES } from '../../../src/kernel/admission/json-problem.js';
import { readJsonText } from '../../../src/kernel/admission/json-text.js';

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

describe('RFC 8785 samples', () => {
  // Section 3.2.2 with the two numbers that admission refuses (333333333.33333329, 1E30) left out.
  const sample =
    '{"numbers":[333333333.3333333,4.50,2e-3,0.000000000000000000000000001],' +
    '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
  const canonicalSample =
    '{"literals":[null,true,false],"numbers":[333333333.3333333,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';

  it('section 3.2.2: primitives and nesting', () => {
    expect(readJsonText(sample, 'object')).toEqual({ ok: true, canonical: canonicalSample });
    expect(canonicalJson(JSON.parse(sample), 'object')).toEqual({ ok: true, canonical: canonicalSample });
  });

  it('section 3.2.4: the UTF-8 bytes', () => {
    const outcome = readJsonText('{"s":"\\u20ac$\\u000F\\u000a"}', 'object');
    const bytes = Buffer.from(outcome.ok ? outcome.canonical : '', 'utf8').toString('hex');
    expect(bytes).toBe('7b2273223a22e282ac245c75303030665c6e227d');
  });

  it('section 3.2.3: members by UTF-16 code units', () => {
    const text =
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",' +
      '"\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}';
    const canonical =
      '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
      '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}';
    expect(readJsonText(text, 'object')).toEqual({ ok: true, canonical });
    expect(canonicalJson(JSON.parse(text), 'object')).toEqual({ ok: true, canonical });
  });

  it('a quote and a space sort by their own code units, not with the quotes around the name', () => {
    expect(readJsonText('{"a!":1,"a":2,"a b":3}', 'object')).toEqual({
      ok: true,
      canonical: '{"a":2,"a b":3,"a!":1}',
    });
    expect(['b', 'a', 'a'].sort(byCodeUnits)).toEqual(['a', 'a', 'b']);
  });
});

describe('canonicalJson refuses what has no exact JSON form', () => {
  class Point {
    x = 1;
  }
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const throwing = Object.defineProperty({}, 'a', {
    enumerable: true,
    get: () => {
      throw new Error('no');
    },
  });
  const hole = Array<unknown>(2);

  it.each<[string, unknown, string, RegExp]>([
    ['NaN', { a: Number.NaN }, '/a', /NaN has no JSON form/],
    ['Infinity', { a: [1, -Infinity] }, '/a/1', /-Infinity has no JSON form/],
    ['an unsafe integer', { a: 2 ** 53 }, '/a', /2\^53/],
    ['a lone surrogate', { a: 'x\ud800' }, '/a', /lone surrogate/],
    ['a lone surrogate in a name', { a: { '\udc00': 1 } }, '/a', /lone surrogate/],
    ['undefined', { a: undefined }, '/a', /undefined has no JSON form/],
    ['a hole', { a: hole }, '/a/0', /undefined has no JSON form/],
    ['a bigint', { a: 1n }, '/a', /bigint/],
    ['a function', { a: () => 1 }, '/a', /function/],
    ['a symbol', { a: Symbol('s') }, '/a', /symbol/],
    ['a Date', { a: new Date(0) }, '/a', /only plain objects/],
    ['a Map', { a: new Map() }, '/a', /only plain objects/],
    ['an instance', { a: [new Point()] }, '/a/0', /only plain objects/],
    ['depth', { a: nested(32) }, `/a${'/0'.repeat(31)}`, /deeper than 32/],
    ['a cycle', cyclic, '/self'.repeat(32), /deeper than 32/],
    ['count', { a: Array(10_000).fill(0) }, '/a', /more than 10000/],
    ['a getter that throws', throwing, '', /threw/],
    ['size', { a: 'x'.repeat(MAX_JSON_BYTES - 7) }, '', /longer than/],
    ['size of one string', { a: 'x'.repeat(MAX_JSON_BYTES + 1) }, '/a', /longer than/],
    ['a root that is no object', [1], '', /object is required/],
    ['a null root', null, '', /object is required/],
  ])('%s', (_name, value, pointer, detail) => {
    const outcome = canonicalJson(value, 'object');
    expect(outcome).toMatchObject({ ok: false, problem: { pointer } });
    expect(outcome.ok ? '' : outcome.problem.detail).toMatch(detail);
  });

  it('accepts what is at its limits, shared parts, null prototypes, and -0 as 0', () => {
    const shared = { x: -0 };
    const value = Object.assign(Object.create(null) as object, { b: shared, a: shared });
    expect(canonicalJson(value, 'object')).toEqual({ ok: true, canonical: '{"a":{"x":0},"b":{"x":0}}' });
    expect(canonicalJson(nested(32), 'any').ok).toBe(true);
    expect(canonicalJson({ a: Array(9_999).fill(0) }, 'object').ok).toBe(true);
    expect(canonicalJson({ a: 'x'.repeat(MAX_JSON_BYTES - 8) }, 'object').ok).toBe(true);
    expect(canonicalJson('x', 'any')).toEqual({ ok: true, canonical: '"x"' });
  });

  it('keeps members whose names mean something to JavaScript', () => {
    const value: unknown = JSON.parse('{"__proto__":1,"toJSON":2,"length":3}');
    expect(canonicalJson(value, 'object')).toEqual({
      ok: true,
      canonical: '{"__proto__":1,"length":3,"toJSON":2}',
    });
  });
});
