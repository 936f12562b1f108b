// Routes are the callers' to make: however many there are, their reads are few at a time, a wake-up does not look at all
// of them, and what is empty and served by nobody is not kept.

import { describe, expect, it } from 'vitest';
import { MAX_LOADS_AT_ONCE } from '../../src/dispatcher/ready-routes.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { turns, until } from '../support/turns.js';
import { World } from '../support/world.js';

const ROUTES = 20_000;

/** A store whose tasks, all ended, had so many routes; it counts the reads of ready tasks and holds them when told to. */
function storeOfRoutes() {
  const real: TaskStore = openMemoryStore();
  const reads = { begun: 0, underWay: 0, most: 0, held: true };
  const waiting: (() => void)[] = [];
  const read = real.readyTasks.bind(real);
  real.routeKeys = async () => Array.from({ length: ROUTES }, (_, n) => `default\nq${String(n)}\nagent\nhost\n`);
  real.readyTasks = async (...args) => {
    reads.begun += 1;
    reads.underWay += 1;
    reads.most = Math.max(reads.most, reads.underWay);
    if (reads.held) await new Promise<void>((resolve) => waiting.push(resolve));
    reads.underWay -= 1;
    return read(...args);
  };
  const release = (): void => {
    reads.held = false;
    for (const resume of waiting.splice(0)) resume();
  };
  return { real, reads, release };
}

function windowsOf(world: World): ReadonlyMap<string, { readonly pools: readonly unknown[] }> {
  const { routes } = world.dispatcher as unknown as {
    readonly routes: { readonly windows: Map<string, { readonly pools: readonly unknown[] }> };
  };
  return routes.windows;
}

describe('twenty thousand routes', () => {
  it(
    'are read a few at a time when a worker of them all comes, and not again at every wake-up',
    { timeout: 60_000 },
    async () => {
      const { real, reads, release } = storeOfRoutes();
      const world = await World.open({ real, timers: 'stopped' });
      const worker = await openWorker(world, { slots: 2 });
      await turns();
      expect(reads).toMatchObject({ begun: MAX_LOADS_AT_ONCE, underWay: MAX_LOADS_AT_ONCE });
      release();
      await until(() => reads.begun >= ROUTES, 'the last of the routes');
      await turns();
      expect([reads.most, reads.begun]).toEqual([MAX_LOADS_AT_ONCE, ROUTES]);

      // What is looked at is what has something: every window that a wake-up asks for credit counts here.
      let looks = 0;
      for (const { pools } of windowsOf(world).values()) {
        const some = pools.some.bind(pools);
        const find = pools.find.bind(pools);
        const counted = {
          some: (...args: Parameters<typeof some>) => (looks++, some(...args)),
          find: (...args: Parameters<typeof find>) => (looks++, find(...args)),
        };
        Object.assign(pools, counted);
      }
      for (let n = 0; n < 10; n++) {
        world.dispatcher.setSlots(worker.session, 2);
        await turns(1);
      }
      expect(looks).toBeLessThan(100);
      const { admission } = await world.admit('k', { queue: 'q19999' });
      await world.settle();
      expect(worker.sink.claimedIds).toEqual([admission.taskId]);
    },
  );

  it('that nobody serves are forgotten once they are known to be empty', { timeout: 60_000 }, async () => {
    const { real, reads, release } = storeOfRoutes();
    release();
    const world = await World.open({ real, timers: 'stopped' });
    const kept = await world.admit('kept', { queue: 'kept' });
    for (let step = 0; step < 30; step++) await world.clock.advance(5_000);
    expect(reads.most).toBeLessThanOrEqual(MAX_LOADS_AT_ONCE);
    expect([...windowsOf(world).keys()].filter((key) => key.includes('kept'))).toHaveLength(1);
    expect(windowsOf(world).size).toBeLessThan(1_000);
    const worker = await openWorker(world, { slots: 5 });
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([kept.admission.taskId]);
  });
});

describe('a route that was forgotten', () => {
  it('is known again as soon as something becomes ready in it', async () => {
    const world = await World.open();
    const serves = subscription({ queues: ['q'] });
    const worker = await openWorker(world, { serves, lingerMs: 0 });
    const { admission } = await world.admit('k', { queue: 'q' });
    await world.settle();
    await worker.say(admission.taskId, 'accepted', 'started', 'completed');
    expect(windowsOf(world).size).toBe(1);
    worker.drop();
    await world.settle();
    expect(windowsOf(world).size).toBe(0);
    const next = await world.admit('next', { queue: 'q' });
    const other = await openWorker(world, { serves });
    await world.settle();
    expect(other.sink.claimedIds).toEqual([next.admission.taskId]);
  });

  it('does not lose the task whose claim failed while its only worker left', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { lingerMs: 0 });
    const { admission } = await world.admit('warm-up');
    await world.settle();
    await worker.say(admission.taskId, 'accepted', 'started', 'completed');
    const held = world.probe.hold();
    const submitted = world.submit('k');
    await held;
    worker.drop();
    let lost = 0;
    world.probe.overrule = ({ records }) =>
      records.length > 0 && lost++ === 0 ? { kind: 'conflict', subject: 'session', id: worker.sessionId } : null;
    world.probe.release();
    expect((await submitted).kind).toBe('created');
    await world.settle();
    expect(await world.real.sessions(null, 10)).toEqual([]);
    const other = await openWorker(world);
    await world.settle();
    expect(other.sink.claimed).toHaveLength(1);
  });
});
