// Dependencies through the authority (lifecycle.md section 8): a task waits until those it names have ended, whoever
// counts its last one down lets it go, and one that can no longer end as it had to decides its fate. Nothing is stuck,
// whatever the process does in between.

import { describe, expect, it } from 'vitest';
import type { Dependency, OnUnsatisfied } from '../../src/kernel/admission/family-policy.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const idOf = (record: TaskRecord): string => record.admission.taskId;

function on(...upstream: readonly (TaskRecord | Dependency)[]) {
  const dependsOn = upstream.map((one) =>
    'admission' in one ? ({ taskId: idOf(one), condition: 'succeeded' } as const) : one,
  );
  return { queue: 'waiting', policy: { dependsOn } };
}

const atEnd = (record: TaskRecord): Dependency => ({ taskId: idOf(record), condition: 'terminal' });

const statusOf = async (world: World, record: TaskRecord) => (await world.stored(idOf(record))).status;

/** A worker that completes whatever is in the default queue. */
function completer(world: World) {
  return openWorker(world, { slots: 10, serves: subscription({ queues: ['default'] }) }).then((worker) =>
    worker.completeAll(),
  );
}

async function countOf(world: World, record: TaskRecord): Promise<number> {
  const [counts] = await world.real.familyCounts([idOf(record)]);
  return counts?.unsatisfied ?? -1;
}

describe('a task that depends on others', () => {
  it('is held in the transaction of its admission: two facts', async () => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const batches = world.probe.batches.length;
    const waiter = await world.admit('waiter', on(upstream));
    expect(world.probe.batches.length).toBe(batches + 1);
    expect(waiter).toMatchObject({ status: 'waiting_dependency', revision: 2, openDependencies: true });
    expect(await world.eventTypes(idOf(waiter))).toEqual(['submitted', 'held']);
    expect(await world.eventTypes(idOf(upstream))).toEqual(['submitted', 'followed']);
    expect(await countOf(world, waiter)).toBe(1);
    await world.assertHistories([upstream, waiter].map(idOf));
  });

  it('is let go in the transaction in which the last of them ends, and may be claimed', async () => {
    const world = await World.open({ propagation: 'stopped' });
    const upstream = await world.admit('upstream');
    const waiter = await world.admit('waiter', on(upstream));
    const worker = await openWorker(world, { slots: 2 });
    await world.settle();
    const batches = world.probe.batches.length;
    await worker.say(idOf(upstream), 'accepted', 'started', 'completed');
    expect(world.probe.batches[batches]?.plans.flatMap(({ records }) => records)).toHaveLength(2);
    await world.settle();
    expect(await world.eventTypes(idOf(waiter))).toEqual(['submitted', 'held', 'dependencies_met', 'claimed']);
    expect(await countOf(world, waiter)).toBe(0);
    await world.assertHistories([idOf(waiter)]);
  });

  it('is queued at once when they are all satisfied, and nothing is kept of them', async () => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    await world.cancel(idOf(upstream));
    const waiter = await world.admit('waiter', on(atEnd(upstream)));
    expect(waiter).toMatchObject({ status: 'queued', revision: 1 });
    expect(await world.eventTypes(idOf(upstream))).not.toContain('followed');
    expect(await countOf(world, waiter)).toBe(0);
  });

  it('counts a task that is named twice once', async () => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const waiter = await world.admit('waiter', on(upstream, upstream));
    expect(await countOf(world, waiter)).toBe(1);
  });

  it('is refused when one is unknown: TASK_NOT_FOUND names the field', async () => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const answer = await world.submit('waiter', on(upstream, { taskId: 'nobody', condition: 'terminal' }));
    expect(answer).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'TASK_NOT_FOUND', metadata: { task_id: 'nobody', field: 'policy.depends_on[1].task_id' } },
    });
  });

  it('and is suspended meanwhile is queued when it is resumed after they ended, and waits on before', async () => {
    const world = await World.open({ dispatcher: null });
    const [one, two] = [await world.admit('one'), await world.admit('two')];
    const resume = { kind: 'resume', newGenerationId: null, spareGenerationId: 's', inputJson: null } as const;
    const hold = { kind: 'suspend', lease: null } as const;
    const waiter = await world.admit('waiter', on(atEnd(one), atEnd(two)));
    const apply = (intent: typeof resume | typeof hold) =>
      world.apply({ taskId: idOf(waiter), intent: { ...intent, cause: causeOf('operator') } });
    await world.cancel(idOf(one));
    await apply(hold);
    await apply(resume);
    expect(await statusOf(world, waiter)).toBe('waiting_dependency');
    await apply(hold);
    await world.cancel(idOf(two));
    expect(await world.stored(idOf(waiter))).toMatchObject({ status: 'suspended', openDependencies: false });
    await apply(resume);
    expect(await statusOf(world, waiter)).toBe('queued');
    await world.assertHistories([idOf(waiter)]);
  });

  it('and ends before them leaves no edge behind', async () => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const waiter = await world.admit('waiter', on(upstream));
    await world.cancel(idOf(waiter));
    expect(await countOf(world, waiter)).toBe(0);
    expect(await world.real.waitersOf(idOf(upstream), 1, 0, 10)).toEqual([]);
  });

  it('waits for the generation that was current at its admission, whatever follows it', async () => {
    const world = await World.open({ dispatcher: null, propagation: 'stopped' });
    const upstream = await world.admit('upstream');
    const waiter = await world.admit('waiter', on(atEnd(upstream)));
    // Its end is committed, and whoever had to tell of it died.
    world.probe.overrule = (plan) =>
      plan.records.some((write) => write.kind === 'update' && write.taskId === idOf(waiter))
        ? { kind: 'conflict', subject: 'record', id: idOf(waiter) }
        : null;
    await world.cancel(idOf(upstream));
    const resume = { kind: 'resume', newGenerationId: 'g2', spareGenerationId: 's', inputJson: null } as const;
    await world.apply({ taskId: idOf(upstream), intent: { ...resume, cause: causeOf('operator') } });
    world.kill();
    expect(await statusOf(world, waiter)).toBe('waiting_dependency');
    const next = await world.replica({ dispatcher: null });
    await next.settle();
    expect(await statusOf(next, waiter)).toBe('queued');
    expect(await next.real.propagations(null, 10)).toEqual([]);
  });
});

