// Concurrency keys and serialized capabilities as workers meet them (lifecycle.md sections 5 and 7): never more at once
// than may, the next at once when one is through, and a full key that costs nobody else anything.

import { describe, expect, it, onTestFinished } from 'vitest';
import type { IntentAnswer } from '../../src/authority/intent-work.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { PermitRules } from '../../src/kernel/permits.js';
import { StoreError } from '../../src/store/store-error.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World, type WorldOptions } from '../support/world.js';

const RULES: PermitRules = {
  keyLimits: [{ pattern: 'three', limit: 3 }],
  capabilities: new Map([['gpu', 'serialization']]),
};
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

function claimBy(world: World, taskId: string, sessionId: string): Promise<IntentAnswer> {
  const intent: Intent = {
    kind: 'claim',
    sessionId,
    worker: 'w',
    sessionTtlMs: 30_000,
    acceptTimeoutMs: 5_000,
    cause: causeOf('worker'),
  };
  return world.apply({ taskId, intent });
}

describe('tasks of one key', () => {
  it('run one after the other, whoever is free, in the order of their queue', async () => {
    const world = await open();
    const workers = await Promise.all(['a', 'b', 'c'].map((name) => openWorker(world, { name, slots: 5 })));
    const ids = await idsOf(world, 4);
    const ran: string[] = [];
    for (let at = 0; at < ids.length; at++) {
      await world.settle();
      const claims = workers.flatMap((worker) => worker.sink.claimedIds.map((taskId) => ({ worker, taskId })));
      const fresh = claims.filter(({ taskId }) => !ran.includes(taskId));
      expect(fresh.map(({ taskId }) => taskId)).toEqual([ids[at]]);
      for (const { worker, taskId } of fresh) {
        ran.push(taskId);
        await worker.say(taskId, 'accepted', 'started', 'completed');
      }
    }
    expect(await world.real.permits(null, 9)).toEqual([]);
    await world.assertHistories(ids);
  });

  it('are as many at once as is configured for it', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 10 });
    const ids = await idsOf(world, 5, { policy: { concurrencyKey: 'three' } });
    await world.settle();
    expect(worker.sink.claimedIds).toEqual(ids.slice(0, 3));
    await worker.say(ids[1] ?? '', 'accepted', 'started', 'completed');
    await world.settle();
    expect(worker.sink.claimedIds).toEqual(ids.slice(0, 4));
  });

  it('are claimed only once the commit that lets them has happened', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 10 });
    const held = world.probe.hold();
    const admitted = world.admit('k', ONE);
    const batch = await held;
    expect(batch.plans.flatMap(({ records }) => records.map(({ record }) => record.status))).toEqual(['queued']);
    world.probe.release();
    const { admission } = await admitted;
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('leave free workers alone while they wait, and other tasks run meanwhile', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 10, ttlMs: 600_000 });
    const ids = await idsOf(world, 3);
    const other = await world.admit('other');
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([ids[0], other.admission.taskId]);
    for (const taskId of worker.sink.claimedIds) await worker.say(taskId, 'accepted', 'started');
    const commits = commitsOf(world);
    await world.clock.advance(60_000);
    expect(commitsOf(world) - commits).toBe(0);
  });

  it.each([
    ['cancelled', { kind: 'request_cancellation', graceMs: 0, cause: causeOf('operator') }],
    ['suspended', { kind: 'suspend', lease: null, cause: causeOf('operator') }],
  ] as const)('let the next one run when the first is %s', async (_end, intent) => {
    const world = await open();
    const worker = await openWorker(world, { slots: 10 });
    const [first = '', second = ''] = await idsOf(world, 2);
    await world.settle();
    await world.apply({ taskId: first, intent });
    await world.clock.advance(1_000);
    expect(worker.sink.claimedIds).toEqual([first, second]);
  });

  it('keep their turn through a lost worker: the same task runs again, then the next', async () => {
    const world = await open();
    const lost = await openWorker(world, { name: 'lost', lingerMs: 0, slots: 10 });
    const [first = '', second = ''] = await idsOf(world, 2);
    await world.settle();
    await lost.say(first, 'accepted', 'started');
    const heir = await openWorker(world, { name: 'heir', slots: 10 });
    lost.drop();
    await world.settle();
    expect(heir.sink.claimedIds).toEqual([first]);
    await heir.say(first, 'accepted', 'started', 'failed');
    await world.settle();
    // Its back-off is not the others' to wait for.
    expect(heir.sink.claimedIds).toEqual([first, second]);
    await world.clock.advance(3_000);
    await heir.say(second, 'accepted', 'started', 'completed');
    await world.settle();
    expect(heir.sink.claimedIds).toEqual([first, second, first]);
  });

  it('let a more urgent one go first as long as nobody runs', async () => {
    const world = await open();
    const [calm = ''] = await idsOf(world, 1);
    const urgent = await world.admit('urgent', { policy: { concurrencyKey: 'one', priority: 1 } });
    const worker = await openWorker(world, { slots: 10 });
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([urgent.admission.taskId]);
    await worker.say(urgent.admission.taskId, 'accepted', 'started', 'completed');
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([urgent.admission.taskId, calm]);
  });

  it('are passed over where a window still holds one that had to step back', async () => {
    const world = await open();
    const busy = await openWorker(world, { slots: 0 });
    const [calm = ''] = await idsOf(world, 1);
    await world.settle();
    const held = world.probe.hold();
    const urgent = world.admit('urgent', { policy: { concurrencyKey: 'one', priority: 1 } });
    await held;
    // Paired with the calm one, which the commit under way sends back into its line.
    world.dispatcher.setSlots(busy.session, 1);
    world.probe.release();
    const { admission } = await urgent;
    await world.settle();
    expect(busy.sink.claimedIds).toEqual([admission.taskId]);
    expect(busy.session.credit).toBe(0);
    expect(await world.stored(calm)).toMatchObject({ status: 'queued', attempt: 0 });
  });

  it('refuse a claim by name of one that waits, and the claim of another key is not concerned', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 0 });
    const [first = '', second = ''] = await idsOf(world, 2);
    const refused = await claimBy(world, second, worker.sessionId);
    expect(refused).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'INVALID_TRANSITION', metadata: { task_id: second, concurrency_key: 'one' } },
    });
    expect(await world.eventTypes(second)).toEqual(['submitted']);
    const context = await world.authority.familyOf(await world.stored(second));
    expect(context).toMatchObject({ value: { permitAwaited: 'key\ndefault\none' } });
    expect(await claimBy(world, first, worker.sessionId)).toMatchObject({ kind: 'applied' });
  });
});

