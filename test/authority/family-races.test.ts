// Families and dependencies when everything happens at once: commits that fail before and after they are written,
// processes that die, two of them on one store. When it is quiet, nothing is stuck, every count is its rows, and no
// child outlives its parent (invariants 12, 13 and 17 of quality.md).

import { describe, expect, it } from 'vitest';
import type { ParentLink } from '../../src/kernel/admission/family-policy.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { isTerminal } from '../../src/kernel/status.js';
import { MAX_PLANS_PER_BATCH } from '../../src/store/commit-plan.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { SeededRandom } from '../support/seeded-random.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { until } from '../support/turns.js';
import { World } from '../support/world.js';

const idOf = (record: TaskRecord): string => record.admission.taskId;

function under(parent: TaskRecord): ParentLink {
  return { taskId: idOf(parent), generationId: parent.generationId, attached: true };
}

describe('a claim of a child that is on its way to the store', () => {
  it('is lost when another process ends the parent first: the write checks what the claim read', async () => {
    const world = await World.open({ propagation: 'stopped' });
    const parent = await world.admit('parent', { queue: 'parents' });
    const child = await world.admit('child', { queue: 'children', policy: { parent: under(parent) } });
    const other = await world.replica({ dispatcher: null, propagation: 'stopped' });
    other.probe.overrule = (plan) =>
      plan.records.some((write) => write.kind === 'update' && write.taskId === idOf(child))
        ? { kind: 'conflict', subject: 'record', id: idOf(child) }
        : null;
    const worker = await openWorker(world, { serves: subscription({ queues: ['children'] }) });
    const held = await world.probe.hold();
    expect(held.plans[0]?.recordReads).toEqual([{ taskId: idOf(parent), version: 2 }]);
    await other.cancel(idOf(parent));
    world.probe.release();
    await world.settle();
    expect(await world.stored(idOf(child))).toMatchObject({ everClaimed: false });
    await world.clock.advance(6_000);
    expect(await world.stored(idOf(child))).toMatchObject({ status: 'cancelled', everClaimed: false });
    expect(worker.sink.claimed).toEqual([]);
  });

  it('and one that was first is told: the parent that ends is judged on the child as it is', async () => {
    const world = await World.open();
    const parent = await world.admit('parent', { queue: 'parents' });
    const child = await world.admit('child', { queue: 'children', policy: { parent: under(parent) } });
    const other = await world.replica({ dispatcher: null });
    const worker = await openWorker(world, { serves: subscription({ queues: ['children'] }) });
    await world.settle();
    const held = other.probe.hold();
    const cancelling = other.cancel(idOf(parent));
    await held;
    await worker.say(idOf(child), 'accepted', 'started');
    other.probe.release();
    await cancelling;
    await world.clock.advance(3_000);
    expect(await world.stored(idOf(child))).toMatchObject({ status: 'cancelled', ownerStopped: false });
    expect(await worker.say(idOf(child), 'completed')).toMatchObject({
      refused: [{ refusal: { reason: 'LEASE_LOST' } }],
    });
  });
});

describe('the completion of a parent that is on its way to the store', () => {
  it('is lost when another process admits a child first: the write checks the count', async () => {
    const world = await World.open();
    const parent = await world.admit('parent', { queue: 'parents' });
    const worker = await openWorker(world, { serves: subscription({ queues: ['parents'] }) });
    await world.settle();
    await worker.say(idOf(parent), 'accepted', 'started');
    const other = await world.replica({ dispatcher: null });
    const first = await other.admit('first', { policy: { parent: under(parent) } });
    await other.cancel(idOf(first));
    // It learns that it has children, and that none of them lives.
    await worker.say(idOf(parent), 'progress');
    const held = world.probe.hold();
    const completing = worker.say(idOf(parent), 'completed');
    await held;
    await other.admit('second', { policy: { parent: under(parent) } });
    world.probe.release();
    expect(await completing).toMatchObject({ refused: [{ refusal: { reason: 'CHILDREN_ACTIVE' } }] });
    expect((await world.stored(idOf(parent))).status).toBe('running');
  });
});

describe('what rests on another decision of its batch', () => {
  it('is lost with it: another version of the same number is not the one that was read', async () => {
    const world = await World.open({ dispatcher: null });
    const other = await world.replica({ dispatcher: null });
    const parent = await world.admit('parent');
    const held = other.probe.hold();
    const admitting = other.submit('child', { policy: { parent: under(parent) } });
    // It is about to note its first child as event 2, and the child rests on that.
    await held;
    const hold = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;
    expect(await world.apply({ taskId: idOf(parent), intent: hold })).toMatchObject({ after: { lastEvent: 2 } });
    other.probe.release();
    const child = await admitting;
    expect(await world.stored(idOf(parent))).toMatchObject({ status: 'suspended', hasChildren: true });
    await world.cancel(idOf(parent));
    expect(child.kind === 'created' && (await world.stored(idOf(child.record))).status).toBe('cancelled');
  });
});