describe('two dependencies', () => {
  it('that complete together let their waiter go once', async () => {
    const world = await World.open({ propagation: 'stopped' });
    const [one, two] = [await world.admit('one'), await world.admit('two')];
    const waiter = await world.admit('waiter', on(one, two));
    const worker = await openWorker(world, { slots: 2 });
    await world.settle();
    await Promise.all([one, two].map((record) => worker.say(idOf(record), 'accepted', 'started', 'completed')));
    await world.settle();
    expect(await world.eventTypes(idOf(waiter))).toEqual(['submitted', 'held', 'dependencies_met', 'claimed']);
  });

  it('that end in two processes at once let it go once, by whoever counts the last', async () => {
    const world = await World.open({ dispatcher: null });
    const other = await world.replica({ dispatcher: null });
    const [one, two] = [await world.admit('one'), await world.admit('two')];
    const waiter = await world.admit('waiter', on(atEnd(one), atEnd(two)));
    const held = [world.probe.hold(), other.probe.hold()];
    const cancelling = [world.cancel(idOf(one)), other.cancel(idOf(two))];
    await Promise.all(held);
    world.probe.release();
    other.probe.release();
    await Promise.all(cancelling);
    await world.clock.advance(3_000);
    await world.settle();
    expect(await world.eventTypes(idOf(waiter))).toEqual(['submitted', 'held', 'dependencies_met']);
    expect(await world.real.propagations(null, 10)).toEqual([]);
    expect(world.errors).toEqual([]);
  });
});

