import { expect, test } from 'vitest';
import { Backoff, LASTING_MS } from '../../src/sdk/transport/backoff.js';
import { MAX_TIMER_MS } from '../../src/sdk/transport/option-checks.js';

const backoffOf = () => new Backoff({ initialMs: 100, maximumMs: 5_000, random: () => 1 - Number.EPSILON });

function waitsOf(backoff: Backoff, count: number): number[] {
  return Array.from({ length: count }, () => Math.round(backoff.next()));
}

test('what ends soon after its beginning is waited for longer and longer; what has lasted begins anew', () => {
  const backoff = backoffOf();
  expect(waitsOf(backoff, 3)).toEqual([100, 200, 400]);
  backoff.lasted(LASTING_MS - 1);
  expect(waitsOf(backoff, 4)).toEqual([800, 1_600, 3_200, 5_000]);
  backoff.lasted(LASTING_MS);
  expect(waitsOf(backoff, 1)).toEqual([100]);
});

test('no hint makes a wait that a timer cannot hold', () => {
  expect(backoffOf().next(Number.MAX_SAFE_INTEGER)).toBe(MAX_TIMER_MS);
});