describe('a commit that ends a holder', () => {
  async function twoInLine(options: WorldOptions = {}) {
    const world = await open(options);
    const worker = await openWorker(world, { slots: 10 });
    const [first = '', second = ''] = await idsOf(world, 2);
    await world.settle();
    return { world, worker, first, second };
  }

  it('and fails leaves everything as it was', async () => {
    const { world, worker, first, second } = await twoInLine();
    world.probe.failNext('unavailable');
    const answer = await worker.say(first, 'accepted', 'started', 'completed');
    expect(answer).toMatchObject({ kind: 'refused', refusal: { reason: 'STORE_UNAVAILABLE' } });
    await world.clock.advance(1_000);
    expect(worker.sink.claimedIds).toEqual([first]);
    expect(await world.real.permitWait(second)).toMatchObject({ holders: [first] });
    // The worker says again what was not judged.
    const events = (['accepted', 'started', 'completed'] as const).map((kind, at) => ({
      seq: at + 1,
      saying: kind === 'completed' ? { kind, resultJson: null, ending: null } : { kind },
    }));
    await worker.sayNumbered(first, worker.epochOf(first), events);
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([first, second]);
  });

  it('and whose answer is lost starts the next once that is found out', async () => {
    const { world, worker, first, second } = await twoInLine();
    world.probe.failNext('lost_answer');
    void worker.say(first, 'accepted', 'started', 'completed');
    await world.clock.advance(1_000);
    expect(worker.sink.claimedIds).toEqual([first, second]);
  });

  it('is enough for another process to find the next, by looking', async () => {
    const { world, worker, first, second } = await twoInLine();
    const other = await world.replica({ permitRules: RULES });
    const there = await openWorker(other, { name: 'there', slots: 10 });
    await other.settle();
    world.dispatcher.setSlots(worker.session, 0);
    await worker.say(first, 'accepted', 'started', 'completed');
    await other.clock.advance(6_000);
    expect(there.sink.claimedIds).toEqual([second]);
  });
});

describe('a capability that is serialized', () => {
  it('is used by one task of the deployment at a time, whatever its namespace or key', async () => {
    const world = await open();
    const serves = subscription({ namespaces: ['default', 'other'], capabilities: ['gpu'] });
    const worker = await openWorker(world, { slots: 10, serves });
    const tasks = [
      await world.admit('a', GPU),
      await world.admit('b', { ...GPU, namespace: 'other' }),
      await world.admit('c', { ...GPU, policy: { concurrencyKey: 'one' } }),
      await world.admit('d', ONE),
    ];
    const [a = '', b = '', c = '', d = ''] = tasks.map(({ admission }) => admission.taskId);
    await world.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual([a, d].toSorted());
    await worker.say(a, 'accepted', 'started', 'completed');
    await world.settle();
    await worker.say(b, 'accepted', 'started', 'completed');
    await world.settle();
    // It has the capability, and waits for its key.
    expect(worker.sink.claimedIds).not.toContain(c);
    await worker.say(d, 'accepted', 'started', 'completed');
    await world.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual([a, b, c, d].toSorted());
  });
});

describe('a start with other limits', () => {
  const allowing = (limit: number): PermitRules => ({ ...RULES, keyLimits: [{ pattern: 'one', limit }] });

  it('that are higher lets more run, however many wait, and does not ask the workers to', async () => {
    const before = await open();
    const ids = await idsOf(before, 600);
    before.kill();
    const after = await before.replica({ permitRules: allowing(590) });
    await after.clock.advance(1_000);
    expect(await after.real.permits(null, 9)).toMatchObject([{ limit: 590, held: 590, waited: true }]);
    const steps = after.probe.plans().flatMap(({ permits = [] }) => permits);
    expect(steps.map(({ kind }) => kind)).toEqual(['limited', 'limited', 'limited']);
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

  it('tries again when the store does not answer', async () => {
    const before = await open();
    const ids = await idsOf(before, 3);
    before.kill();
    const after = await before.replica({ permitRules: allowing(3), dispatcher: null, propagation: 'stopped' });
    after.probe.failNext('unavailable');
    await after.clock.advance(2_000);
    expect(await after.real.permits(null, 9)).toMatchObject([{ limit: 3, held: 3 }]);
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
    expect(await after.real.permits(null, 9)).toMatchObject([{ held: 2, limit: 1 }]);
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
