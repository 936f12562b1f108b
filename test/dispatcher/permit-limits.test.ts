// A start with another configuration of permits: who runs goes on to run, and nobody else begins who may not.

import { describe, expect, it, onTestFinished } from 'vitest';
import type { PermitRules } from '../../src/kernel/permits.js';
import { StoreError } from '../../src/store/store-error.js';
import { subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World, type WorldOptions } from '../support/world.js';

const RULES: PermitRules = { keyLimits: [], capabilities: new Map([['gpu', 'serialization']]) };
const ONE = { policy: { concurrencyKey: 'one' } };
const GPU = { capabilities: ['gpu'] };
const ALL = subscription({ capabilities: ['gpu'] });

const open = async (options: WorldOptions = {}): Promise<World> => {
  const world = await World.open({ permitRules: RULES, ...options });
  onTestFinished(() => expect([world.defects, world.fatals, world.errors]).toEqual([[], [], []]));
  return world;
};
const idsOf = async (world: World, count: number, given: object = ONE): Promise<string[]> => {
  const records = Array.from({ length: count }, (_, n) => world.admit(`k${String(n)}`, given));
  return (await Promise.all(records)).map(({ admission }) => admission.taskId);
};
const commitsOf = (world: World): number => world.probe.calls.get('commit') ?? 0;

