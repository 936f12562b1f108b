// The strict reader: what it accepts, and every refusal with its place.

import { describe, expect, it } from 'vitest';

import { MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_JSON_ITEMS } from '../../../src/kernel/admission/json-problem.js';
import { readJsonText } from '../../../src/kernel/admission/json-text.js';

function canonicalOf(text: string): string {
  const outcome = readJsonText(text, 'any');
  return outcome.ok ? outcome.canonical : `refused: ${outcome.problem.detail}`;
}

describe('readJsonText accepts and canonicalises', () => {
  it.each([
    ['{}', '{}'],
    [' {\t"a"\n:\r[ ] } ', '{"a":[]}'],
    ['{"b":1,"a":2}', '{"a":2,"b":1}'],
    ['{"":0,"\\u0000":1}', '{"":0,"\\u0000":1}'],
    ['[true,false,null,"x",1,[2,{"z":{},"y":[]}]]', '[true,false,null,"x",1,[2,{"y":[],"z":{}}]]'],
    ['"\\/\\b\\f\\n\\r\\t\\"\\\\\\u0041\\u00E9"', '"/\\b\\f\\n\\r\\t\\"\\\\Aé"'],
    ['"\\u001F\\u007f\u2028"', '"\\u001f\u007f\u2028"'],
    ['"\\ud83d\\ude00"', '"😀"'],
    ['"\ud83d\\ude00"', '"😀"'],
    ['"\\ud83d\ude00"', '"😀"'],
    ['{"__proto__":{"x":1},"constructor":2}', '{"__proto__":{"x":1},"constructor":2}'],
    ['{"a":{"x":1},"b":{"x":1}}', '{"a":{"x":1},"b":{"x":1}}'],
  ])('%s', (text, canonical) => {
    expect(canonicalOf(text)).toBe(canonical);
  });
});

describe('readJsonText refuses and names the place', () => {
  it.each<[string, string, string, number, RegExp]>([
    ['empty text', '', '', 0, /expected a value.*end of the text/],
    ['only white space', '  ', '', 2, /end of the text/],
    ['a byte order mark', '\ufeff{}', '', 0, /expected a value/],
    ['trailing garbage', '{} x', '', 3, /nothing may follow/],
    ['a second value', '{}{}', '', 2, /nothing may follow/],
    ['a trailing comma in an object', '{"a":1,}', '', 7, /member name/],
    ['a trailing comma in an array', '[1,]', '/1', 3, /expected a value/],
    ['a missing comma', '{"a":1 "b":2}', '', 7, /comma or a closing brace/],
    ['a missing bracket', '{"a":[1}', '/a', 7, /comma or a closing bracket/],
    ['a missing colon', '{"a" 1}', '', 5, /expected a colon/],
    ['an unquoted name', '{a:1}', '', 1, /member name/],
    ['single quotes', "{'a':1}", '', 1, /member name/],
    ['an unclosed object', '{"a":1', '', 6, /end of the text/],
    ['a missing value', '{"a":', '/a', 5, /expected a value.*end of the text/],
    ['an unclosed string', '{"a":"x', '/a', 7, /ends inside a string/],
    ['a string that ends after a backslash', '"\\', '', 1, /not an escape/],
    ['a comment', '{"a":1/*x*/}', '', 6, /comma or a closing brace/],
    ['NaN', '{"a":NaN}', '/a', 5, /NaN is not JSON/],
    ['Infinity', '[Infinity]', '/0', 1, /Infinity is not JSON/],
    ['-Infinity', '[-Infinity]', '/0', 2, /NaN and Infinity are not JSON/],
    ['an unknown literal', '[True]', '/0', 1, /expected a value, found "T"/],
    ['a cut literal', '{"a":tru', '/a', 5, /expected a value/],
    ['a raw control character', '{"a":"x\ny"}', '/a', 7, /control character/],
    ['the last raw control character', '"\u001f"', '', 1, /control character/],
    ['a raw NUL in a name', '{"\u0000":1}', '', 2, /control character/],
    ['an unknown escape', '{"a":["\\x41"]}', '/a/0', 7, /not an escape/],
    ['a short \\u escape', '"\\u12"', '', 1, /not an escape/],
    ['a \\u escape with a sign', '"\\u+123"', '', 1, /not an escape/],
    ['a raw lone high surrogate', '{"a":"x\ud83d"}', '/a', 7, /lone surrogate/],
    ['a raw lone low surrogate', '"\ude00"', '', 1, /lone surrogate/],
    ['an escaped lone high surrogate', '"a\\ud83d!"', '', 2, /lone surrogate/],
    ['an escaped lone low surrogate', '"\\ude00"', '', 1, /lone surrogate/],
    ['two high surrogates', '"\\ud83d\\ud83d\\ude00"', '', 1, /lone surrogate/],
    ['surrogates the wrong way round', '"\ude00\ud83d"', '', 1, /lone surrogate/],
    ['a lone surrogate in a name', '{"a":{"\\ud800":1}}', '/a', 7, /lone surrogate/],
    ['duplicate members', '{"a":1,"b":2,"a":3}', '/a', 13, /"a" is there twice/],
    ['duplicates next to each other', '{"a":1,"a":1}', '/a', 7, /twice/],
    ['duplicates spelled differently', '{"A":1,"\\u0041":2}', '/A', 7, /twice/],
    ['the first duplicate in the text', '{"x":[{"c":1,"b":1,"b":1,"c":1}]}', '/x/0/b', 19, /"b"/],
    ['a duplicate __proto__', '{"__proto__":1,"__proto__":2}', '/__proto__', 15, /twice/],
    ['a number with a leading zero', '{"a":01}', '/a', 5, /begin with a zero/],
    ['a leading plus', '[+1]', '/0', 1, /expected a value, found "\+"/],
    ['a leading point', '[.5]', '/0', 1, /expected a value/],
    ['a point without digits', '[1.]', '/0', 3, /digit is missing/],
    ['an exponent without digits', '[1e+]', '/0', 4, /digit is missing/],
    ['a lone minus', '[-]', '/0', 2, /digit is missing/],
    ['a number that is not shortest', '{"p":{"t":0.1000000000000000055}}', '/p/t', 10, /shortest.*\(0\.1\)/],
    ['an unsafe integer', '{"a":[0,9007199254740992]}', '/a/1', 8, /2\^53/],
    ['a name that needs escaping in a pointer', '{"a/b~c":[NaN]}', '/a~1b~0c/0', 10, /NaN/],
  ])('%s', (_name, text, pointer, offset, detail) => {
    const outcome = readJsonText(text, 'any');
    expect(outcome).toMatchObject({ ok: false, problem: { pointer, offset } });
    expect(outcome.ok ? '' : outcome.problem.detail).toMatch(detail);
  });

  it.each(['[]', '"{}"', '1', 'null', '', '  [1]'])('a root that must be an object: %j', (text) => {
    const outcome = readJsonText(text, 'object');
    expect(outcome).toMatchObject({ ok: false, problem: { pointer: '', detail: 'a JSON object is required' } });
  });

  it('a pointer too long to report by its nearest ancestor', () => {
    const name = 'n'.repeat(300);
    expect(readJsonText(`{"a":{"${name}":NaN}}`, 'any')).toMatchObject({ problem: { pointer: '/a', offset: 309 } });
  });
});

