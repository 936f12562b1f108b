// Schemas of args: what is no schema ends the start, what does not fit is told with its place, and no caller can make a
// check slow that its schema does not.

import { describe, expect, it } from 'vitest';
import { MAX_ARGS_VIOLATIONS } from '../../src/kernel/admission/action-kinds.js';
import { compileArgsSchema } from '../../src/deployment/args-schema.js';

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
    ['a reference that goes in a circle', circle(), /^#\/\$defs\/a → #\/\$defs\/b → #\/\$defs\/a: refers to itself/],
    ['a reference to itself', { type: 'object', $ref: '#' }, /^# → #: refers to itself/],
    [
      'a circle through a branch',
      object({ x: { anyOf: [{ type: 'string' }, { $ref: '#/properties/x' }] } }),
      /^#\/properties\/x → #\/properties\/x\/anyOf\/1 → #\/properties\/x: /,
    ],
    ['a circle by names', object({ x: { $ref: 'a' } }, named()), /\$defs\/one → #\/\$defs\/two → #\/\$defs\/one: /],
    ['a circle by a dynamic anchor', { $dynamicAnchor: 'n', not: { $dynamicRef: '#n' } }, /^# → #\/not → #: /],
    ['a chain of references without an end in sight', chain(5_000), /too deep to be compiled/],
    [
      'a long way round',
      { ...chain(5_000, '#/$defs/d0') },
      /^#\/\$defs\/d0 → .* → … → #\/\$defs\/d0: refers to itself/,
    ],
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
    // A circle that no check comes to is nobody's concern, nor is a text that only looks like a reference.
    const beside = { $defs: { a: { $ref: '#/$defs/a' } }, properties: { $ref: { const: { $ref: '#' } } } };
    expect(check({ type: 'object', ...beside }, { $ref: { $ref: '#' } })).toBeNull();
    // Each kind has schemas of its own: the same $id twice is no clash.
    expect(() => compileArgsSchema(schema)).not.toThrow();
  });
});

function circle(): object {
  return { type: 'object', $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } };
}

function named(): object {
  return {
    $id: 'https://example.com/kinds/round',
    $defs: { one: { $id: 'a', $anchor: 'here', $ref: 'b' }, two: { $id: 'b', $ref: 'a#here' } },
  };
}

/** Each refers to the next one; the last to what is given. */
function chain(length: number, last?: string): object {
  const defs = Array.from({ length }, (_, n) => [
    `d${n}`,
    n < length - 1 ? { $ref: `#/$defs/d${n + 1}` } : last === undefined ? {} : { $ref: last },
  ]);
  return { type: 'object', $ref: '#/$defs/d0', $defs: Object.fromEntries(defs) as object };
}

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
