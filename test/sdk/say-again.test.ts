import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ReeveError } from '../../src/sdk/transport/reeve-error.js';
import { SayAgain } from '../../src/sdk/worker/say-again.js';

const overloaded = new ReeveError({ reason: 'OVERLOADED', code: status.RESOURCE_EXHAUSTED, message: 'not now' });
const inAMinute = new ReeveError({
  reason: 'OVERLOADED',
  code: status.RESOURCE_EXHAUSTED,
  message: '',
  retryAfterMs: 60_000,
});

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test('each refusal waits longer, and there is an end to it', () => {
  const waitsMs: number[] = [];
  let refusedAt = performance.now();
  let goesOn = true;
  const sayAgain = new SayAgain({
    release: {
      maxTimes: 5,
      again: () => {
        waitsMs.push(performance.now() - refusedAt);
        refusedAt = performance.now();
        goesOn = sayAgain.refused('release', overloaded);
      },
    },
  });
  sayAgain.refused('release', overloaded);
  vi.runAllTimers();
  expect(goesOn).toBe(false);
  expect(waitsMs).toHaveLength(5);
  for (const [index, waitMs] of waitsMs.entries()) {
    expect(waitMs).toBeGreaterThanOrEqual(125 * 2 ** index);
    expect(waitMs).toBeLessThanOrEqual(250 * 2 ** index + 1);
  }
});

test('refusals while it is on its way change nothing, and the hint is kept to', () => {
  let times = 0;
  const sayAgain = new SayAgain({ events: { maxTimes: Number.POSITIVE_INFINITY, again: () => (times += 1) } });
  sayAgain.refused('events', inAMinute);
  sayAgain.refused('events', overloaded);
  vi.advanceTimersByTime(59_999);
  expect(times).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(times).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('with the stream what was refused on it is forgotten', () => {
  let times = 0;
  const sayAgain = new SayAgain({ events: { maxTimes: 1, again: () => (times += 1) } });
  sayAgain.refused('events', overloaded);
  sayAgain.reset();
  vi.runAllTimers();
  expect(times).toBe(0);
  expect(sayAgain.refused('events', overloaded)).toBe(true);
});
