// Damaged tasks are stepped over for a while, and not once they were mended.

import { expect, it } from 'vitest';
import { DamagedTasks } from '../../src/dispatcher/damaged-tasks.js';
import { ManualClock } from '../support/manual-clock.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

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

it('are not proposed again at once when it is their claim that cannot be written', async () => {
  const world = await World.open();
  const bad = (await world.admit('bad')).admission.taskId;
  let tried = 0;
  world.probe.overrule = (plan) => {
    if (!plan.records.some((write) => write.kind === 'update' && write.taskId === bad)) return null;
    tried += 1;
    return { kind: 'damaged', detail: 'told to be' };
  };
  const worker = (await openWorker(world, { slots: 2, ttlMs: 600_000 })).completeAll();
  await world.settle();
  const good = (await world.admit('good')).admission.taskId;
  await world.clock.advance(50_000);
  expect([tried, worker.sink.claimedIds]).toEqual([1, [good]]);
  await world.clock.advance(20_000);
  expect(tried).toBe(2);
});
