// Purging through the authority: who keeps a task, what races with a purge, and what the names of a purged task are good
// for afterwards (promise C2).

import { describe, expect, it } from 'vitest';
import type { SubmitAnswer } from '../../src/authority/submit-work.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { sqliteEngine } from '../contract/engines.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';

const resume = {
  kind: 'resume',
  newGenerationId: null,
  spareGenerationId: 'g2',
  inputJson: null,
  cause: causeOf('operator'),
} as const;

async function ended(world: World, key: string, given: Parameters<World['submit']>[1] = {}): Promise<TaskRecord> {
  const { taskId } = (await world.admit(key, given)).admission;
  await world.cancel(taskId);
  return world.stored(taskId);
}

async function purge(world: World, record: TaskRecord): Promise<string> {
  const { lastEvent, admission } = record;
  return (await world.authority.upkeep.purge({ taskId: admission.taskId, version: lastEvent })).kind;
}

const refusalOf = (answer: SubmitAnswer) => (answer.kind === 'refused' ? answer.refusal : null);

describe('the names of a purged task', () => {
  it.each(['memory', 'sqlite'])(
    'go on naming it: replay, conflict with the fields that differ, id taken (%s)',
    async (kind) => {
      const real = kind === 'sqlite' ? { real: await sqliteEngine.open() } : {};
      const world = await World.open({ ...real, dispatcher: null });
      const record = await ended(world, 'k', { taskId: 'mine', args: '{"page":1}' });
      expect(await purge(world, record)).toBe('purged');
      const replay = await world.submit('k', { args: '{"page":1}', policy: { priority: 3 } });
      expect(replay).toMatchObject({
        kind: 'purged',
        task: {
          taskId: 'mine',
          firstSequence: 1,
          tombstone: { status: 'cancelled', generation: 1, idempotencyKey: 'k' },
        },
      });
      const other = refusalOf(await world.submit('k', { args: '{"page":2}', kind: 'flow' }));
      expect(other).toMatchObject({
        reason: 'IDEMPOTENCY_CONFLICT',
        metadata: { task_id: 'mine', truncated: 'false' },
      });
      expect(other?.metadata['pointers']).toBe('["/action_kind","/args"]');
      const taken = refusalOf(await world.submit('another', { taskId: 'mine' }));
      expect(taken).toMatchObject({ reason: 'TASK_ID_TAKEN', metadata: { task_id: 'mine' } });
      // Also for one whose family would refuse it: what is known is known.
      const late = await world.submit('k', {
        args: '{"page":1}',
        policy: { dependsOn: [{ taskId: 'nobody', condition: 'terminal' }] },
      });
      expect(late.kind).toBe('purged');
      expect(await world.admit('another')).toBeDefined();
      await world.authority.stop();
      await world.real.close();
    },
  );

  it('are no task for intents, parents and dependencies, and say why', async () => {
    const world = await World.open({ dispatcher: null });
    const record = await ended(world, 'k');
    const { taskId } = record.admission;
    const key = { key: 'cancel', contentHash: 'h' };
    const cancel = { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') } as const;
    await world.apply({ taskId, intent: cancel, key, remembers: () => true });
    expect(await purge(world, record)).toBe('purged');
    const purged = { reason: 'TASK_NOT_FOUND', metadata: { task_id: taskId, purged: 'true' } };
    // The ledger went with the task.
    expect(await world.apply({ taskId, intent: cancel, key })).toMatchObject({ kind: 'refused', refusal: purged });
    expect(await world.apply({ taskId, intent: resume })).toMatchObject({ kind: 'refused', refusal: purged });
    expect(await world.authority.reads.get(taskId)).toMatchObject({ ok: false, refusal: purged });
    const waiter = await world.submit('w', { policy: { dependsOn: [{ taskId, condition: 'terminal' }] } });
    expect(refusalOf(waiter)).toMatchObject({
      reason: 'TASK_NOT_FOUND',
      metadata: { task_id: taskId, purged: 'true', field: 'policy.depends_on[0].task_id' },
    });
    const link = { taskId, generationId: record.generationId, attached: true };
    expect(refusalOf(await world.submit('c', { policy: { parent: link } }))?.metadata).toEqual({
      task_id: taskId,
      purged: 'true',
      field: 'policy.parent.task_id',
    });
  });
});

describe('a task that is needed', () => {
  it('by its live parent is kept until that generation is over', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const link = { taskId: parent.admission.taskId, generationId: parent.generationId, attached: true };
    const child = await ended(world, 'child', { policy: { parent: link } });
    expect(await purge(world, child)).toBe('kept');
    await world.cancel(link.taskId);
    expect(await purge(world, child)).toBe('purged');
    expect(await purge(world, await world.stored(link.taskId))).toBe('purged');
  });

  it('by children that live, or a waiter, is kept until they are over', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const upstream = await world.admit('upstream');
    const { taskId } = upstream.admission;
    const waiter = await world.admit('waiter', { policy: { dependsOn: [{ taskId, condition: 'terminal' }] } });
    await turns();
    // What waits is told in the transaction of the end, so the hold is made by hand.
    const link = { kind: 'edge_opened', upstreamId: taskId, generation: 2, waiterId: waiter.admission.taskId } as const;
    const plan = { recordReads: [], sessionReads: [], records: [], sessions: [], ledger: [], diagnostics: [] };
    await world.real.commit({ batchId: 'edge', plans: [{ ...plan, links: [{ ...link, condition: 'terminal' }] }] });
    await worker.say(taskId, 'accepted', 'started', 'completed');
    await turns();
    expect(await purge(world, await world.stored(taskId))).toBe('kept');
    await world.cancel(waiter.admission.taskId);
    await world.real.commit({
      batchId: 'edge gone',
      plans: [{ ...plan, links: [{ kind: 'edges_dropped', waiterId: link.waiterId }] }],
    });
    expect(await purge(world, await world.stored(taskId))).toBe('purged');
  });

  it('by a parent that cannot be read is kept', async () => {
    const world = await World.open({ dispatcher: null });
    const parent = await world.admit('parent');
    const link = { taskId: parent.admission.taskId, generationId: parent.generationId, attached: true };
    const child = await ended(world, 'child', { policy: { parent: link } });
    await world.cancel(link.taskId);
    world.probe.damaged.add(link.taskId);
    expect(await purge(world, child)).toBe('kept');
  });
});

