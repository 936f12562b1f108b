import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeAdmission, encodeAdmission } from '../../src/store/admission-codec.js';
import { decoded } from '../../src/store/decode-guards.js';
import { countEvents, decodeEvents, encodeEvents } from '../../src/store/history-codec.js';
import { decodeRecord, encodeRecord, statusOfEncoded } from '../../src/store/record-codec.js';
import { admission, life } from './kernel-walk.js';

/** fast-check makes objects without a prototype too, which strict equality would tell apart. */
function plain<T>(value: T): T {
  return structuredClone(value);
}

describe('codecs', () => {
  it('carry every admission', () => {
    fc.assert(
      fc.property(admission, (given) => {
        expect(plain(decodeAdmission(given.taskId, encodeAdmission(given)))).toStrictEqual(plain(given));
      }),
      { numRuns: 300 },
    );
  });

  it('carry every record and every history that the kernel makes', () => {
    const types = new Set<string>();
    fc.assert(
      fc.property(life, (commits) => {
        for (const { record, events } of commits) {
          const text = encodeRecord(record);
          expect(plain(decodeRecord(text, record.admission))).toStrictEqual(plain(record));
          expect(statusOfEncoded(text)).toBe(record.status);
          const row = encodeEvents(events);
          expect(plain(decodeEvents(row, record.lastEvent))).toStrictEqual(plain(events));
          expect(countEvents(row)).toBe(events.length);
          for (const event of events) types.add(event.type);
        }
      }),
      { numRuns: 800 },
    );
    // A walk that never gets anywhere would prove nothing.
    expect(types.size).toBeGreaterThanOrEqual(20);
  });

  it('write one line feed at most, between head and payloads, so that a head is found without parsing', () => {
    fc.assert(
      fc.property(life, (commits) => {
        for (const { events } of commits) {
          const row = encodeEvents(events);
          const end = row.indexOf('\n');
          expect(() => JSON.parse(row.slice(1, end === -1 ? undefined : end)) as unknown).not.toThrow();
        }
      }),
      { numRuns: 100 },
    );
  });

  it('answer any mutilated row with its damage, and throw nothing', () => {
    const cut = fc.double({ min: 0, max: 0.999, noNaN: true });
    fc.assert(
      fc.property(life, cut, fc.string({ maxLength: 3 }), (commits, share, patch) => {
        for (const { record, events } of commits) {
          const given = record.admission;
          const mutilate = (row: string): string => {
            const at = Math.floor(row.length * share);
            return row.slice(0, at) + patch + row.slice(at + patch.length + 1);
          };
          const reads = [
            decoded(() => decodeRecord(mutilate(encodeRecord(record)), given)),
            decoded(() => decodeAdmission(given.taskId, mutilate(encodeAdmission(given)))),
            decoded(() => decodeEvents(mutilate(encodeEvents(events)), record.lastEvent)),
          ];
          for (const read of reads) expect(typeof read.ok).toBe('boolean');
        }
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ['an unknown format', '2a{}'],
    ['no status', '1z{}'],
    ['a body that is no JSON', '1a{"n":1'],
    ['a missing field', '1a{"n":1,"r":1,"u":5}'],
    ['a field of another type', '1a{"n":"1","r":1,"u":5,"i":"g"}'],
    ['nothing at all', ''],
  ])('refuse a record with %s', (_what, row) => {
    const [given] = fc.sample(admission, 1);
    if (given === undefined) throw new Error('no sample');
    const read = decoded(() => decodeRecord(row, given));
    expect(read.ok).toBe(false);
  });
});
