// Where two applications differ: pointers, their order and their bounds.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import {
  applicationDifference,
  applicationDifferenceByHash,
  MAX_DIFFERENCE_POINTERS,
} from '../../../src/kernel/admission/application-difference.js';
import { applicationFieldHashes } from '../../../src/kernel/admission/application-hash.js';
import type { Application } from '../../../src/kernel/admission/application.js';
import { canonicalJson } from '../../../src/kernel/admission/canonical-json.js';

function application(args: unknown, changes: Partial<Application> = {}): Application {
  const json = canonicalJson(args, 'object');
  if (!json.ok) throw new Error(json.problem.detail);
  return {
    actionKind: 'agent',
    argsJson: json.canonical,
    executionTarget: 'host',
    requiredCapabilities: [],
    libraryRef: null,
    libraryContentHash: null,
    ...changes,
  };
}

function pointers(left: unknown, right: unknown): readonly string[] {
  return applicationDifference(application(left), application(right)).pointers;
}

describe('applicationDifference', () => {
  it.each<[string, unknown, unknown, string[]]>([
    ['nothing', { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
    ['a member', { prompt: 'x', n: 1 }, { prompt: 'y', n: 1 }, ['/args/prompt']],
    ['a missing member, both ways', { a: 1 }, { b: 1 }, ['/args/a', '/args/b']],
    ['a member of null and a missing one', { a: null }, {}, ['/args/a']],
    ['an element', { a: [1, 2, 3] }, { a: [1, 5, 3] }, ['/args/a/1']],
    ['a longer array', { a: [1] }, { a: [1, 2, 3] }, ['/args/a/1', '/args/a/2']],
    ['an array and an object', { a: [] }, { a: {} }, ['/args/a']],
    ['an array and an object with its indices', { a: ['x'] }, { a: { 0: 'x' } }, ['/args/a']],
    ['null and an object', { a: null }, { a: {} }, ['/args/a']],
    ['escaped names', { 'a/b': { '~': 1 } }, { 'a/b': { '~': 2 } }, ['/args/a~1b/~0']],
    ['the empty name', { '': 1 }, { '': 2 }, ['/args/']],
    ['names that JavaScript knows', { constructor: 1 }, {}, ['/args/constructor']],
    [
      'several places',
      { z: 1, a: { b: [1, { c: 2 }] } },
      { z: 2, a: { b: [1, { c: 3 }] } },
      ['/args/a/b/1/c', '/args/z'],
    ],
  ])('%s', (_name, left, right, expected) => {
    expect(pointers(left, right)).toEqual(expected);
    expect(pointers(right, left)).toEqual(expected);
  });

  it('sees a member named __proto__', () => {
    expect(pointers(JSON.parse('{"__proto__":1}'), {})).toEqual(['/args/__proto__']);
  });

  it('names every other field, sorted', () => {
    const other = application(
      { a: 1 },
      {
        actionKind: 'flow',
        executionTarget: 'process',
        requiredCapabilities: ['gpu'],
        libraryRef: 'x',
        libraryContentHash: `sha256:${'0'.repeat(64)}`,
      },
    );
    const difference = applicationDifference(application({}), other);
    expect(difference).toEqual({
      pointers: [
        '/action_kind',
        '/args/a',
        '/execution_target',
        '/library_content_hash',
        '/library_ref',
        '/required_capabilities',
      ],
      truncated: false,
    });
  });

  it('stops at 32 pointers and says so, without losing the fields beside args', () => {
    const left = application({ a: Array(100).fill(0) });
    const right = application({ a: Array(100).fill(1) }, { libraryRef: 'x' });
    const difference = applicationDifference(left, right);
    expect(difference.truncated).toBe(true);
    expect(difference.pointers).toHaveLength(MAX_DIFFERENCE_POINTERS);
    expect(difference.pointers).toContain('/library_ref');
    const exact = applicationDifference(application({ a: Array(32).fill(0) }), application({ a: Array(32).fill(1) }));
    expect(exact).toMatchObject({ truncated: false });
    expect(exact.pointers).toHaveLength(32);
  });

  it('names a place with a very long name by its nearest ancestor, once', () => {
    const long = 'n'.repeat(1_000);
    expect(pointers({ a: { [`${long}1`]: 1, [`${long}2`]: 1 } }, { a: {} })).toEqual(['/args/a']);
  });

  it('from field hashes only, gives top-level pointers', () => {
    const left = applicationFieldHashes(application({ a: 1 }));
    const right = applicationFieldHashes(application({ a: 2 }, { requiredCapabilities: ['gpu'] }));
    expect(applicationDifferenceByHash(left, right)).toEqual({
      pointers: ['/args', '/required_capabilities'],
      truncated: false,
    });
    expect(applicationDifferenceByHash(left, left).pointers).toEqual([]);
  });

  it('is empty exactly when the canonical texts are equal', () => {
    const args = fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue({ maxDepth: 3, noUnicodeString: true }));
    fc.assert(
      fc.property(args, args, (left, right) => {
        const a = canonicalJson(left, 'object');
        const b = canonicalJson(right, 'object');
        fc.pre(a.ok && b.ok);
        const found = pointers(left, right);
        expect(found.length === 0).toBe(a.ok && b.ok && a.canonical === b.canonical);
        expect([...found].sort()).toEqual(found);
      }),
    );
  });
});
