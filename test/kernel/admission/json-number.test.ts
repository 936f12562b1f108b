// Numbers: RFC 8785's own samples, and which spellings are exact.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { canonicalNumber, canonicalWrittenNumber, numberProblem } from '../../../src/kernel/admission/json-number.js';
import { readJsonText } from '../../../src/kernel/admission/json-text.js';

function doubleOf(bits: string): number {
  return Buffer.from(bits, 'hex').readDoubleBE(0);
}

/** The exact value as a fraction over a power of ten, an independent judge of "the same decimal value". */
function exact(written: string): { readonly mantissa: bigint; readonly exponent: number } {
  const [mantissa = '', exponent = '0'] = written.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { mantissa: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function sameValue(left: string, right: string): boolean {
  const a = exact(left);
  const b = exact(right);
  const least = Math.min(a.exponent, b.exponent);
  const scale = (value: typeof a): bigint => value.mantissa * 10n ** BigInt(value.exponent - least);
  // -0 and 0 are one value here.
  return scale(a) === scale(b);
}

describe('canonicalNumber', () => {
  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('RFC 8785 appendix B: %s is %s', (bits, text) => {
    expect(canonicalNumber(doubleOf(bits))).toBe(text);
  });

  it.each([
    '7fefffffffffffff',
    'ffefffffffffffff',
    '4340000000000000',
    'c340000000000000',
    '4430000000000000',
    '44b52d02c7e14af5',
    '44b52d02c7e14af6',
    '44b52d02c7e14af7',
    '444b1ae4d6e2ef4e',
    '444b1ae4d6e2ef4f',
    '444b1ae4d6e2ef50',
    '7fffffffffffffff',
    '7ff0000000000000',
    'fff0000000000000',
  ])('RFC 8785 appendix B: %s is refused here', (bits) => {
    expect(canonicalNumber(doubleOf(bits))).toBeNull();
  });
});

describe('canonicalWrittenNumber', () => {
  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['-0.0e7', '0'],
    ['0e999999999999999999999', '0'],
    ['0.000e-999999999999999999999', '0'],
    ['1.0', '1'],
    ['0.10', '0.1'],
    ['4.50', '4.5'],
    ['2e-3', '0.002'],
    ['1e2', '100'],
    ['1E+2', '100'],
    ['100e-2', '1'],
    ['-12.5e1', '-125'],
    ['0.000000000000000000000000001', '1e-27'],
    ['5e-324', '5e-324'],
    ['0.5e-323', '5e-324'],
    ['9007199254740991', '9007199254740991'],
    ['-9007199254740991.0', '-9007199254740991'],
    ['9007199254740991000e-3', '9007199254740991'],
    [`1${'0'.repeat(400)}e-400`, '1'],
    [`0.${'0'.repeat(400)}1e401`, '1'],
    ['1424953923781206.2', '1424953923781206.2'],
  ])('%s is %s', (written, canonical) => {
    expect(canonicalWrittenNumber(written)).toBe(canonical);
  });

  it.each([
    ['0.1000000000000000055', /shortest/],
    ['0.1000000000000000055511151231257827', /shortest/],
    ['333333333.33333329', /shortest/],
    ['4.9e-324', /shortest/],
    ['4.94065645841246544e-324', /shortest/],
    ['1e-400', /\(0\)/],
    ['-1e-999999999999999999999', /\(0\)|\(-0\)/],
    ['3e-324', /shortest/],
    [`1.${'0'.repeat(400)}1`, /\(1\)/],
    ['9007199254740992', /2\^53/],
    ['-9007199254740992', /2\^53/],
    ['9007199254740993', /2\^53/],
    ['9007199254740991.4', /shortest/],
    ['9007199254740991.5', /2\^53/],
    ['1e21', /2\^53/],
    ['1E30', /2\^53/],
    ['1.7976931348623157e308', /2\^53/],
    ['1e309', /too large/],
    ['-1e999999999999999999999', /too large/],
    ['9'.repeat(400), /too large/],
  ])('%s is refused', (written, detail) => {
    expect(canonicalWrittenNumber(written)).toBeNull();
    expect(numberProblem(written)).toMatch(detail);
  });

  const digits = fc.stringMatching(/^[0-9]{1,22}$/);
  const spelling = fc
    .tuple(fc.boolean(), digits, fc.option(digits), fc.option(fc.integer({ min: -340, max: 330 })))
    .map(([negative, whole, fraction, exponent]) => {
      const sign = negative ? '-' : '';
      const tail = (fraction === null ? '' : `.${fraction}`) + (exponent === null ? '' : `e${exponent}`);
      return sign + whole.replace(/^0+(?=\d)/, '') + tail;
    });
  const shortestSpelling = fc.double({ noNaN: true, noDefaultInfinity: true }).map(String);
  const longSpelling = fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((value) => value.toFixed(20));

  it('accepts a spelling exactly when its decimal value is that of the shortest form', () => {
    fc.assert(
      fc.property(fc.oneof(spelling, shortestSpelling, longSpelling), (written) => {
        const value = Number(written);
        const expected =
          Math.abs(value) <= Number.MAX_SAFE_INTEGER && sameValue(written, String(value)) ? String(value) : null;
        expect(canonicalWrittenNumber(written)).toBe(expected);
        const read = readJsonText(written, 'any');
        expect(read.ok ? read.canonical : null).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });
});
