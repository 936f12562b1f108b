// The window of a route: bounded, in order, and never leaving out a ready task while it says that it knows them all.

import { describe, expect, it } from 'vitest';
import { MAX_WINDOW_ENTRIES, type ReadyEntry, RouteWindow } from '../../src/dispatcher/route-window.js';
import type { ReadyTask } from '../../src/store/task-store.js';
import { subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { Signal, turns, until } from '../support/turns.js';
import { World } from '../support/world.js';

const ROUTE = {
  namespace: 'n',
  queue: 'q',
  actionKind: 'agent',
  executionTarget: 'host',
  requiredCapabilities: [],
} as const;
const entry = (readyOrder: number, taskId = `t${String(readyOrder)}`): ReadyEntry => ({ taskId, readyOrder });

function taken(window: RouteWindow): string[] {
  const ids: string[] = [];
  for (let next = window.take(); next !== null; next = window.take()) ids.push(next.taskId);
  return ids;
}

function loaded(entries: readonly ReadyEntry[], all: boolean): RouteWindow {
  const window = new RouteWindow('key', ROUTE);
  window.beginLoad();
  window.endLoad(entries, all, 0);
  return window;
}

describe('a window', () => {
  it('knows nothing at first: what is offered is left to the store, and it wants to be filled', () => {
    const window = new RouteWindow('key', ROUTE);
    window.offer(entry(1));
    expect([window.size, window.wantsLoad]).toEqual([0, true]);
  });

  it('takes in everything once it is complete, in order, equals as they came', () => {
    const window = loaded([entry(2)], true);
    for (const offered of [entry(3), entry(1), entry(2, 'later')]) window.offer(offered);
    expect(taken(window)).toEqual(['t1', 't2', 'later', 't3']);
    expect(window.wantsLoad).toBe(false);
  });

  it('that is not complete takes in what comes before its last, and leaves the rest to the store', () => {
    const window = loaded([entry(2), entry(4)], false);
    for (const offered of [entry(3), entry(5), entry(4, 'equal')]) window.offer(offered);
    expect(taken(window)).toEqual(['t2', 't3', 't4']);
    expect(window.wantsLoad).toBe(true);
  });

  it('lets go of one that is ready no more, wherever it stands, and of no other', () => {
    const window = loaded([entry(0), entry(1), entry(2), entry(2, 'equal'), entry(2, 'last'), entry(3)], true);
    expect(window.take()?.taskId).toBe('t0');
    for (const gone of [entry(2, 'equal'), entry(3), entry(0), entry(1, 'nobody'), entry(9)]) window.remove(gone);
    expect(window.size).toBe(3);
    window.remove(entry(1));
    expect(taken(window)).toEqual(['t2', 'last']);
    window.beginLoad();
    for (const offered of [entry(1), entry(2)]) window.offer(offered);
    window.remove(entry(1));
    window.endLoad([], true, 0);
    expect(taken(window)).toEqual(['t2']);
  });

  it('keeps what is offered while it is being filled, and knows what it was told twice', () => {
    const window = new RouteWindow('key', ROUTE);
    window.beginLoad();
    for (const offered of [entry(1), entry(2), entry(9)]) window.offer(offered);
    window.endLoad([entry(2), entry(3)], true, 0);
    expect(taken(window)).toEqual(['t1', 't2', 't3', 't9']);
  });

  it('is not complete when it could not keep all that was offered meanwhile', () => {
    const window = new RouteWindow('key', ROUTE);
    window.beginLoad();
    for (let n = 0; n <= MAX_WINDOW_ENTRIES; n++) window.offer(entry(n));
    window.endLoad([], true, 0);
    expect(window.size).toBeLessThanOrEqual(MAX_WINDOW_ENTRIES);
    taken(window);
    expect(window.wantsLoad).toBe(true);
  });

  it('is not complete when what it knew was disproved while it was being filled', () => {
    const window = new RouteWindow('key', ROUTE);
    window.beginLoad();
    window.forget();
    window.endLoad([], true, 0);
    expect(window.wantsLoad).toBe(true);
  });

  it('overflows at its end: it stays bounded and in order, and asks the store for what it dropped', () => {
    const window = loaded([], true);
    for (let n = MAX_WINDOW_ENTRIES + 50; n > 0; n--) window.offer(entry(n));
    expect(window.size).toBe(MAX_WINDOW_ENTRIES);
    const ids = taken(window);
    expect(ids).toEqual(Array.from({ length: MAX_WINDOW_ENTRIES }, (_, n) => `t${String(n + 1)}`));
    expect(window.wantsLoad).toBe(true);
  });

  it('that could not be filled wants to be filled', () => {
    const window = new RouteWindow('key', ROUTE);
    window.beginLoad();
    window.offer(entry(1));
    window.failLoad();
    expect([window.size, window.wantsLoad]).toEqual([0, true]);
  });
});

describe('a backlog', () => {
  it('of 5,000 tasks on many routes drains completely, each route in its order', { timeout: 60_000 }, async () => {
    const world = await World.open();
    const queues = Array.from({ length: 25 }, (_, n) => `q${String(n)}`);
    const tasks = Array.from({ length: 5_000 }, (_, n) => ({ key: `k${String(n)}`, queue: world.random.pick(queues) }));
    await Promise.all(
      tasks.map(({ key, queue }) => world.admit(key, { queue, policy: { priority: world.random.below(3) } })),
    );
    // Nobody knew of them: a fresh process, as after a restart.
    world.kill();
    const restarted = await world.replica();
    const order: { queue: string; rank: readonly [number, number] }[] = [];
    const workers = await Promise.all(['a', 'b', 'c'].map((name) => openWorker(restarted, { name, slots: 50 })));
    restarted.authority.subscribe(({ record, events }) => {
      if (!events.some(({ type }) => type === 'reeve.task.claimed')) return;
      const { queue, idempotencyKey } = record.admission;
      const ready = (record.queuedAt ?? 0) - record.policy.priority * 60_000;
      order.push({ queue, rank: [ready, Number(idempotencyKey.slice(1))] });
    });
    for (const worker of workers) worker.completeAll();
    await until(() => order.length >= 5_000, 'the last of the backlog');
    await turns();
    expect(order).toHaveLength(5_000);
    for (const queue of queues) {
      const ranks = order.filter((claimed) => claimed.queue === queue).map(({ rank }) => rank);
      expect(ranks).toEqual([...ranks].sort((left, right) => left[0] - right[0] || left[1] - right[1]));
    }
    const open = await restarted.real.listTasks({
      namespace: null,
      queue: null,
      statuses: ['queued', 'running'],
      actionKinds: null,
      labels: {},
      descending: false,
      after: null,
      limit: 10,
      withArgs: true,
    });
    expect(open.tasks).toEqual([]);
  });

  it('of more tasks than a window holds, on one route, drains while more come in', { timeout: 60_000 }, async () => {
    const world = await World.open();
    const count = MAX_WINDOW_ENTRIES + 700;
    const admit = (from: number): Promise<unknown> =>
      Promise.all(Array.from({ length: count / 2 }, (_, n) => world.admit(`k${String(from + n)}`)));
    await admit(0);
    const worker = (await openWorker(world, { slots: 8 })).completeAll();
    await admit(count / 2);
    await until(() => worker.sink.claimed.length >= count, 'the last of the backlog');
    await turns();
    expect(new Set(worker.sink.claimedIds).size).toBe(count);
    expect(worker.sink.claimed).toHaveLength(count);
  });
});

describe('routes without a wake-up', () => {
  it('are looked up in turn, however many there are: what another process admitted is found', async () => {
    const world = await World.open();
    const queues = Array.from({ length: 1_100 }, (_, n) => `q${String(n)}`);
    const first = await Promise.all(queues.map((queue) => world.admit(queue, { queue })));
    await Promise.all(first.map(({ admission }) => world.cancel(admission.taskId)));
    const worker = await openWorker(world, { slots: 1 });
    const other = await world.replica({ dispatcher: null, timers: 'stopped' });
    await world.clock.advance(11_000);
    const { admission } = await other.admit('far', { queue: 'q1099' });
    await world.clock.advance(10_000);
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
  });
});

describe('a window that is being filled', () => {
  /** A worker whose route's next read of ready tasks waits for the signal. */
  async function slowRead() {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 10 });
    await world.admit('warm-up');
    await world.settle();
    const read = new Signal();
    const asked = new Signal();
    const real = world.real.readyTasks.bind(world.real);
    world.real.readyTasks = async (...args): Promise<readonly ReadyTask[]> => {
      const tasks = await real(...args);
      asked.reach();
      await read.reached;
      return tasks;
    };
    return { world, worker, read, asked };
  }

  it('loses nothing that is submitted meanwhile', async () => {
    const { world, worker, read, asked } = await slowRead();
    void world.clock.advance(6_000);
    await asked.reached;
    const { admission } = await world.admit('meanwhile');
    read.reach();
    await world.settle();
    expect(worker.sink.claimedIds).toContain(admission.taskId);
  });

  it('does not bring an old copy of a task that ended meanwhile back into memory', async () => {
    const { world, read, asked } = await slowRead();
    const { admission } = await world.admit('elsewhere', { queue: 'other', capabilities: ['gpu'] });
    const worker = await openWorker(world, { serves: subscription({ capabilities: ['gpu'], queues: ['other'] }) });
    await asked.reached;
    // It was read as queued; before the answer is used it is cancelled, and nobody tries to claim it.
    world.dispatcher.setSlots(worker.session, 0);
    await world.cancel(admission.taskId);
    read.reach();
    await world.settle();
    expect(await world.authority.reads.get(admission.taskId)).toMatchObject({ value: { status: 'cancelled' } });
  });
});