describe('a dependency that completes while its waiter is being admitted', () => {
  it.each(['upstream first', 'waiter first'])('in one batch, %s: the waiter is queued in the end', async (order) => {
    const world = await World.open({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const end = () => world.cancel(idOf(upstream));
    const admit = () => world.admit('waiter', on(atEnd(upstream)));
    const answers = order === 'upstream first' ? [end(), admit()] : [admit(), end()];
    await Promise.all(answers);
    await world.settle();
    const waiter = await admitted(world);
    expect(waiter.status).toBe('queued');
    expect(await countOf(world, waiter)).toBe(0);
  });

  it('in another process: the admission is judged again', async () => {
    const world = await World.open({ dispatcher: null });
    const other = await world.replica({ dispatcher: null });
    const upstream = await world.admit('upstream');
    const held = world.probe.hold();
    const admitting = world.admit('waiter', on(atEnd(upstream)));
    await held;
    await other.cancel(idOf(upstream));
    world.probe.release();
    await admitting;
    expect(await admitted(world)).toMatchObject({ status: 'queued', revision: 1 });
  });
});

describe('a dependency that can no longer be satisfied', () => {
  const fates: readonly (readonly [OnUnsatisfied | undefined, string, string])[] = [
    [undefined, 'skipped', 'run.skipped.dependency'],
    ['skip', 'skipped', 'run.skipped.dependency'],
    ['fail', 'failed', 'run.failed.dependency'],
    ['cancel', 'cancelled', 'run.cancelled.dependency'],
  ];
  it.each(fates)('with on_unsatisfied %s is %s', async (onUnsatisfied, status, code) => {
    const world = await World.open({ dispatcher: null });
    const [upstream, other] = [await world.admit('upstream'), await world.admit('other')];
    const { queue, policy } = on(upstream, other);
    const given = { queue, policy: { ...policy, onUnsatisfied } };
    const waiter = await world.admit('before', given);
    await world.cancel(idOf(upstream));
    const late = await world.admit('after', given);
    for (const record of [waiter, late]) {
      expect(await world.stored(idOf(record))).toMatchObject({ status, reason: { code } });
      expect(await countOf(world, record)).toBe(0);
    }
    expect(await world.real.waitersOf(idOf(other), 1, 0, 10)).toEqual([]);
    await world.assertHistories([waiter, late].map(idOf));
  });

  it('takes a chain of 600 with it, also when the process dies on the way', async () => {
    let world = await World.open({ dispatcher: null });
    const chain = [await world.admit('link 0')];
    for (let n = 1; n < 600; n++) {
      const last = chain[n - 1];
      if (last !== undefined) chain.push(await world.admit(`link ${String(n)}`, on(last)));
    }
    await world.cancel(idOf(chain[0] as TaskRecord));
    for (let kills = 0; (await world.real.propagations(null, 1)).length > 0 && kills < 100; kills += 1) {
      world.kill();
      world = await world.replica({ dispatcher: null });
      world.probe.failAfter(kills % 4, kills % 2 === 0 ? 'unavailable' : 'lost_answer');
      await world.settle();
    }
    await world.clock.advance(2_000);
    for (const record of chain.slice(1)) expect(await statusOf(world, record)).toBe('skipped');
    expect(await world.real.propagations(null, 1)).toEqual([]);
  });
});

describe('many waiters', () => {
  it('beyond what one transaction holds are let go all the same, and workers complete them', async () => {
    const world = await World.open();
    const upstream = await world.admit('upstream');
    const waiters = await Promise.all(
      Array.from({ length: 1_000 }, (_, n) =>
        world.admit(`waiter ${String(n)}`, { ...on(upstream), queue: 'default' }),
      ),
    );
    await completer(world);
    await world.clock.advance(5_000);
    await world.settle();
    for (const waiter of waiters) expect(await statusOf(world, waiter)).toBe('completed');
    expect(await world.real.propagations(null, 1)).toEqual([]);
    expect(world.defects).toEqual([]);
  });
});

async function admitted(world: World): Promise<TaskRecord> {
  const found = await world.authority.reads.findTaskId('default', 'waiter');
  if (!found.ok) throw new Error('it was not admitted');
  return world.stored(found.value);
}
