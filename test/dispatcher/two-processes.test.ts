// Two whole processes on one store, both dispatching, one of them killed half-way: every task is done once, each epoch
// has one owner, and nothing is left behind.

import { describe, expect, it } from 'vitest';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const TASKS = 60;

describe('two processes', () => {
  it.each(SEEDS)('seed %d', async (seed) => {
    const left = await World.open({ seed });
    const right = await left.replica({ seed: seed + 100 });
    const { clock, random } = left;
    const sinks = [];
    for (const world of [left, left, right, right]) {
      const worker = await openWorker(world, { slots: 1 + random.below(3), ttlMs: 5_000 });
      if (random.chance() < 0.8) worker.completeAll();
      sinks.push(worker.sink);
    }
    const tasks: string[] = [];
    for (let n = 0; n < TASKS; n++) {
      const { admission } = await random.pick([left, right]).admit(`k${String(n)}`, { queue: random.pick(['a', 'b']) });
      tasks.push(admission.taskId);
      if (random.chance() < 0.3) await clock.advance(random.below(400));
      if (random.chance() < 0.1) void random.pick([left, right]).cancel(random.pick(tasks));
    }
    left.kill();
    const last = (await openWorker(right, { slots: 10 })).completeAll();
    sinks.push(last.sink);
    for (let beat = 0; beat < 15; beat++) {
      await clock.advance(9_000);
      await last.heartbeat();
    }
    const deliveries = sinks.flatMap(({ claimed }) =>
      claimed.map(({ record, epoch }) => `${record.admission.taskId} ${String(epoch)}`),
    );
    expect(new Set(deliveries).size).toBe(deliveries.length);
    for (const taskId of tasks) expect((await right.stored(taskId)).status).toMatch(/^(completed|cancelled)$/);
    await right.assertHistories(tasks);
    expect([right.defects, right.fatals, right.errors]).toEqual([[], [], []]);
    expect(await right.real.leaseHolders()).toEqual([]);
  });
});
