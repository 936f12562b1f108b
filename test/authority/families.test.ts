// Families through the authority (lifecycle.md section 8): a child lives under the exact, live, unfenced generation of
// its parent; what becomes of the parent becomes of its attached children, in one transaction or, after a crash at any
// point, in as many as it takes.

import { describe, expect, it } from 'vitest';
import type { ParentLink } from '../../src/kernel/admission/family-policy.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { Given } from '../support/submissions.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { until } from '../support/turns.js';
import { World } from '../support/world.js';
import { settle, tick } from './edges/situations.js';

function under(parent: TaskRecord, attached = true): ParentLink {
  return { taskId: parent.admission.taskId, generationId: parent.generationId, attached };
}

function childOf(parent: TaskRecord, given: Given = {}): Given {
  return { queue: 'children', ...given, policy: { ...given.policy, parent: under(parent) } };
}

const idOf = (record: TaskRecord): string => record.admission.taskId;

/** No counter, edge or propagation is left behind, and every record is its history. */
async function assertSettled(world: World, taskIds: readonly string[]): Promise<void> {
  await world.clock.advance(2_000);
  await until(() => world.errors.length === 0, 'no errors');
  await world.settle();
  expect(await world.real.propagations(null, 10)).toEqual([]);
  await world.assertHistories(taskIds);
}

describe('a child is admitted', () => {
  it('under a live parent, and counts among its live children until it is over', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const child = await world.admit('child', childOf(parent));
    const second = await world.admit('second', childOf(parent));
    expect(child.admission.policy.parent).toEqual(under(parent));
    expect((await world.stored(idOf(parent))).hasChildren).toBe(true);
    expect(await world.eventTypes(idOf(parent))).toEqual(['submitted', 'followed']);
    expect(await world.real.familyCounts([idOf(parent)])).toEqual([{ liveChildren: 2, unsatisfied: 0 }]);
    await world.cancel(idOf(child));
    expect(await world.real.familyCounts([idOf(parent)])).toEqual([{ liveChildren: 1, unsatisfied: 0 }]);
    await assertSettled(world, [parent, child, second].map(idOf));
  });

  it.each(['another generation', 'over', 'asked to end'])('not under a parent that is %s', async (what) => {
    const world = await World.open();
    const parent = await world.admit('parent');
    if (what !== 'another generation') await openWorker(world);
    await world.settle();
    if (what === 'over') {
      const worker = [...world.published].at(-1)?.record.lease;
      expect(worker).not.toBeNull();
      await world.cancel(idOf(parent), 1);
      await world.clock.advance(1_000);
    }
    if (what === 'asked to end') await world.cancel(idOf(parent));
    const link = what === 'another generation' ? { ...under(parent), generationId: 'no such' } : under(parent);
    const answer = await world.submit('child', { policy: { parent: link } });
    expect(answer).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'PARENT_CONSTRAINT', metadata: { parent_task_id: idOf(parent) } },
    });
    expect(await world.authority.reads.findTaskId('default', 'child')).toMatchObject({ ok: false });
    // A detached one may: it only remembers its parent.
    const detached = await world.submit('detached', { policy: { parent: { ...link, attached: false } } });
    expect(detached.kind).toBe('created');
  });

  it('not under a parent that is not known: TASK_NOT_FOUND names the field', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = { taskId: 'nobody', generationId: 'g', attached: true };
    expect(await world.submit('child', { policy: { parent } })).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'TASK_NOT_FOUND', metadata: { task_id: 'nobody', field: 'policy.parent.task_id' } },
    });
  });

  it('once: a replay is a replay whatever has become of the parent', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const child = await world.admit('child', childOf(parent));
    await world.cancel(idOf(parent));
    expect(await world.submit('child', childOf(parent))).toMatchObject({
      kind: 'replayed',
      record: { status: 'cancelled', generationId: child.generationId },
      ignoredPolicyFields: [],
    });
  });

  it('detached without a generation is given the current one, and a replay without one agrees', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const link = { taskId: idOf(parent), generationId: '', attached: false };
    const child = await world.admit('child', { policy: { parent: link } });
    expect(child.admission.policy.parent?.generationId).toBe(parent.generationId);
    expect(await world.submit('child', { policy: { parent: link } })).toMatchObject({ ignoredPolicyFields: [] });
    await world.cancel(idOf(parent));
    expect((await world.stored(idOf(child))).status).toBe('queued');
  });
});