describe('what races with a purge', () => {
  it('a new generation and a purge do not both pass, whoever comes first', async () => {
    for (const first of ['purge', 'resume']) {
      const world = await World.open({ dispatcher: null });
      const record = await ended(world, 'k');
      const { taskId } = record.admission;
      // Both in one batch.
      const held = world.probe.hold();
      const other = world.admit('other');
      await held;
      const begin = (): Promise<unknown> => world.apply({ taskId, intent: resume });
      const resuming = first === 'resume' ? begin() : null;
      const purging = purge(world, record);
      const answers = Promise.all([resuming ?? begin(), purging]);
      world.probe.release();
      await other;
      const [resumed, purged] = await answers;
      expect(purged).toBe(first === 'purge' ? 'purged' : 'changed');
      expect(resumed).toMatchObject(
        first === 'purge' ? { kind: 'refused', refusal: { metadata: { purged: 'true' } } } : { kind: 'applied' },
      );
      expect(world.defects).toEqual([]);
    }
  });

  it('a waiter that was decided on the task in the same batch is decided anew', async () => {
    const world = await World.open({ dispatcher: null });
    const record = await ended(world, 'k');
    const { taskId } = record.admission;
    const held = world.probe.hold();
    const other = world.admit('other');
    await held;
    const purging = purge(world, record);
    const waiting = world.submit('w', { policy: { dependsOn: [{ taskId, condition: 'terminal' }] } });
    world.probe.release();
    await other;
    expect(await purging).toBe('purged');
    expect(refusalOf(await waiting)?.metadata).toMatchObject({ purged: 'true' });
    expect(world.defects).toEqual([]);
  });

  it('a change since it was found keeps it, and so does one by another process', async () => {
    const world = await World.open({ dispatcher: null });
    const record = await ended(world, 'k');
    const { taskId } = record.admission;
    const stale = { ...record, lastEvent: record.lastEvent - 1 };
    expect(await purge(world, stale)).toBe('changed');
    const replica = await world.replica({ dispatcher: null });
    world.probe.beforeCommit = async () => {
      world.probe.beforeCommit = () => Promise.resolve();
      await replica.apply({ taskId, intent: resume });
    };
    expect(await purge(world, record)).toBe('changed');
    expect((await world.stored(taskId)).status).toBe('queued');
    expect(await purge(world, await world.stored(taskId))).toBe('changed');
    expect(await purge(world, { ...record, admission: { ...record.admission, taskId: 'nobody' } })).toBe('changed');
  });

  it('an outcome that is not known is found out, and the task is purged once', async () => {
    const world = await World.open({ dispatcher: null });
    const record = await ended(world, 'k');
    world.probe.failNext('lost_answer');
    const purging = purge(world, record);
    await world.clock.advance(100);
    expect(await purging).toBe('purged');
    expect(await world.real.eventBounds()).toMatchObject({ purges: 1 });
  });

  it('a store that fails leaves the task as it was', async () => {
    const world = await World.open({ dispatcher: null });
    const record = await ended(world, 'k');
    world.probe.failNext('unavailable');
    expect(await purge(world, record)).toBe('refused');
    expect(await world.stored(record.admission.taskId)).toEqual(record);
    expect(await purge(world, record)).toBe('purged');
  });
});
