// The chain by itself: what a link covers, what it does not, and what a redaction leaves of a row.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeAdmission } from '../../src/store/admission-codec.js';
import { decoded } from '../../src/store/decode-guards.js';
import { HistoryChain, type LinkPlace } from '../../src/store/history-chain.js';
import { decodeEvents, encodeEvents, payloadPlaces } from '../../src/store/history-codec.js';
import { partsOfHistoryRow, withoutPayloads } from '../../src/store/history-row.js';
import { life } from './kernel-walk.js';

const chain = new HistoryChain(null);
const PLACE: LinkPlace = { taskId: 'a', lastNumber: 1, previous: 'ab'.repeat(32), admission: null };
const ROW = '1[1700000000000,1,1,[],[[6,1,0,4,null]],[4,2]]\n"ab"{}';

describe('a link', () => {
  it('changes with everything that it covers', () => {
    const links = [
      chain.linkOf(PLACE, ROW),
      chain.linkOf({ ...PLACE, taskId: 'b' }, ROW),
      chain.linkOf({ ...PLACE, lastNumber: 2 }, ROW),
      chain.linkOf({ ...PLACE, previous: 'ac'.repeat(32) }, ROW),
      chain.linkOf({ ...PLACE, previous: null, admission: '1{}' }, ROW),
      chain.linkOf({ ...PLACE, previous: null, admission: '1{"n":""}' }, ROW),
      chain.linkOf(PLACE, ROW.replace('"ab"', '"cd"')),
      chain.linkOf(PLACE, ROW.replace('[[6,1,', '[[7,1,')),
      chain.linkOf(PLACE, ROW.replace('[4,2]', '[2,4]')),
      new HistoryChain(Buffer.alloc(32, 1)).linkOf(PLACE, ROW),
      new HistoryChain(Buffer.alloc(32, 2)).linkOf(PLACE, ROW),
    ];
    expect(new Set(links).size).toBe(links.length);
    for (const link of links) expect(link).toMatch(/^[0-9a-f]{64}$/);
  });

  it('covers of the admission its head only, in which the hash of the args stands', () => {
    const of = (admission: string) => chain.linkOf({ ...PLACE, previous: null, admission }, ROW);
    expect(of('1{"a":2}\n{}')).toBe(of('1{"a":2}\n[]'));
  });

  it.each([
    ['more than it says', `${ROW} `],
    ['less than it says', ROW.slice(0, -1)],
    ['a list that is none', ROW.replace('[4,2]]\n', '{"4":2}]\n')],
    ['an unreadable redaction', `2[[0,"zz"]]\n${ROW}`],
  ])('of a row with %s is none', (_what, row) => {
    expect(decoded(() => chain.linkOf(PLACE, row)).ok).toBe(false);
    expect(chain.holds(chain.linkOf(PLACE, ROW), PLACE, row)).toBe(false);
  });
});

describe('a redaction', () => {
  it('of any events of any commit leaves the link and everything but those payloads', () => {
    let taken = 0;
    fc.assert(
      fc.property(life, fc.infiniteStream(fc.boolean()), (commits, choices) => {
        for (const { record, events } of commits) {
          const row = encodeEvents(events);
          const place = { ...PLACE, lastNumber: record.lastEvent, admission: encodeAdmission(record.admission) };
          const link = chain.linkOf(place, row);
          let redacted = row;
          const gone = new Set<number>();
          for (const { number } of events) {
            const places = payloadPlaces(redacted, record.lastEvent, number);
            if (places.size === 0 || choices.next().value !== true) continue;
            redacted = withoutPayloads(redacted, places);
            gone.add(number);
            taken += 1;
          }
          expect(chain.holds(link, place, redacted)).toBe(true);
          expect(partsOfHistoryRow(redacted)).toEqual(partsOfHistoryRow(row));
          const after = decodeEvents(redacted, record.lastEvent);
          for (const [index, event] of events.entries()) {
            if (!gone.has(event.number)) expect(after[index]).toEqual(event);
            else expect(JSON.stringify(after[index])).toContain('{\\"redacted\\":true}');
          }
        }
      }),
      // One seed, so that what it is to meet is met in every run.
      { numRuns: 200, seed: 7 },
    );
    expect(taken).toBeGreaterThan(20);
  });

  it('puts a hash where a payload was, and whoever changes it is found', () => {
    const row = withoutPayloads(ROW, new Set([0]));
    expect(row).not.toContain('"ab"');
    const link = chain.linkOf(PLACE, ROW);
    expect(chain.holds(link, PLACE, row)).toBe(true);
    const hash = /"([0-9a-f]{64})"/.exec(row)?.[1] ?? '';
    expect(chain.holds(link, PLACE, row.replace(hash, 'ab'.repeat(32)))).toBe(false);
  });
});
