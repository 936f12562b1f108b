// Which task goes to which worker, and in which order (lifecycle.md section 7): by namespace, queue, kind, target and
// capabilities; within a route by priority and time; among routes and among workers in turn.

import { describe, expect, it } from 'vitest';
import { PRIORITY_STEP_MS } from '../../src/kernel/placement.js';
import { type Given, causeOf, submission, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

describe('a task is claimed only by a session that', () => {
  const cases: readonly {
    readonly rule: string;
    readonly task: Given;
    readonly fits: Parameters<typeof subscription>[0];
    readonly misfits: Parameters<typeof subscription>[0];
  }[] = [
    { rule: 'has its namespace', task: { namespace: 'a' }, fits: { namespaces: ['b', 'a'] }, misfits: {} },
    { rule: 'serves its queue', task: { queue: 'mail' }, fits: { queues: ['mail'] }, misfits: { queues: ['post'] } },
    { rule: 'has its kind', task: { kind: 'flow' }, fits: { kinds: ['flow'] }, misfits: { kinds: ['agent'] } },
    { rule: 'has its target', task: { target: 'process' }, fits: {}, misfits: { targets: ['host'] } },
    {
      rule: 'has all its capabilities',
      task: { capabilities: ['gpu', 'zone:1'] },
      fits: { capabilities: ['zone:1', 'disk', 'gpu'] },
      misfits: { capabilities: ['gpu'] },
    },
  ];

  it.each(cases)('$rule', async ({ task, fits, misfits }) => {
    const world = await World.open();
    const misfit = await openWorker(world, { serves: subscription(misfits) });
    const { admission } = await world.admit('k', task);
    await world.clock.advance(6_000);
    expect(misfit.sink.claimed).toEqual([]);
    const fit = await openWorker(world, { serves: subscription(fits) });
    await world.settle();
    expect(fit.sink.claimedIds).toEqual([admission.taskId]);
    expect(misfit.sink.claimed).toEqual([]);
  });
});

describe('the order within a route', () => {
  async function claimedOrder(tasks: readonly { key: string; priority?: number; waitedMs?: number }[]) {
    const world = await World.open();
    for (const { key, priority = 0, waitedMs = 0 } of tasks) {
      world.clock.step(-waitedMs);
      await world.admit(key, { policy: { priority } });
      world.clock.step(waitedMs);
    }
    const worker = (await openWorker(world)).completeAll();
    await world.clock.advance(10_000);
    return worker.sink.claimed.map(({ record }) => record.admission.idempotencyKey);
  }

  it('is that of admission', async () => {
    const keys = ['a', 'b', 'c', 'd'];
    expect(await claimedOrder(keys.map((key) => ({ key })))).toEqual(keys);
  });

  it('puts a higher priority before', async () => {
    const order = await claimedOrder([{ key: 'low', priority: -10 }, { key: 'mid' }, { key: 'high', priority: 10 }]);
    expect(order).toEqual(['high', 'mid', 'low']);
  });

  it('lets a minute of waiting outweigh one step of priority, and no more', async () => {
    const order = await claimedOrder([
      { key: 'just-waited-less', waitedMs: PRIORITY_STEP_MS - 1 },
      { key: 'just-waited-longer', waitedMs: PRIORITY_STEP_MS + 1 },
      { key: 'step-up', priority: 1 },
    ]);
    expect(order).toEqual(['just-waited-longer', 'step-up', 'just-waited-less']);
  });

  it('is kept by tasks that come one by one while a worker is busy', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const busy = await world.admit('busy');
    await world.settle();
    for (const [key, priority] of Object.entries({ a: 0, b: 5, c: -5, d: 5 }))
      await world.admit(key, { policy: { priority } });
    worker.completeAll();
    await worker.say(busy.admission.taskId, 'accepted', 'started', 'completed');
    await world.clock.advance(1_000);
    expect(worker.sink.claimed.map(({ record }) => record.admission.idempotencyKey)).toEqual([
      'busy',
      'b',
      'd',
      'a',
      'c',
    ]);
  });
});

describe('the order within a queue', () => {
  it('is one for all kinds of tasks in it: priority and time count across them', async () => {
    const world = await World.open();
    for (const [n, priority] of [0, 3, 1, 5, 2, 4].entries()) {
      const kind = n % 2 === 0 ? 'agent' : 'flow';
      await world.admit(`p${String(priority)}-${kind}`, { kind, policy: { priority } });
    }
    const worker = (await openWorker(world)).completeAll();
    await world.clock.advance(1_000);
    expect(worker.sink.claimed.map(({ record }) => record.policy.priority)).toEqual([5, 4, 3, 2, 1, 0]);
  });

  it('passes over kinds whose workers are busy, and takes them up in their place', async () => {
    const world = await World.open();
    const agents = await openWorker(world, { name: 'agents', serves: subscription({ kinds: ['agent'] }) });
    const all = await openWorker(world, { name: 'all', serves: subscription({ kinds: ['agent', 'flow'] }) });
    for (let n = 0; n < 2; n++) await world.admit(`busy-${String(n)}`, { kind: 'agent' });
    await world.settle();
    await world.admit('first', { kind: 'flow', policy: { priority: 2 } });
    await world.admit('second', { kind: 'agent', policy: { priority: 1 } });
    const [busy = ''] = agents.sink.claimedIds;
    await agents.say(busy, 'accepted', 'started', 'completed');
    await world.settle();
    expect(agents.sink.claimed.at(-1)?.record.admission.idempotencyKey).toBe('second');
    await all.say(all.sink.claimedIds[0] ?? '', 'accepted', 'started', 'completed');
    await world.settle();
    expect(all.sink.claimed.at(-1)?.record.admission.idempotencyKey).toBe('first');
  });
});

