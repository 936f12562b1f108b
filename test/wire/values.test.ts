// Small values of the wire: spans and times, bounded texts, tokens, event payloads, a worker's frame of events.

import { create } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WorkerEventSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { CUT_MARK, cutText, lastBytes, markCut, wasCut } from '../../src/wire/bounded-text.js';
import { requiredJson } from '../../src/wire/json-values.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { RefusalError } from '../../src/wire/refusal-error.js';
import { readError } from '../../src/wire/settlement-codec.js';
import { durationMs, timestampMs, toDuration, toTimestamp } from '../../src/wire/time-values.js';
import { readEpoch, readMark } from '../../src/wire/whole-numbers.js';
import { readWorkerEvents } from '../../src/wire/worker-events-codec.js';

it('only a cut says that a text was cut', () => {
  const own = `as the upstream said${CUT_MARK}`;
  const kept = cutText(own, 100);
  expect(wasCut(kept)).toBe(false);
  expect(kept).toBe('as the upstream said... [cut]');
  expect(Buffer.byteLength(kept)).toBe(Buffer.byteLength(own));
  expect(wasCut(markCut(kept, 100))).toBe(true);
});

describe('JSON values', () => {
  const nested = (levels: number, inside: string) => '[{"a":'.repeat(levels / 2) + inside + '}]'.repeat(levels / 2);

  it('may have so many levels, brackets in strings and scalars aside', () => {
    const brackets = JSON.stringify('[{'.repeat(100) + '\\"[' + '\\\\');
    for (const text of [nested(500, '1'), nested(500, brackets), '[[],[],{}]', brackets]) {
      expect(requiredJson('f', text)).toBe(text);
    }
    const tooDeep = 'f: must not be nested deeper than 500 levels';
    for (const text of [
      nested(500, '[]'),
      nested(500, '{}'),
      `[${brackets},${nested(500, '1')}]`,
      '['.repeat(1_048_576),
    ]) {
      expect(() => requiredJson('f', text)).toThrow(tooDeep);
    }
    expect(() => requiredJson('f', '[1')).toThrow('f: is not JSON');
  });

  it('that describe a failure are told as text when they are too deep, and the failure stands', () => {
    const detailsJson = nested(502, '1');
    expect(readError('error', { code: 'c', message: 'm', retryable: true, detailsJson })).toMatchObject({
      code: 'c',
      detailsJson: JSON.stringify(detailsJson),
    });
  });
});

describe('epochs and marks', () => {
  it('are read when a double holds them exactly, and refused by name when not', () => {
    expect(readEpoch('e', 1n)).toBe(1);
    expect(readEpoch('e', 2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
    expect(readMark('m', 0n)).toBe(0);
    for (const wrong of [0n, -1n, 2n ** 53n, 2n ** 63n - 1n]) {
      expect(() => readEpoch('list[].epoch', wrong, 7)).toThrow('list[7].epoch: must be from 1 to 9007199254740991');
    }
    for (const wrong of [-1n, 2n ** 53n]) expect(() => readMark('mark', wrong)).toThrow(RefusalError);
  });
});

describe('spans and times', () => {
  it('come back as they went', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 315_360_000_000 }), (ms) => {
        expect(durationMs('f', create(DurationSchema, toDuration(ms)))).toBe(ms);
        expect(timestampMs('f', create(TimestampSchema, toTimestamp(ms)))).toBe(ms);
      }),
    );
    expect(timestampMs('f', toTimestamp(-1_500))).toBe(-1_500);
  });

  it('are rounded down to milliseconds', () => {
    expect(durationMs('f', create(DurationSchema, { seconds: 1n, nanos: 999_999 }))).toBe(1_000);
  });

  it.each([
    { seconds: 0n, nanos: -1 },
    { seconds: -1n, nanos: 0 },
    { seconds: 1n, nanos: -1 },
    { seconds: 0n, nanos: 1_000_000_000 },
    { seconds: 315_576_000_001n, nanos: 0 },
  ])('that are none are MALFORMED: %o', (value) => {
    expect(() => durationMs('f', create(DurationSchema, value))).toThrow(RefusalError);
  });
});

describe('texts', () => {
  it('are cut at a character and marked', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.integer({ min: 16, max: 120 }), (text, max) => {
        const cut = cutText(text, max);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max);
        expect(wasCut(cut)).toBe(cut !== text);
        if (cut !== text) expect(text.startsWith(cut.slice(0, -CUT_MARK.length))).toBe(true);
        const tail = lastBytes(text, max);
        expect(text.endsWith(tail)).toBe(true);
        expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(max);
        expect(Buffer.byteLength(markCut(text, max))).toBeLessThanOrEqual(max);
      }),
    );
  });
});

describe('tokens', () => {
  const mint = new TokenMint('secret');

  it('are good for their purpose and their store only', () => {
    const token = mint.give('list', '42');
    expect(mint.read('cursor', 'list', token)).toBe('42');
    expect(() => mint.read('cursor', 'watch', token)).toThrow(RefusalError);
    expect(() => new TokenMint('other').read('cursor', 'list', token)).toThrow(RefusalError);
  });

  it('do not survive any change', () => {
    const token = mint.give('list', '42');
    for (let at = 0; at < token.length; at += 1) {
      const altered = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
      expect(() => mint.read('cursor', 'list', altered)).toThrow(/not one that this store gave/);
    }
  });
});

describe('a frame of events', () => {
  const event = (taskId: string, epoch: bigint, eventSeq: bigint) =>
    create(WorkerEventSchema, { taskId, generation: 1, epoch, eventSeq, event: { case: 'progress', value: {} } });

  it('becomes one report per claim, in the order of the worker', () => {
    const reports = readWorkerEvents([
      event('a', 1n, 1n),
      event('b', 5n, 1n),
      event('a', 1n, 2n),
      event('b', 5n, 2n),
      event('a', 2n, 1n),
    ]);
    const named = reports.map(({ taskId, epoch, events }) => [taskId, epoch, events.map(({ seq }) => seq)]);
    expect(named).toEqual([
      ['a', 1, [1, 2]],
      ['b', 5, [1, 2]],
      ['a', 2, [1]],
    ]);
  });

  it.each([
    [event('', 1n, 1n), 'events[0].task_id'],
    [event('a', 0n, 1n), 'events[0].epoch'],
    [event('a', 1n, 0n), 'events[0].event_seq'],
    [event('a', 1n, -1n), 'events[0].event_seq'],
  ])('is MALFORMED as a whole when an event has no name or number', (message, field) => {
    expect(() => readWorkerEvents([message])).toThrow(field);
  });
});
