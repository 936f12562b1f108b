// Concurrency keys and serialized capabilities as workers meet them (lifecycle.md sections 5 and 7): never more at once
// than may, the next at once when one is through, and a full key that costs nobody else anything.

import { describe, expect, it, onTestFinished } from 'vitest';
import type { IntentAnswer } from '../../src/authority/intent-work.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { PermitRules } from '../../src/kernel/permits.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World, type WorldOptions } from '../support/world.js';

const RULES: PermitRules = {
  keyLimits: [{ pattern: 'three', limit: 3 }],
  capabilities: new Map([['gpu', 'serialization']]),
};
const ONE = { policy: { concurrencyKey: 'one' } };
const GPU = { capabilities: ['gpu'] };

const open = async (options: WorldOptions = {}): Promise<World> => {
  const world = await World.open({ permitRules: RULES, ...options });
  onTestFinished(() => expect([world.defects, world.fatals, world.errors]).toEqual([[], [], []]));
  return world;
};
const idsOf = async (world: World, count: number, given: object = ONE): Promise<string[]> => {
  const records = Array.from({ length: count }, (_, n) => world.admit(`k${String(n)}`, given));
  return (await Promise.all(records)).map(({ admission }) => admission.taskId);
};
const SUSPEND: Intent = { kind: 'suspend', lease: null, cause: causeOf('operator') };
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

  it('refuse a claim by name while another one runs, and the claim of another key is not concerned', async () => {
    const world = await open();
    const worker = await openWorker(world, { slots: 0 });
    const [first = '', second = ''] = await idsOf(world, 2);
    expect(await claimBy(world, first, worker.sessionId)).toMatchObject({ kind: 'applied' });
    const refused = await claimBy(world, second, worker.sessionId);
    expect(refused).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'INVALID_TRANSITION', metadata: { task_id: second, concurrency_key: 'one' } },
    });
    expect(await world.eventTypes(second)).toEqual(['submitted']);
    const context = await world.authority.reads.familyOf(await world.stored(second));
    expect(context).toMatchObject({ value: { permitAwaited: 'key\ndefault\none' } });
    expect(await world.apply({ taskId: first, intent: SUSPEND })).toMatchObject({ kind: 'applied' });
    await world.settle();
    expect(await claimBy(world, second, worker.sessionId)).toMatchObject({ kind: 'applied' });
  });
});

describe('tasks of one key that different workers serve', () => {
  const THERE = { ...ONE, queue: 'there' };
  const elsewhere = subscription({ queues: ['there'] });

  it('wait for nobody whom no worker serves', async () => {
    const world = await open();
    await world.admit('unserved', ONE);
    const served = await world.admit('served', THERE);
    const worker = await openWorker(world, { slots: 1, serves: elsewhere });
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([served.admission.taskId]);
  });

  it('still run one after the other, and none of the queues is passed over', async () => {
    const world = await open();
    const workers = [
      await openWorker(world, { slots: 5, serves: subscription({ queues: ['default'] }) }),
      await openWorker(world, { slots: 5, serves: elsewhere }),
    ];
    const given = [ONE, ONE, THERE, ONE, THERE, ONE];
    const ids = [];
    for (const [n, task] of given.entries()) ids.push((await world.admit(String(n), task)).admission.taskId);
    const done: string[] = [];
    while (done.length < ids.length) {
      await world.settle();
      const claims = workers.flatMap((worker) => worker.sink.claimedIds.map((taskId) => ({ worker, taskId })));
      const fresh = claims.filter(({ taskId }) => !done.includes(taskId));
      expect(fresh).toHaveLength(1);
      for (const { worker, taskId } of fresh) await worker.say(taskId, 'accepted', 'started', 'completed');
      done.push(...fresh.map(({ taskId }) => taskId));
    }
    // Neither had to wait for all of the other.
    const there = [ids[2], ids[4]].map((taskId) => done.indexOf(taskId ?? ''));
    expect(Math.min(...there)).toBeLessThan(4);
    await world.assertHistories(ids);
  });

  it('step over one whose record is damaged, and it comes to its turn when it is repaired', async () => {
    const before = await open();
    const [first = '', second = ''] = await idsOf(before, 2);
    before.kill();
    const world = await before.replica({ permitRules: RULES });
    world.probe.damaged.add(first);
    const worker = await openWorker(world, { slots: 1 });
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([second]);
    expect(await world.real.permits(null, 9)).toMatchObject([{ running: 1, aside: true }]);
    world.kill();
    // Whatever made it unreadable is gone with the next start.
    const after = await world.replica({ permitRules: RULES });
    const again = await worker.reattach({ world: after });
    await after.settle();
    await again.sayIn(second, 1, 'accepted', 'started', 'completed');
    await after.settle();
    expect(again.sink.claimedIds).toEqual([first]);
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
    // It waits for its key, and keeps nobody from the capability meanwhile.
    expect(worker.sink.claimedIds).not.toContain(c);
    await worker.say(d, 'accepted', 'started', 'completed');
    await world.settle();
    expect(worker.sink.claimedIds.toSorted()).toEqual([a, b, c, d].toSorted());
  });
});
