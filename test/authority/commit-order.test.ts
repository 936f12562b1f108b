// Nothing is answered, published or sent before its commit (promise C1); what chains is one commit with every fact in
// it; the order of publication is the order of the store.

import { describe, expect, it } from 'vitest';
import type { CommitPlan } from '../../src/store/commit-plan.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

function eventTypesOf(plan: CommitPlan | undefined): string[] {
  return plan?.records.flatMap(({ events }) => events.map(({ type }) => type)) ?? [];
}

/** A worker whose route is known: it has done one task and waits for the next. */
async function withIdleWorker() {
  const world = await World.open();
  const worker = await openWorker(world);
  const { admission } = await world.admit('warm-up');
  await world.settle();
  await worker.say(admission.taskId, 'accepted', 'started', 'completed');
  await world.settle();
  return { world, worker };
}

describe('chains', () => {
  it('submit for an idle worker: submitted and claimed in one plan of one commit', async () => {
    const { world, worker } = await withIdleWorker();
    const before = world.probe.batches.length;
    const record = await world.admit('k');
    expect(world.probe.batches).toHaveLength(before + 1);
    expect(eventTypesOf(world.probe.plans().at(-1))).toEqual(['task.submitted', 'reeve.task.claimed']);
    await world.settle();
    expect(worker.sink.claimedIds.at(-1)).toBe(record.admission.taskId);
    expect(record).toMatchObject({ status: 'running', revision: 2, lastEvent: 2 });
  });

  it('the first submission of a route that nobody knew is claimed at once too, in a commit of its own', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 2 });
    await world.admit('k', { queue: 'first-ever' });
    await world.settle();
    expect(worker.sink.claimed).toHaveLength(1);
    expect(await world.admit('l', { queue: 'first-ever' })).toMatchObject({ status: 'running' });
  });

  it('accepted, started and completed of one frame: one commit, three events', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k');
    await world.settle();
    const before = world.probe.batches.length;
    const outcome = await worker.say(admission.taskId, 'accepted', 'started', 'completed');
    expect(outcome).toMatchObject({ kind: 'judged', judgedThrough: 3, refused: [] });
    expect(world.probe.batches).toHaveLength(before + 1);
    expect(world.probe.batches.at(-1)?.plans).toHaveLength(1);
    expect(eventTypesOf(world.probe.plans().at(-1))).toEqual(['task.accepted', 'task.started', 'task.completed']);
  });

  it('two intents on one task in one batch build on one another', async () => {
    const world = await World.open({ dispatcher: null });
    const { admission } = await world.admit('k');
    const [first, second] = await Promise.all([world.cancel(admission.taskId), world.cancel(admission.taskId)]);
    expect(first.kind).toBe('applied');
    expect(second).toMatchObject({ kind: 'refused', refusal: { reason: 'TERMINAL_GENERATION' } });
    expect(world.probe.batches.at(-1)?.plans).toHaveLength(1);
  });

  it('a report answers with the sequence of its own last event, and with none when it wrote nothing', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k');
    await world.settle();
    const [said, silent] = await Promise.all([
      worker.say(admission.taskId, 'accepted'),
      worker.sayIn(admission.taskId, 7, 'accepted'),
    ]);
    expect(said).toMatchObject({ kind: 'judged', committedSequence: 3 });
    expect(silent).toMatchObject({ kind: 'judged', committedSequence: 0 });
  });
});

describe('before the commit', () => {
  it('no caller is answered, no listener told, no claim sent; after it all are', async () => {
    const { world, worker } = await withIdleWorker();
    const before = [world.published.length, worker.sink.frames.length];
    const told: string[] = [];
    const held = world.probe.hold();
    const answer = world.submit('k').then(({ kind }) => told.push(kind));
    await held;
    await world.settle();
    expect(told).toEqual([]);
    expect([world.published.length, worker.sink.frames.length]).toEqual(before);
    world.probe.release();
    await answer;
    await world.settle();
    expect(told).toEqual(['created']);
    expect(world.published).toHaveLength((before[0] ?? 0) + 1);
    expect(worker.sink.claimed).toHaveLength(2);
  });

  it('a worker is not answered, and a reader sees the state before', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k');
    await world.settle();
    const held = world.probe.hold();
    const answers: unknown[] = [];
    const said = worker
      .say(admission.taskId, 'accepted', 'started', 'completed')
      .then((answer) => answers.push(answer));
    await held;
    expect(answers).toEqual([]);
    expect(await world.authority.reads.get(admission.taskId)).toMatchObject({ value: { status: 'running' } });
    world.probe.release();
    await said;
    expect(await world.authority.reads.get(admission.taskId)).toMatchObject({ value: { status: 'completed' } });
  });

  it('what arrives while a commit is held is gathered into the next one', async () => {
    const world = await World.open({ dispatcher: null });
    const held = world.probe.hold();
    const first = world.submit('first');
    await held;
    const others = ['a', 'b', 'c'].map((key) => world.submit(key));
    world.probe.release();
    await Promise.all([first, ...others]);
    expect(world.probe.batches.map(({ plans }) => plans.length)).toEqual([1, 3]);
  });

  it('a session is not granted before its row is written', async () => {
    const world = await World.open();
    const held = world.probe.hold();
    let granted = false;
    const opening = openWorker(world).then(() => (granted = true));
    await held;
    await world.settle();
    expect(granted).toBe(false);
    world.probe.release();
    await opening;
  });
});

describe('publication', () => {
  it('is in the order of sequences, without a gap', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 3 });
    const admitted = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => world.admit(key)));
    await world.settle();
    await Promise.all(worker.sink.claimedIds.map((taskId) => worker.say(taskId, 'accepted', 'started', 'completed')));
    await world.settle();
    await Promise.all(admitted.map(({ admission }) => world.cancel(admission.taskId)));
    const numbers = world.published.flatMap(({ firstSequence, events }) => events.map((_, at) => firstSequence + at));
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    await world.assertHistories(admitted.map(({ admission }) => admission.taskId));
  });

  it('brings a listener the record before and after', async () => {
    const world = await World.open({ dispatcher: null });
    const { admission } = await world.admit('k');
    await world.cancel(admission.taskId);
    const [created, cancelled] = world.published;
    expect(created).toMatchObject({ before: null, record: { status: 'queued' } });
    expect(cancelled).toMatchObject({ before: { status: 'queued' }, record: { status: 'cancelled' } });
  });

  it('goes on past a listener that throws, and the commit stands', async () => {
    const world = await World.open({ dispatcher: null });
    const error = new Error('a listener broke');
    world.authority.subscribe(() => {
      throw error;
    });
    const told: string[] = [];
    world.authority.subscribe(({ taskId }) => told.push(taskId));
    const { admission } = await world.admit('k');
    expect(world.defects).toEqual([error]);
    expect(told).toEqual([admission.taskId]);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued' });
  });
});
