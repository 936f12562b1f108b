import { expect, test } from 'vitest';
import { Backoff } from '../../src/sdk/transport/backoff.js';
import { MAX_TIMER_MS } from '../../src/sdk/transport/option-checks.js';

test('no hint makes a wait that a timer cannot hold', () => {
  const backoff = new Backoff({ initialMs: 100, maximumMs: 5_000 });
  expect(backoff.next(Number.MAX_SAFE_INTEGER)).toBe(MAX_TIMER_MS);
});