describe('entries that are stale', () => {
  it('cost one look each: a thousand cancelled tasks do not keep a worker from the next', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const busy = await world.admit('busy');
    await world.settle();
    const doomed = await Promise.all(Array.from({ length: 1_000 }, (_, n) => world.admit(`k${String(n)}`)));
    const { admission } = await world.admit('alive');
    await Promise.all(doomed.map((record) => world.cancel(record.admission.taskId)));
    await worker.say(busy.admission.taskId, 'accepted', 'started', 'completed');
    await until(() => worker.sink.claimed.length === 2, 'the task behind the cancelled ones');
    expect(worker.sink.claimedIds.at(-1)).toBe(admission.taskId);
  });

  it('or damaged are stepped over, a whole page of them too', async () => {
    const world = await World.open();
    const records = await Promise.all(Array.from({ length: 600 }, (_, n) => world.admit(`k${String(n)}`)));
    const { admission } = await world.admit('sound');
    for (const record of records) world.probe.damaged.add(record.admission.taskId);
    world.kill();
    const restarted = await world.replica();
    for (const taskId of world.probe.damaged) restarted.probe.damaged.add(taskId);
    const worker = await openWorker(restarted);
    await restarted.settle();
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('of another process are found out and given up, and what that process left is claimed', async () => {
    const left = await World.open();
    const right = await left.replica();
    const [first, second] = [await openWorker(left, { name: 'left' }), await openWorker(right, { name: 'right' })];
    const tasks = await Promise.all(Array.from({ length: 10 }, (_, n) => left.admit(`k${String(n)}`)));
    first.completeAll();
    second.completeAll();
    await left.clock.advance(20_000);
    const claimed = [...first.sink.claimedIds, ...second.sink.claimedIds];
    // The first claim of the left worker was sent before it began to complete.
    expect(new Set(claimed).size).toBe(claimed.length);
    expect(claimed.length).toBeGreaterThanOrEqual(tasks.length - 1);
    expect(left.errors).toEqual([]);
  });
});
