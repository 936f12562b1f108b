// A claim that kills every worker that receives it (lifecycle.md section 7): it does not circle for ever, and spends no
// attempts, whether the death shows by the time to accept or by the end of the session.

import { expect, it } from 'vitest';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

it.each([
  ['before the time to accept', 2_000, null],
  ['after the time to accept', 30_000, null],
  ['at once', 30_000, 0],
] as const)('fails as undeliverable at the tenth, where sessions end %s', async (_, ttlMs, lingerMs) => {
  const world = await World.open();
  const { admission } = await world.admit('deadly');
  const { taskId } = admission;
  let deaths = 0;
  for (let seconds = 0; seconds < 900 && (await world.stored(taskId)).status !== 'failed'; seconds++) {
    const victim = await openWorker(world, { name: `victim-${String(seconds)}`, ttlMs, lingerMs });
    await world.settle();
    if (victim.sink.claimed.length > 0) deaths += 1;
    victim.drop();
    await world.clock.advance(1_000);
  }
  const events = await world.events(taskId);
  const pauses = events.flatMap((e) => (e.type === 'reeve.task.retry_scheduled' ? [e.data.retryAt - e.at] : []));
  expect(pauses).toEqual([0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  expect(await world.stored(taskId)).toMatchObject({
    status: 'failed',
    attempt: 1,
    epoch: 10,
    reason: { code: 'run.failed.undeliverable' },
  });
  expect(deaths).toBe(10);
  await world.assertHistories([taskId]);
  expect([world.errors, world.defects]).toEqual([[], []]);
});