describe('a cancel request of the parent', () => {
  it('cancels what does not run and asks what does, in the same transaction', async () => {
    const world = await World.open({ propagation: 'stopped' });
    const parent = await world.admit('parent', { queue: 'parents' });
    const running = await world.admit('running', childOf(parent));
    const worker = await openWorker(world);
    await world.settle();
    await worker.say(idOf(parent), 'accepted', 'started');
    const helper = await openWorker(world, { name: 'helper' });
    await world.settle();
    await helper.say(idOf(running), 'accepted', 'started');
    const queued = await world.admit('queued', childOf(parent));
    const batches = world.probe.batches.length;
    expect(await world.cancel(idOf(parent))).toMatchObject({ kind: 'applied', after: { status: 'running' } });
    expect(world.probe.batches.length).toBe(batches + 1);
    expect(await world.stored(idOf(queued))).toMatchObject({
      status: 'cancelled',
      reason: { code: 'run.cancelled.parent' },
      ownerStopped: true,
      cancellation: { requestedBy: { type: 'parent', id: idOf(parent) } },
    });
    expect(await world.stored(idOf(running))).toMatchObject({
      status: 'running',
      cancellation: { reason: { code: 'run.cancelled.parent' } },
    });
    expect(helper.sink.cancelled.map(({ taskId }) => taskId)).toEqual([idOf(running)]);
    // It stopped, and then the parent's worker does.
    await helper.say(idOf(running), 'cancelled');
    await worker.say(idOf(parent), 'cancelled');
    expect(await world.real.familyCounts([idOf(parent)])).toEqual([{ liveChildren: 0, unsatisfied: 0 }]);
  });

  it('and its end revoke the lease of a child that runs on, and tell its worker', async () => {
    const world = await World.open();
    const parent = await world.admit('parent', { queue: 'parents' });
    const child = await world.admit('child', childOf(parent));
    const worker = await openWorker(world, { slots: 2 });
    await world.settle();
    await worker.say(idOf(parent), 'accepted', 'started');
    await worker.say(idOf(child), 'accepted', 'started');
    await world.cancel(idOf(parent), 500);
    await world.clock.advance(1_500);
    expect(await world.stored(idOf(child))).toMatchObject({
      status: 'cancelled',
      ownerStopped: false,
      reason: { code: 'run.cancelled.parent' },
    });
    expect(worker.sink.lost).toMatchObject([
      { taskId: idOf(parent), cause: 'cancel_grace' },
      { taskId: idOf(child), cause: 'parent' },
    ]);
    expect(await worker.say(idOf(child), 'completed')).toMatchObject({
      refused: [{ refusal: { reason: 'LEASE_LOST' } }],
    });
    await assertSettled(world, [idOf(parent), idOf(child)]);
  });
});

describe('the end of the parent', () => {
  it.each(['failed', 'timed_out'] as const)('%s is the end of its attached children', async (outcome) => {
    const world = await World.open({ dispatcher: null, propagation: 'stopped' });
    const parent = await world.admit('parent', { policy: { timeoutMs: 60_000 } });
    const child = await world.admit('child', childOf(parent));
    const detached = await world.admit('detached', { policy: { parent: under(parent, false) } });
    const waiting = await world.admit('waiting', {
      policy: { parent: under(parent), dependsOn: [{ taskId: idOf(detached), condition: 'terminal' }] },
    });
    const ended = await world.admit('ended', childOf(parent));
    await world.apply({ taskId: idOf(ended), intent: settle('failed') });
    if (outcome === 'timed_out') world.clock.step(60_000);
    await world.apply({ taskId: idOf(parent), intent: outcome === 'failed' ? settle('failed') : tick });
    for (const record of [child, waiting]) {
      expect(await world.stored(idOf(record))).toMatchObject({
        status: outcome,
        reason: { code: `run.${outcome}.parent` },
      });
    }
    expect(await world.stored(idOf(detached))).toMatchObject({ status: 'queued' });
    // What ended before its parent did stays what it was.
    expect(await world.stored(idOf(ended))).toMatchObject({ reason: { code: 'run.failed.operator' } });
    expect(await world.real.familyCounts([parent, waiting].map(idOf))).toEqual([
      { liveChildren: 0, unsatisfied: 0 },
      { liveChildren: 0, unsatisfied: 0 },
    ]);
  });

  it('is refused as completed, and as a new generation, while attached children live', async () => {
    const world = await World.open();
    const parent = await world.admit('parent', { queue: 'parents' });
    const worker = await openWorker(world, { serves: subscription({ queues: ['parents'] }) });
    await world.settle();
    await worker.say(idOf(parent), 'accepted', 'started');
    const child = await world.admit('child', childOf(parent));
    expect(await worker.say(idOf(parent), 'completed')).toMatchObject({
      refused: [{ refusal: { reason: 'CHILDREN_ACTIVE', metadata: { children: '1' } } }],
    });
    const suspend = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;
    await world.apply({ taskId: idOf(parent), intent: suspend });
    const resume = { kind: 'resume', newGenerationId: 'g2', spareGenerationId: 's', inputJson: null } as const;
    const again = { taskId: idOf(parent), intent: { ...resume, cause: causeOf('operator') } };
    expect(await world.apply(again)).toMatchObject({ kind: 'refused', refusal: { reason: 'CHILDREN_ACTIVE' } });
    await world.cancel(idOf(child));
    expect(await world.apply(again)).toMatchObject({ kind: 'applied', after: { generation: 2, hasChildren: false } });
    // The child belonged to the generation before: it cannot begin anew under this one.
    const childAgain = { taskId: idOf(child), intent: again.intent };
    expect(await world.apply(childAgain)).toMatchObject({ refusal: { reason: 'PARENT_CONSTRAINT' } });
  });

  it('a new generation of a child counts again', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const child = await world.admit('child', childOf(parent));
    await world.cancel(idOf(child));
    const resume = { kind: 'resume', newGenerationId: 'g2', spareGenerationId: 's', inputJson: null } as const;
    const intent = { ...resume, cause: causeOf('operator') };
    expect(await world.apply({ taskId: idOf(child), intent })).toMatchObject({ kind: 'applied' });
    expect(await world.real.familyCounts([idOf(parent)])).toEqual([{ liveChildren: 1, unsatisfied: 0 }]);
    await world.cancel(idOf(parent));
    expect(await world.stored(idOf(child))).toMatchObject({ status: 'cancelled', generation: 2 });
  });
});