describe('a worker of a parent whose batch has been read by a child', () => {
  it('keeps the order of its words: what waits for the next batch comes before what came later', async () => {
    const world = await World.open({ timers: 'stopped' });
    const parent = await world.admit('parent');
    const child = await world.admit('child', { policy: { parent: under(parent) } });
    const other = await world.admit('other', { queue: 'nobody' });
    const worker = await openWorker(world, { slots: 2, serves: subscription({ queues: ['default'] }) });
    await world.settle();
    for (const record of [parent, child]) await worker.say(idOf(record), 'accepted', 'started');
    const held = world.probe.hold();
    const blocker = world.submit('blocker', { queue: 'nobody' });
    await held;
    const said = [parent, child, parent].map((record) => worker.say(idOf(record), 'progress'));
    const real = world.real.findLedgerEntry.bind(world.real);
    world.real.findLedgerEntry = async (...args) => {
      // After the batch was taken, before it is judged.
      said.push(worker.say(idOf(parent), 'progress'));
      return real(...args);
    };
    const suspend = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;
    const keyed = world.apply({ taskId: idOf(other), key: { key: 'op', contentHash: 'sha256:00' }, intent: suspend });
    world.probe.release();
    await Promise.all([blocker, keyed]);
    expect(said).toHaveLength(4);
    for (const outcome of await Promise.all(said)) expect(outcome).toMatchObject({ kind: 'judged', refused: [] });
  });
});

describe('one batch of admissions', () => {
  it('whose 300 tasks wait for 6,000 others that nobody followed before stays within one transaction', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const upstream = await Promise.all(Array.from({ length: 6_000 }, (_, n) => world.admit(`upstream ${String(n)}`)));
    const waiters = await Promise.all(
      Array.from({ length: 300 }, (_, n) => {
        const named = upstream.slice(n * 20, n * 20 + 20).map((record) => ({ taskId: idOf(record) }));
        const dependsOn = named.map(({ taskId }) => ({ taskId, condition: 'succeeded' as const }));
        return world.admit(`waiter ${String(n)}`, { policy: { dependsOn } });
      }),
    );
    expect(new Set(waiters.map(({ status }) => status))).toEqual(new Set(['waiting_dependency']));
    expect(world.fatals).toEqual([]);
    expect(Math.max(...world.probe.batches.map(({ plans }) => plans.length))).toBeLessThanOrEqual(MAX_PLANS_PER_BATCH);
  });
});

describe('a plain task', () => {
  it('costs no read and no link more than without families', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const before = new Map(world.probe.calls);
    const { admission } = await world.admit('plain');
    await world.settle();
    await worker.say(admission.taskId, 'accepted', 'started', 'completed');
    await world.settle();
    for (const plan of world.probe.plans()) expect([plan.recordReads, plan.links]).toEqual([[], undefined]);
    for (const method of ['familyCounts', 'liveChildren', 'waitersOf', 'propagations', 'loadTasks']) {
      expect([method, world.probe.calls.get(method)]).toEqual([method, before.get(method)]);
    }
  });
});

const FAULTS = ['unavailable', 'lost_answer', 'lost_request'] as const;

/** A few rounds of everything, with faults and deaths, from a seed. */
async function storm(seed: number, open: () => Promise<World>): Promise<{ world: World; ids: string[] }> {
  const random = new SeededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random.chance() * items.length)];
  let world = await open();
  let other = await world.replica({ dispatcher: null });
  const admitted: TaskRecord[] = [];
  for (let round = 0; round < 14; round++) {
    await openWorker(world, { slots: 3, name: `worker ${String(round)}` }).then((worker) => worker.completeAll());
    const doing: Promise<unknown>[] = [];
    for (let n = 0; n < 6; n++) {
      const by = random.chance() < 0.7 ? world : other;
      const [parent, upstream, another] = [pick(admitted), pick(admitted), pick(admitted)];
      const dependsOn = [upstream, another]
        .filter((one) => one !== undefined && random.chance() < 0.5 && one !== parent)
        .map((one) => ({ taskId: idOf(one as TaskRecord), condition: 'terminal' as const }));
      const policy = { dependsOn, ...(parent !== undefined && random.chance() < 0.6 ? { parent: under(parent) } : {}) };
      const key = `s${String(seed)} r${String(round)} n${String(n)}`;
      doing.push(
        by.submit(key, { policy }).then((answer) => answer.kind === 'created' && admitted.push(answer.record)),
      );
    }
    for (const victim of [pick(admitted), pick(admitted)]) {
      if (victim === undefined) continue;
      const by = random.chance() < 0.5 ? world : other;
      const settle = { kind: 'settle', outcome: 'failed', resultJson: null, ending: null, lease: null } as const;
      const intent = { ...settle, authoritativeEvent: null, chance: 0, cause: causeOf('operator') };
      doing.push(random.chance() < 0.5 ? by.cancel(idOf(victim), 100) : by.apply({ taskId: idOf(victim), intent }));
    }
    const fault = pick(FAULTS);
    if (fault !== undefined && random.chance() < 0.6) (random.chance() < 0.5 ? world : other).probe.failNext(fault);
    await world.settle();
    const death = random.chance();
    if (death < 0.3) {
      other.kill();
      other = await world.replica({ dispatcher: null });
    } else if (death < 0.5) {
      world.kill();
      world = await other.replica();
    }
    await world.clock.advance(300);
    await Promise.race([Promise.allSettled(doing), world.settle()]);
  }
  other.kill();
  world.kill();
  return { world, ids: admitted.map(idOf) };
}