describe('readJsonText holds its limits', () => {
  it('1 MiB of UTF-8 as received', () => {
    const text = (bytes: number): string => `"${'é'.repeat((bytes - 2) / 2)}"`;
    expect(readJsonText(text(MAX_JSON_BYTES), 'any').ok).toBe(true);
    expect(readJsonText(`${text(MAX_JSON_BYTES)} `, 'any')).toMatchObject({
      ok: false,
      problem: { pointer: '', offset: 0, detail: 'the text is longer than 1048576 bytes of UTF-8' },
    });
    expect(readJsonText('x'.repeat(2 * MAX_JSON_BYTES), 'any').ok).toBe(false);
  });

  it('a depth of 32', () => {
    const nested = (depth: number): string => '[{"a":'.repeat(depth / 2) + '1' + '}]'.repeat(depth / 2);
    expect(readJsonText(nested(MAX_JSON_DEPTH), 'any').ok).toBe(true);
    const outcome = readJsonText(`[${nested(MAX_JSON_DEPTH)}]`, 'any');
    expect(outcome).toMatchObject({ ok: false, problem: { detail: 'nested deeper than 32 levels' } });
    expect(readJsonText('['.repeat(500_000), 'any').ok).toBe(false);
  });

  it('10,000 members and elements together', () => {
    const items = (count: number): string =>
      `[{"a":1,"b":2},${Array(count - 3)
        .fill('7')
        .join(',')}]`;
    expect(readJsonText(items(MAX_JSON_ITEMS), 'any').ok).toBe(true);
    const outcome = readJsonText(items(MAX_JSON_ITEMS + 1), 'any');
    expect(outcome).toMatchObject({
      ok: false,
      problem: { pointer: '', detail: 'more than 10000 members and elements in all' },
    });
  });

  it('counts down again when a container ends', () => {
    expect(readJsonText(`[${Array(40).fill('[]').join(',')}]`, 'any').ok).toBe(true);
    expect(readJsonText(`[${Array(40).fill('{"a":{}}').join(',')}]`, 'any').ok).toBe(true);
  });
});