describe('the claim of a child and the cancel of its parent', () => {
  it.each(['one batch', 'cancel first', 'claim first'])('in every order: %s', async (order) => {
    const world = await World.open();
    const parent = await world.admit('parent', { queue: 'parents' });
    const child = await world.admit('child', childOf(parent));
    const opening = openWorker(world);
    if (order === 'claim first') await opening;
    if (order === 'claim first') await world.settle();
    const cancelling = world.cancel(idOf(parent));
    if (order === 'cancel first') await cancelling;
    await Promise.all([opening, cancelling]);
    await world.settle();
    const after = await world.stored(idOf(child));
    if (after.status !== 'running') expect(after).toMatchObject({ status: 'cancelled', everClaimed: false });
    else expect(after.cancellation).not.toBeNull();
    await assertSettled(world, [idOf(parent), idOf(child)]);
  });

  it('across two processes: a parent that ended elsewhere lets no child be claimed, told or not', async () => {
    const world = await World.open({ propagation: 'stopped' });
    const parent = await world.admit('parent', { queue: 'parents' });
    const child = await world.admit('child', childOf(parent));
    const other = await world.replica({ dispatcher: null, propagation: 'stopped' });
    // The other process ends the parent and dies before it has told anybody.
    other.probe.overrule = (plan) =>
      plan.records.some((write) => write.kind === 'update' && write.taskId === idOf(child))
        ? { kind: 'conflict', subject: 'record', id: idOf(child) }
        : null;
    await other.cancel(idOf(parent));
    other.kill();
    expect((await world.stored(idOf(child))).status).toBe('queued');
    await openWorker(world, { serves: subscription({ queues: ['children'] }) });
    await world.settle();
    await world.clock.advance(6_000);
    expect(await world.stored(idOf(child))).toMatchObject({ status: 'cancelled', everClaimed: false });
    const third = await world.replica({ dispatcher: null });
    await assertSettled(third, [idOf(parent), idOf(child)]);
  });
});

describe('propagation beyond the bound', () => {
  it('three levels with 1,000 leaves end, however often the process is killed', async () => {
    let world = await World.open({ dispatcher: null });
    const root = await world.admit('root');
    const middles = await Promise.all([0, 1, 2].map((n) => world.admit(`middle ${String(n)}`, childOf(root))));
    const leaves = await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => world.admit(`leaf ${String(n)}`, childOf(middles[n % 3] ?? root))),
    );
    const first = world.cancel(idOf(root));
    expect(await first).toMatchObject({ kind: 'applied' });
    let kills = 0;
    for (let commits = 0; (await world.real.propagations(null, 1)).length > 0 && kills < 50; commits += 1) {
      world.kill();
      world = await world.replica({ dispatcher: null });
      world.probe.failAfter(commits % 3, 'unavailable');
      await world.settle();
      kills += 1;
    }
    await assertSettled(world, [root, ...middles, ...leaves].map(idOf));
    for (const record of [...middles, ...leaves]) {
      expect((await world.stored(idOf(record))).status).toBe('cancelled');
    }
    const counts = await world.real.familyCounts([root, ...middles].map(idOf));
    expect(counts.every(({ liveChildren }) => liveChildren === 0)).toBe(true);
    expect(kills).toBeGreaterThan(0);
  });
});