async function assertQuiet(world: World, ids: readonly string[]): Promise<void> {
  await openWorker(world, { slots: 100, name: 'last' }).then((worker) => worker.completeAll());
  // Leases of the dead run out, retries come due, parents whose children are over are cancelled below.
  for (let step = 0; step < 30; step++) await world.clock.advance(3_000);
  for (const taskId of ids) if (!isTerminal((await world.stored(taskId)).status)) await world.cancel(taskId, 1);
  for (let step = 0; step < 10; step++) await world.clock.advance(3_000);
  await world.assertHistories(ids);
  expect(await world.real.propagations(null, 10)).toEqual([]);
  for (const taskId of ids) {
    const record = await world.stored(taskId);
    const [counts] = await world.real.familyCounts([taskId]);
    const children = await world.real.liveChildren(taskId, 0, 1_000);
    expect([taskId, isTerminal(record.status), counts]).toEqual([taskId, true, { liveChildren: 0, unsatisfied: 0 }]);
    expect([taskId, children, await world.real.waitersOf(taskId, 1, 0, 10)]).toEqual([taskId, [], []]);
    const link = record.admission.policy.parent;
    if (link === null || record.status !== 'completed') continue;
    // What completed did so before its parent's end.
    const parent = await world.stored(link.taskId);
    expect(parent.finishedAt ?? Infinity).toBeGreaterThanOrEqual(record.finishedAt ?? 0);
  }
  expect(world.defects).toEqual([]);
  expect(world.fatals).toEqual([]);
}

describe('a storm', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    'of submissions, ends, faults and deaths leaves nothing stuck: seed %i',
    async (seed) => {
      const { world, ids } = await storm(seed, () => World.open());
      expect(ids.length).toBeGreaterThan(10);
      await assertQuiet(await world.replica(), ids);
    },
  );
});

describe('on SQLite', () => {
  it('a family of 600 and their waiter end after the process died in the middle of telling them', async () => {
    const path = `${temporaryFolder()}/reeve.db`;
    const store = await openSqliteStore({ path });
    const world = await World.open({ real: store, dispatcher: null, timers: 'stopped', propagation: 'stopped' });
    const parent = await world.admit('parent');
    const waiter = await world.admit('waiter', {
      policy: { dependsOn: [{ taskId: idOf(parent), condition: 'terminal' }] },
    });
    const policy = { parent: under(parent) };
    const children = await Promise.all(
      Array.from({ length: 600 }, (_, n) => world.admit(`child ${String(n)}`, { policy })),
    );
    await world.cancel(idOf(parent));
    const live = await store.liveChildren(idOf(parent), 0, 1_000);
    expect(live).toHaveLength(600 - 256);
    world.kill();
    await store.close();
    const reopened = await openSqliteStore({ path });
    expect(await reopened.propagations(null, 10)).toMatchObject([{ taskId: idOf(parent), outcome: 'cancelled' }]);
    const next = await World.open({ real: reopened, dispatcher: null, timers: 'stopped' });
    const told = (): boolean => next.published.some(({ taskId }) => taskId === idOf(waiter));
    await until(told, 'the last follower');
    await next.authority.stop();
    expect(await reopened.liveChildren(idOf(parent), 0, 1)).toEqual([]);
    expect(await reopened.familyCounts([idOf(parent), idOf(waiter)])).toEqual([
      { liveChildren: 0, unsatisfied: 0 },
      { liveChildren: 0, unsatisfied: 0 },
    ]);
    expect((await next.stored(idOf(children[599] as TaskRecord))).status).toBe('cancelled');
    await next.assertHistories([parent, waiter, ...children.slice(250, 260)].map(idOf));
    next.kill();
    await reopened.close();
  });
});
