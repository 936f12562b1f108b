// JSON that stays the text it is.

import { describe, expect, it } from 'vitest';
import { JsonText, requireJsonText } from '../../src/sdk/transport/json.js';
import { completionOf } from '../../src/sdk/worker/settlement-saying.js';

const numbers = '{"n": 12345678901234567890, "h": 1e400, "z": -0}';

describe('a JSON text', () => {
  it('travels as it stands where a JSON value is taken', () => {
    expect(requireJsonText(new JsonText(numbers), 'output')).toBe(numbers);
    expect(completionOf(new JsonText(numbers), 1_000)).toMatchObject({ value: { resultJson: numbers } });
  });

  it('inside of another value is a value too', () => {
    expect(requireJsonText([new JsonText('{"a": 1}')], 'output')).toBe('[{"a":1}]');
  });

  it.each(['', ' \n', 1, undefined])('is not made of %j', (text) => {
    expect(() => new JsonText(text as string)).toThrow(TypeError);
  });
});
