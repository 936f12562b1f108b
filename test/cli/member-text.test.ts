// The text of a member, found without reading its value.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memberText } from '../../src/cli/member-text.js';

describe('the text of a member', () => {
  it('is what a reader of the whole finds there', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, 2), (object, indent) => {
        const json = JSON.stringify(object, undefined, indent);
        for (const [name, value] of Object.entries(JSON.parse(json) as object)) {
          const text = memberText(json, name);
          expect(text).toBeDefined();
          expect(JSON.parse(text ?? '')).toEqual(value);
        }
        expect(memberText(json, 'not there at all')).toBeUndefined();
      }),
    );
  });

  it.each([
    ['{"a":{"b":[1.50,1e400,-0,{"b":2}]}}', ['a', 'b'], '[1.50,1e400,-0,{"b":2}]'],
    ['{"x":{"a":1},"y":["a",{"a":2}]}', ['a'], undefined],
    ['{"a":"b","b":"a"}', ['b'], '"a"'],
    ['{"a":1,"a":2}', ['a'], '2'],
    [String.raw`{"\u0061":12345678901234567890}`, ['a'], '12345678901234567890'],
    [String.raw`{"x":"\\","y":"\"a\":1,\\\"","a":3}`, ['a'], '3'],
    ['\t{ "a" :\t{ "b" : null } }\r', ['a', 'b'], 'null'],
    ['{"a":{}}', ['a', 'b'], undefined],
    ['{"a":[1]}', ['a', '0'], undefined],
    ['{}', ['a'], undefined],
  ])('%s %j is %s', (json, path, text) => {
    expect(memberText(json, ...path)).toBe(text);
  });

  it('may be nested deeper than a stack', () => {
    const deep = '['.repeat(500_000) + ']'.repeat(500_000);
    expect(memberText(`{"a":{"b":${deep}}}`, 'a', 'b')).toBe(deep);
  });
});
