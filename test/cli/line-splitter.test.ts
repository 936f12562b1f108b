// Lines out of whatever pieces a pipe delivers, in bounded memory.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../src/cli/exec/line-splitter.js';

function split(chunks: readonly Buffer[], maxBytes = 100): string[] {
  const splitter = new LineSplitter(maxBytes);
  const lines = [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
  return lines.map((line) => (line.kind === 'text' ? line.bytes.toString('latin1') : `too long: ${line.size}`));
}

describe('the line splitter', () => {
  it('gives the same lines however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), fc.array(fc.nat(20)), (text, cuts) => {
        const bytes = Buffer.from(text.replaceAll('|', '\n'), 'latin1');
        const chunks: Buffer[] = [];
        let at = 0;
        for (const cut of cuts) chunks.push(bytes.subarray(at, (at += cut)));
        chunks.push(bytes.subarray(at));
        expect(split(chunks)).toEqual(split([bytes]));
      }),
    );
  });

  it('keeps empty lines, takes a last line without its end, strips a carriage return', () => {
    expect(split([Buffer.from('a\n\nb\r\nc')])).toEqual(['a', '', 'b', 'c']);
    expect(split([Buffer.from('a\n')])).toEqual(['a']);
    expect(split([])).toEqual([]);
  });

  it('drops a line that is too long, tells its size, and goes on with the next', () => {
    const long = Buffer.alloc(1_000, 'x');
    expect(split([Buffer.from('a\n'), long, long, Buffer.from('x\nb\n'), long], 100)).toEqual([
      'a',
      'too long: 2001',
      'b',
      'too long: 1000',
    ]);
  });

  it('takes a line of exactly the limit and none longer', () => {
    expect(split([Buffer.from('12345\n123456\n')], 5)).toEqual(['12345', 'too long: 6']);
  });

  it('does not hold on to what it drops', () => {
    const splitter = new LineSplitter(10);
    for (let i = 0; i < 1_000; i += 1) splitter.push(Buffer.alloc(1_000, 'x'));
    expect(JSON.stringify(splitter).length).toBeLessThan(200);
  });
});