describe('the order after a change of priority', () => {
  const reprioritize = (world: World, taskId: string, priority: number) => {
    const values = submission('any', { policy: { priority } }).policy;
    return world.apply({
      taskId,
      intent: { kind: 'update_policy', fields: ['priority'], values, cause: causeOf('operator') },
    });
  };

  it.each([
    { rule: 'moves a task forward past those in the window', key: 'c', priority: 1, order: ['c', 'a', 'b'] },
    { rule: 'moves a task back behind those in the window', key: 'a', priority: -1, order: ['b', 'c', 'a'] },
  ])('$rule', async ({ key, priority, order }) => {
    const world = await World.open();
    const worker = await openWorker(world);
    const busy = await world.admit('busy');
    await world.settle();
    const ids = new Map<string, string>();
    for (const each of ['a', 'b', 'c']) ids.set(each, (await world.admit(each)).admission.taskId);
    expect(await reprioritize(world, ids.get(key) ?? '', priority)).toMatchObject({ kind: 'applied' });
    worker.completeAll();
    await worker.say(busy.admission.taskId, 'accepted', 'started', 'completed');
    await world.clock.advance(1_000);
    expect(worker.sink.claimed.slice(1).map(({ record }) => record.admission.idempotencyKey)).toEqual(order);
    await world.assertHistories([...ids.values()]);
  });

  it('holds while nobody serves the route, too', async () => {
    const world = await World.open();
    const ids = new Map<string, string>();
    for (const each of ['a', 'b', 'c']) ids.set(each, (await world.admit(each)).admission.taskId);
    await reprioritize(world, ids.get('a') ?? '', -1);
    await reprioritize(world, ids.get('c') ?? '', 1);
    const worker = (await openWorker(world)).completeAll();
    await world.clock.advance(1_000);
    expect(worker.sink.claimed.map(({ record }) => record.admission.idempotencyKey)).toEqual(['c', 'b', 'a']);
  });

  it('takes a task that is delayed out of its window, and wakes for one whose delay ends', async () => {
    const world = await World.open();
    const delay = async (taskId: string, notBeforeAtMs: number | null) => {
      const values = submission('any', { policy: { notBeforeAtMs } }).policy;
      const intent = { kind: 'update_policy', fields: ['not_before'], values, cause: causeOf('operator') } as const;
      return world.apply({ taskId, intent });
    };
    const { taskId } = (await world.admit('k')).admission;
    await delay(taskId, world.clock.nowMs() + 60_000);
    const worker = await openWorker(world);
    await world.clock.advance(10_000);
    expect(worker.sink.claimed).toEqual([]);
    await delay(taskId, null);
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([taskId]);
  });
});

describe('turns', () => {
  it('are taken by the routes of one worker: a long one does not keep out a short one', async () => {
    const world = await World.open();
    for (let n = 0; n < 20; n++) await world.admit(`long-${String(n)}`, { queue: 'long' });
    await world.admit('short', { queue: 'short' });
    const worker = (await openWorker(world)).completeAll();
    await world.clock.advance(1_000);
    const order = worker.sink.claimed.map(({ record }) => record.admission.idempotencyKey);
    expect(order).toHaveLength(21);
    expect(order.indexOf('short')).toBeLessThan(3);
  });

  it('are taken by the workers of one subscription', async () => {
    const world = await World.open();
    const workers = await Promise.all(['a', 'b', 'c'].map((name) => openWorker(world, { name, slots: 10 })));
    for (let n = 0; n < 9; n++) await world.admit(`k-${String(n)}`);
    await world.settle();
    expect(workers.map(({ sink }) => sink.claimed.length)).toEqual([3, 3, 3]);
  });
});

describe('a task that cannot run now', () => {
  it('is not claimed before its time, and then is', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    await world.admit('k', { policy: { notBeforeAtMs: world.clock.nowMs() + 10_000 } });
    await world.clock.advance(9_900);
    expect(worker.sink.claimed).toEqual([]);
    await world.clock.advance(1_200);
    expect(worker.sink.claimed).toHaveLength(1);
  });
});
