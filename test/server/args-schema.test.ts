// Schemas of args: what is no schema ends the start, what does not fit is told with its place, and no caller can make a
// check slow that its schema does not.

import { describe, expect, it } from 'vitest';
import { MAX_ARGS_VIOLATIONS } from '../../src/kernel/admission/action-kinds.js';
import { compileArgsSchema } from '../../src/server/args-schema.js';

const object = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more });
const check = (schema: unknown, args: unknown) => compileArgsSchema(schema)(JSON.stringify(args));

describe('a schema', () => {
  it.each<[string, unknown, RegExp]>([
    ['an unknown keyword', { type: 'object', requird: ['a'] }, /unknown keyword: "requird"/],
    ['a keyword without its type', { properties: { a: {} } }, /missing type "object"/],
    ['an unknown type', object({ a: { type: 'strng' } }), /properties\/a\/type/],
    ['a reference to elsewhere', { $ref: 'https://example.com/x.json' }, /can't resolve reference https:\/\/example/],
    ['a reference to nothing', { $ref: '#/$defs/none' }, /can't resolve reference #\/\$defs\/none/],
    ['another draft', { $schema: 'http://json-schema.org/draft-07/schema#' }, /\$schema: only .*2020-12/],
    ['an old form of tuples', object({ a: { type: 'array', items: [{}] } }), /properties\/a\/items/],
    ['an asynchronous one', { type: 'object', $async: true }, /\$async/],
    ['a look-ahead', object({ a: { type: 'string', pattern: '(?=x)' } }), /regexp/i],
    ['a back-reference', object({ a: { type: 'string', pattern: '(a)\\1' } }), /regexp/i],
    ['a list', [], /must be an object/],
    ['a text', 'x', /must be an object/],
    ['a cycle', cyclic(), /is not JSON/],
    ['too much', { type: 'object', description: 'x'.repeat(1_048_577) }, /is larger than/],
  ])('with %s is refused at once', (_name, schema, why) => {
    expect(() => compileArgsSchema(schema)).toThrow(why);
  });

  it('may say what drafts say, refer to itself, and allow null beside a type', () => {
    const schema = object(
      { tree: { $ref: '#/$defs/node' }, when: { type: 'string', format: 'date-time', default: 'now' } },
      {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: 'https://example.com/kinds/crawl',
        $defs: { node: object({ next: { $ref: '#/$defs/node' }, n: { type: ['integer', 'null'] } }) },
        required: ['tree'],
      },
    );
    expect(check(schema, { tree: { n: 1, next: { n: null } }, when: 'not checked: a format is a remark' })).toBeNull();
    expect(check(schema, { tree: { next: { n: 'x' } } })).toMatchObject({ pointer: '/tree/next/n' });
    // Each kind has schemas of its own: the same $id twice is no clash.
    expect(() => compileArgsSchema(schema)).not.toThrow();
  });
});

function cyclic(): object {
  const schema: { type: string; self?: unknown } = { type: 'object' };
  schema.self = schema;
  return schema;
}

describe('args that do not fit', () => {
  const schema = object(
    {
      url: { type: 'string', pattern: '^https?://' },
      depth: { type: 'integer', minimum: 0, maximum: 5 },
      mode: { enum: ['fast', 'deep'] },
      tags: { type: 'array', uniqueItems: true, items: { type: 'object' } },
      'a/b~c': { type: 'string' },
    },
    { required: ['url'], additionalProperties: false },
  );

  it.each<[unknown, string, RegExp]>([
    [{}, '', /required property 'url'/],
    [{ url: 3 }, '/url', /must be string/],
    [{ url: 'ftp://x' }, '/url', /must match pattern "\^https\?:\/\/"/],
    [{ url: 'http://x', depth: 6 }, '/depth', /must be <= 5/],
    [{ url: 'http://x', depth: 1.5 }, '/depth', /must be integer/],
    [{ url: 'http://x', mode: 'slow' }, '/mode', /must be one of \["fast","deep"\]/],
    [{ url: 'http://x', more: 1 }, '', /must not have the member "more"/],
    [{ url: 'http://x', 'a/b~c': 1 }, '/a~1b~0c', /must be string/],
    [{ url: 'http://x', tags: [{ a: 1, b: 2 }, {}, { b: 2, a: 1 }] }, '/tags', /duplicate items/],
  ])('%j: %s', (args, pointer, detail) => {
    const canonical = JSON.stringify(sorted(args));
    const problem = compileArgsSchema(schema)(canonical);
    expect(problem).toMatchObject({ pointer });
    expect(problem?.detail).toMatch(detail);
    expect(problem?.violations).toBeUndefined();
  });

  it('are told with all their places, up to a bound', () => {
    const problem = check(schema, { url: 1, depth: 'x', mode: 1, more: 1 });
    expect(problem?.violations?.map(({ pointer }) => pointer).sort()).toEqual(['', '/depth', '/mode', '/url']);
    expect(problem).toMatchObject(problem?.violations?.[0] ?? {});
    const many = object({ n: { type: 'array', items: { type: 'string' } } });
    expect(check(many, { n: Array.from({ length: 50 }, () => 1) })?.violations).toHaveLength(MAX_ARGS_VIOLATIONS);
    // Of large ones the first: the others are not looked for.
    expect(check(many, { n: Array.from({ length: 9_000 }, () => 1) })).toEqual({
      pointer: '/n/0',
      detail: 'must be string',
    });
  });

  it('are quoted within bounds, however long their names', () => {
    const long = 'x'.repeat(100_000);
    const strict = object({ o: { type: 'object', additionalProperties: { type: 'number' } } });
    const deep = check(strict, { o: { [long]: 'y' } });
    expect(deep).toMatchObject({ pointer: '/o', detail: 'must be number' });
    expect(check(schema, { url: 'http://x', [long]: 1 })?.detail.length).toBeLessThan(200);
    const listed = object({ m: { enum: Array.from({ length: 1_000 }, (_, n) => `value-${String(n)}`) } });
    expect(check(listed, { m: 1 })?.detail.length).toBeLessThan(250);
  });
});

describe('a check', () => {
  it('goes by the members that args have themselves', () => {
    expect(check(object({}, { required: ['constructor'] }), { a: 1 })).toMatchObject({ pointer: '' });
    const proto = compileArgsSchema(object({}, { additionalProperties: false }));
    expect(proto('{"__proto__":{"a":1}}')?.detail).toMatch(/must not have the member "__proto__"/);
  });

  it('tells patterns apart', () => {
    const two = object({ a: { type: 'string', pattern: '^a+$' }, b: { type: 'string', pattern: '^b+$' } });
    expect(check(two, { a: 'aa', b: 'bb' })).toBeNull();
    expect(check(two, { a: 'bb', b: 'bb' })).toMatchObject({ pointer: '/a' });
    expect(check(two, { a: 'aa', b: 'aa' })).toMatchObject({ pointer: '/b' });
    const keyed = { type: 'object', patternProperties: { '^n_': { type: 'number' }, '^s_': { type: 'string' } } };
    expect(check(keyed, { n_a: 1, s_a: 'x' })).toBeNull();
    expect(check(keyed, { n_a: 'x' })).toMatchObject({ pointer: '/n_a' });
  });

  it('of a pattern that backtracking would never finish ends', () => {
    const evil = object({ a: { type: 'string', pattern: '^(a+)+$' }, b: { type: 'string', pattern: '^(a|a)*$' } });
    // 2^60 steps for an engine that backtracks: this test would not come back.
    expect(check(evil, { a: `${'a'.repeat(60)}!` })).toMatchObject({ pointer: '/a' });
    expect(check(evil, { b: `${'a'.repeat(60)}!` })).toMatchObject({ pointer: '/b' });
  });

  it('of unique elements looks at each of them once', () => {
    let looks = 0;
    const items = Array.from({ length: 5_000 }, (_, n) => ({ toJSON: () => ((looks += 1), { n }) }));
    const unique = compileArgsSchema(object({ n: { type: 'array', uniqueItems: true } }));
    const parse = JSON.parse.bind(JSON);
    JSON.parse = () => ({ n: items });
    try {
      expect(unique('x'.repeat(20_000))).toBeNull();
    } finally {
      JSON.parse = parse;
    }
    expect(looks).toBe(items.length);
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}
