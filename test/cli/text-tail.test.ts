// The last bytes of a stream.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TextTail } from '../../src/cli/exec/text-tail.js';

function tailOf(chunks: readonly Buffer[], maxBytes: number): string {
  const tail = new TextTail(maxBytes);
  for (const chunk of chunks) tail.push(chunk);
  return tail.text();
}

describe('the tail of a text', () => {
  it('is the last bytes, however they came', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 40, unit: 'grapheme-ascii' })),
        fc.integer({ min: 1, max: 64 }),
        (parts, max) => {
          const all = parts.join('');
          expect(
            tailOf(
              parts.map((part) => Buffer.from(part)),
              max,
            ),
          ).toBe(all.slice(-max));
        },
      ),
    );
  });

  it('never begins inside a character', () => {
    expect(tailOf([Buffer.from('xxä')], 1)).toBe('');
    expect(tailOf([Buffer.from('xxäb')], 2)).toBe('b');
    expect(tailOf([Buffer.from('xx😀')], 3)).toBe('');
  });

  it('shows what is no UTF-8 as such, from its first byte when nothing was cut', () => {
    expect(tailOf([Buffer.from([0x80, 0x41])], 8)).toBe('\ufffdA');
  });

  it('stays small under many small chunks', () => {
    const tail = new TextTail(16);
    for (let i = 0; i < 100_000; i += 1) tail.push(Buffer.from('ab'));
    expect(tail.text()).toBe('ab'.repeat(8));
  });
});
