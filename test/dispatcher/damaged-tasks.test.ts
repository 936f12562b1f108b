// Damaged tasks are stepped over for a while, and not once they were mended.

import { expect, it } from 'vitest';
import { DamagedTasks } from '../../src/dispatcher/damaged-tasks.js';
import { ManualClock } from '../support/manual-clock.js';

it('are stepped over for a minute, or until they are committed as ready again', async () => {
  const clock = new ManualClock();
  const damaged = new DamagedTasks(clock);
  damaged.add('a');
  damaged.add('b');
  damaged.forget('a');
  expect([damaged.has('a'), damaged.has('b'), damaged.has('c')]).toEqual([false, true, false]);
  await clock.advance(60_001);
  expect(damaged.has('b')).toBe(false);
});