describe('a start with other limits', () => {
  const allowing = (limit: number): PermitRules => ({ ...RULES, keyLimits: [{ pattern: 'one', limit }] });

  it('that are higher lets more run, however many wait, and does not ask the workers to', async () => {
    const before = await open();
    const ids = await idsOf(before, 600);
    before.kill();
    const after = await before.replica({ permitRules: allowing(590) });
    await after.clock.advance(1_000);
    expect(await after.real.permits(null, 9)).toMatchObject([{ limit: 590, settled: true, queued: true }]);
    const steps = after.probe.plans().flatMap(({ permits = [] }) => permits);
    // A small one at first, since others may take theirs with it.
    expect(steps.map(({ kind }) => kind)).toEqual(['limited', 'limited', 'limited', 'limited']);
    const worker = await openWorker(after, { slots: 1_000 });
    await after.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual(ids.slice(0, 590).toSorted());
  });

  it('that are lower lets those that run go on, and nobody begin until there is room', async () => {
    const before = await open({ permitRules: allowing(3) });
    const worker = await openWorker(before, { slots: 10 });
    const ids = await idsOf(before, 5);
    await before.settle();
    expect(worker.sink.claimedIds).toEqual(ids.slice(0, 3));
    const after = await before.replica({ permitRules: allowing(1) });
    before.kill();
    const again = await worker.reattach({ world: after });
    await after.settle();
    for (const taskId of ids.slice(0, 2)) {
      await again.sayIn(taskId, 1, 'accepted', 'started', 'completed');
      await after.settle();
      expect(again.sink.claimedIds).toEqual([]);
    }
    await again.sayIn(ids[2] ?? '', 1, 'accepted', 'started', 'completed');
    await after.settle();
    expect(again.sink.claimedIds).toEqual([ids[3]]);
  });

  it('brings many keys in line in few transactions, and moves no more in any of them than a few steps would', async () => {
    const limits = (limit: number): PermitRules => ({ ...RULES, keyLimits: [{ pattern: '*', limit }] });
    const before = await open({ permitRules: limits(1), dispatcher: null });
    const keys = Array.from({ length: 300 }, (_, n) => (n < 24 ? 30 : 2));
    const ids = keys.flatMap((tasks, key) => Array.from({ length: tasks }, (_, n) => [key, n] as const));
    await Promise.all(
      ids.map(([key, n]) =>
        before.admit(`${String(key)}-${String(n)}`, { policy: { concurrencyKey: `key-${String(key)}` } }),
      ),
    );
    before.kill();
    const after = await before.replica({ permitRules: limits(30), dispatcher: null });
    await after.clock.advance(1_000);
    const states = await after.real.permits(null, 999);
    expect(states.filter(({ limit, settled }) => limit !== 30 || !settled)).toEqual([]);
    const moves = after.probe.batches.map(({ plans }) =>
      plans.flatMap(({ permits = [] }) => permits.map((write) => ('most' in write ? write.most : 0))),
    );
    expect(moves.length).toBeLessThanOrEqual(8);
    for (const most of moves) expect(most.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(16 * 256);
  });

  it('bring back all that were set aside, and let as many of them pass as may now', async () => {
    const before = await open({ permitRules: allowing(1), dispatcher: null });
    const ids = await idsOf(before, 200);
    const aside = ids.map((taskId) => ({ kind: 'aside', taskId }) as const);
    const nothing = { recordReads: [], sessionReads: [], records: [], sessions: [], ledger: [], diagnostics: [] };
    await before.real.commit({ batchId: 'aside', plans: [{ ...nothing, permits: aside }] });
    before.kill();
    const after = await before.replica({ permitRules: allowing(200) });
    await after.clock.advance(1_000);
    expect(await after.real.permits(null, 9)).toMatchObject([{ limit: 200, aside: false, settled: true }]);
    const worker = await openWorker(after, { slots: 300 });
    await after.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual(ids.toSorted());
  });

  it('tries again when the store does not answer', async () => {
    const before = await open();
    const ids = await idsOf(before, 3);
    before.kill();
    const after = await before.replica({ permitRules: allowing(3), dispatcher: null, propagation: 'stopped' });
    after.probe.failNext('unavailable');
    await after.clock.advance(2_000);
    expect(await after.real.permits(null, 9)).toMatchObject([{ limit: 3, settled: true }]);
    expect(ids).toHaveLength(3);
  });

  it('that serialize a capability counts who runs with it, and puts who was ready into line', async () => {
    const plain: PermitRules = { keyLimits: [], capabilities: new Map() };
    const before = await open({ permitRules: plain });
    const worker = await openWorker(before, { slots: 2, serves: ALL });
    const ids = await idsOf(before, 4, GPU);
    await before.settle();
    expect(worker.sink.claimedIds).toEqual(ids.slice(0, 2));
    const after = await before.replica({ permitRules: RULES });
    before.kill();
    expect(await after.real.permits(null, 9)).toMatchObject([{ running: 2, limit: 1 }]);
    const again = await worker.reattach({ world: after, given: { slots: 5, serves: ALL } });
    await after.clock.advance(1_000);
    // Those that were ready are found to wait when they are claimed, each once.
    expect(again.sink.claimedIds).toEqual([]);
    const commits = commitsOf(after);
    await after.clock.advance(20_000);
    expect(commitsOf(after)).toBe(commits);
    for (const taskId of ids.slice(0, 2)) await again.sayIn(taskId, 1, 'accepted', 'started', 'completed');
    await after.settle();
    expect(again.sink.claimedIds).toEqual([ids[2]]);
    await again.say(ids[2] ?? '', 'accepted', 'started', 'completed');
    await after.settle();
    expect(again.sink.claimedIds).toEqual([ids[2], ids[3]]);
  });

  it('that serialize a capability start nothing while who runs with it cannot be counted', async () => {
    const before = await open({ permitRules: { keyLimits: [], capabilities: new Map() } });
    await openWorker(before, { slots: 1, serves: ALL });
    await idsOf(before, 1, GPU);
    await before.settle();
    before.kill();
    const away = new StoreError('unavailable', 'away');
    const real = new Proxy(before.real, {
      get: (store, name) =>
        name === 'commit' ? () => Promise.reject(away) : (Reflect.get(store, name) as () => unknown).bind(store),
    });
    const started = World.open({ real, clock: before.clock, permitRules: RULES });
    await expect(started).rejects.toMatchObject({ failure: 'unavailable' });
  });

  it('that serialize a capability no more lets everybody go on', async () => {
    const before = await open();
    const ids = await idsOf(before, 300, GPU);
    before.kill();
    const after = await before.replica({ permitRules: { keyLimits: [], capabilities: new Map() } });
    // Already when it has started: what is decided from now on says nothing of permits.
    expect(await after.real.permits(null, 9)).toEqual([]);
    const worker = await openWorker(after, { slots: 500, serves: ALL });
    await after.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual(ids.toSorted());
  });
});
