import { status } from '@grpc/grpc-js';
import { beforeEach, expect, test } from 'vitest';
import { Backoff } from '../../src/sdk/transport/backoff.js';
import { ReeveError } from '../../src/sdk/transport/reeve-error.js';
import { type EndedStream, LASTING_MS, ReattachPause } from '../../src/sdk/worker/reattach-pause.js';

const refused = new ReeveError({ reason: 'STORE_UNAVAILABLE', code: status.UNAVAILABLE, message: 'no' });
const unreadable = new ReeveError({ reason: 'MALFORMED', code: status.INVALID_ARGUMENT, message: 'no' });
const broken = new ReeveError({ reason: 'UNAVAILABLE', code: status.UNAVAILABLE, message: 'Connection dropped' });

let pause: ReattachPause;

beforeEach(() => {
  const random = () => 1 - Number.EPSILON;
  pause = new ReattachPause(new Backoff({ initialMs: 100, maximumMs: 5_000, random }));
});

/** The pauses after so many streams that ended alike. */
function pausesAfter(times: number, ending: ReeveError, more: Partial<EndedStream> = {}): number[] {
  const stream = { ending, livedMs: 5, tookWords: false, ...more };
  return Array.from({ length: times }, () => Math.round(pause.after(stream)));
}

test('streams refused right after their Welcome are waited for longer and longer', () => {
  expect(pausesAfter(4, refused)).toEqual([100, 200, 400, 800]);
});

test('one that has lasted, or that took what was said, was no failure', () => {
  pausesAfter(4, refused);
  expect(pausesAfter(1, refused, { livedMs: LASTING_MS })).toEqual([100]);
  pausesAfter(4, refused);
  expect(pausesAfter(1, refused, { tookWords: true })).toEqual([100]);
});

test('what was said on one that could not be read is no success, whatever else was taken', () => {
  expect(pausesAfter(3, unreadable, { tookWords: true })).toEqual([100, 200, 400]);
});

test('a wire that breaks some times is attached to again at once, one that always breaks is not', () => {
  expect(pausesAfter(10, broken)).toEqual(Array.from({ length: 10 }, () => 100));
  expect(pausesAfter(3, broken)).toEqual([200, 400, 800]);
  expect(pausesAfter(1, broken, { tookWords: true })).toEqual([100]);
  expect(pausesAfter(2, broken)).toEqual([100, 100]);
});

test('nobody there is waited for longer and longer', () => {
  expect(pausesAfter(4, broken, { livedMs: null })).toEqual([100, 200, 400, 800]);
});
