// A permit whose tasks are of many routes: of each line one is ready for every place, and still a place costs one claim.

import { describe, expect, it, onTestFinished } from 'vitest';
import { PermitRooms } from '../../src/authority/permit-rooms.js';
import type { PermitRules } from '../../src/kernel/permits.js';
import type { CommitPlan } from '../../src/store/commit-plan.js';
import { type TestWorker, openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const RULES: PermitRules = { keyLimits: [{ pattern: 'three', limit: 3 }], capabilities: new Map() };

const open = async (): Promise<World> => {
  const world = await World.open({ permitRules: RULES });
  onTestFinished(() => expect([world.defects, world.fatals, world.errors]).toEqual([[], [], []]));
  return world;
};
const admit = (world: World, concurrencyKey: string, tasks: number, routes: number) =>
  Promise.all(
    Array.from({ length: tasks }, (_, n) =>
      world.admit(`${concurrencyKey}-${String(n)}`, { queue: `q${String(n % routes)}`, policy: { concurrencyKey } }),
    ),
  );
const alignments = (plans: readonly CommitPlan[]): number =>
  plans.flatMap(({ permits = [] }) => permits).filter(({ kind }) => kind === 'aligned').length;

/** Ends one task after the other, each time the oldest that runs; what was committed meanwhile. */
async function endEach(world: World, worker: TestWorker, times: number): Promise<readonly CommitPlan[]> {
  const before = world.probe.plans().length;
  for (let ended = 0; ended < times; ended++) {
    const taskId = worker.sink.claimedIds[ended];
    if (taskId === undefined) throw new Error(`nobody began after ${String(ended)} ends`);
    await worker.say(taskId, 'accepted', 'started', 'completed');
    await world.settle();
  }
  return world.probe.plans().slice(before);
}

describe('tasks of one key and many routes', () => {
  it('are claimed one by one, and none of them in vain', async () => {
    const world = await open();
    await admit(world, 'one', 120, 60);
    const worker = await openWorker(world, { slots: 500 });
    await world.settle();
    expect(worker.sink.claimedIds).toHaveLength(1);
    const plans = await endEach(world, worker, 40);
    // An end and a claim each.
    expect([plans.length, alignments(plans)]).toEqual([80, 0]);
  });

  it('are claimed at a bounded cost where there are more lines than one plan settles', async () => {
    const world = await open();
    await admit(world, 'one', 300, 300);
    const worker = await openWorker(world, { slots: 500 });
    await world.settle();
    const plans = await endEach(world, worker, 20);
    expect(plans.length).toBeLessThan(20 * 12);
    expect(worker.sink.claimedIds).toHaveLength(21);
  });

  it('are claimed as many as there is room for, where that is more than one', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 500 });
    await admit(world, 'three', 90, 30);
    await world.settle();
    expect(worker.sink.claimedIds).toHaveLength(3);
    const plans = await endEach(world, worker, 40);
    expect([plans.length, alignments(plans)]).toEqual([80, 0]);
  });

  it('leave the slots that they do not get to others', async () => {
    const world = await open();
    await admit(world, 'one', 40, 40);
    const others = await Promise.all(
      Array.from({ length: 5 }, (_, n) => world.admit(`plain-${String(n)}`, { queue: `q${String(n)}` })),
    );
    const worker = await openWorker(world, { slots: 6 });
    await world.settle();
    expect(worker.sink.claimedIds).toHaveLength(6);
    expect(worker.sink.claimedIds).toEqual(expect.arrayContaining(others.map(({ admission }) => admission.taskId)));
  });

  it('are claimed all the same when the batch that was to claim them fails', async () => {
    const world = await open();
    await admit(world, 'one', 10, 10);
    // The session is opened, and the claims that follow are lost.
    world.probe.failAfter(1, 'unavailable');
    const worker = await openWorker(world, { slots: 20 });
    await world.clock.advance(10_000);
    expect(worker.sink.claimedIds).toHaveLength(1);
    const ends = await endEach(world, worker, 10);
    expect(ends.length).toBeGreaterThan(0);
  });
});

describe('the room of a permit', () => {
  const needs = [{ name: 'k', limit: 2 }];

  it('is its limit until something is known, and then what the last commit said', () => {
    const rooms = new PermitRooms(() => 2);
    const takeAll = (): number => {
      let taken = 0;
      for (; rooms.has(needs); taken++) rooms.take(needs);
      rooms.batchOver();
      return taken;
    };
    expect(takeAll()).toBe(2);
    rooms.tell({ name: 'k', room: 1 });
    expect(takeAll()).toBe(1);
    // What is known may be wrong: one is always worth a try.
    rooms.tell({ name: 'k', room: 0 });
    expect(takeAll()).toBe(1);
    rooms.tell({ name: 'k', room: 2 });
    expect(takeAll()).toBe(2);
  });
});
