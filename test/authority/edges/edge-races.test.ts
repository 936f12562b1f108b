// For every row of the edge table: two writers in two processes on one store, each deciding on the same record. Whoever
// commits first, the other is judged on what is true by then; nothing is taken twice and the history stays one.

import { describe, expect, it } from 'vitest';
import { EDGES, isDeclaredEdge } from '../../../src/kernel/edges.js';
import { isTerminal } from '../../../src/kernel/status.js';
import { World } from '../../support/world.js';
import { ADMISSIONS, EDGE_CASES, type EdgeCase, nameOf } from './edge-cases.js';
import { type Situation, cancel } from './situations.js';
import { ALL_CASES } from './trigger-cases.js';

const ALONE = { dispatcher: null, timers: 'stopped', propagation: 'stopped' } as const;

it('the list has every row of the table, by every intent that may take it', () => {
  const rows = EDGES.flatMap(({ from, to, by }) => by.map((intent) => nameOf({ from, to, by: intent })));
  expect([...ADMISSIONS, ...EDGE_CASES].map(nameOf).sort()).toEqual(rows.sort());
});

async function twoProcesses(): Promise<{ readonly world: World; readonly other: World }> {
  const world = await World.open(ALONE);
  return { world, other: await world.replica(ALONE) };
}

function takeIn(world: World, { take }: EdgeCase, situation: Situation) {
  const { on, intent } = take(situation);
  const taskId = on ?? situation.taskId;
  return world.apply({ taskId, intent });
}

/** How often the edge stands in the history; and whether that is a legal one. */
async function timesTaken(world: World, taskId: string, { from, to }: Pick<EdgeCase, 'from' | 'to'>): Promise<number> {
  await world.assertHistories([taskId]);
  const ends = new Set<number>();
  let taken = 0;
  for (const event of await world.events(taskId)) {
    if (event.to === null) continue;
    expect([event.from, event.to, isDeclaredEdge(event.from, event.to)]).toEqual([event.from, event.to, true]);
    if (isTerminal(event.to)) expect([...ends]).not.toContain(event.generation);
    if (isTerminal(event.to)) ends.add(event.generation);
    if (event.from === from && event.to === to) taken += 1;
  }
  return taken;
}

describe.each(ALL_CASES.map((row) => [nameOf(row), row] as const))('%s', (_, row) => {
  it('is taken once when two ask for the same', async () => {
    const { world, other } = await twoProcesses();
    const situation = await row.arrive(world, 'task');
    const before = await timesTaken(world, 'task', row);
    const held = other.probe.hold();
    const late = takeIn(other, row, situation);
    await held;
    expect(await takeIn(world, row, situation)).toMatchObject({ kind: 'applied' });
    other.probe.release();
    expect((await late).kind).not.toBe('applied');
    expect(await timesTaken(world, 'task', row)).toBe(before + 1);
  });

  it('or a cancel is first, and the other is judged on what that left', async () => {
    for (const first of ['edge', 'cancel'] as const) {
      const { world, other } = await twoProcesses();
      const situation = await row.arrive(world, 'task');
      const before = await world.stored('task');
      const taken = await timesTaken(world, 'task', row);
      const asks = {
        edge: (by: World) => takeIn(by, row, situation),
        cancel: (by: World) => situation.apply(by, cancel),
      };
      const held = other.probe.hold();
      const late = asks[first === 'edge' ? 'cancel' : 'edge'](other);
      // Over or asked already: there is nothing to cancel, and nothing that would wait at the store.
      const nothing = first === 'edge' && (isTerminal(before.status) || before.cancellation !== null);
      if (!nothing) await held;
      const early = await asks[first](world);
      other.probe.release();
      const answers = [early, await late].map(({ kind }) => kind);
      expect(answers.every((kind) => ['applied', 'unchanged', 'refused', 'conflict'].includes(kind))).toBe(true);
      if (first === 'edge') expect(early.kind).toBe('applied');
      expect(await timesTaken(world, 'task', row)).toBeLessThanOrEqual(taken + 1);
      const after = await world.stored('task');
      const requests = (await world.events('task')).filter(({ type }) => type === 'task.cancel.requested');
      expect(new Set(requests.map(({ generation }) => generation)).size).toBe(requests.length);
      // A request fences: nothing that lives under it is anywhere but with its worker.
      if (after.cancellation !== null && !isTerminal(after.status)) expect(after.status).toBe('running');
    }
  });
});

describe.each(ADMISSIONS.map((row) => [nameOf(row), row] as const))('%s', (_, row) => {
  const given = (waits: boolean) =>
    waits ? { policy: { dependsOn: [{ taskId: 'first', condition: 'terminal' as const }] } } : {};

  it('is taken once when two submit under one key', async () => {
    const { world, other } = await twoProcesses();
    await world.admit('first', { taskId: 'first' });
    const held = other.probe.hold();
    const late = other.submit('task', given(row.waits));
    await held;
    const early = await world.submit('task', given(row.waits));
    other.probe.release();
    expect(early.kind).toBe('created');
    const answer = await late;
    expect(answer.kind).toBe('replayed');
    if (early.kind !== 'created' || answer.kind !== 'replayed') throw new Error('as expected above');
    const { taskId } = early.record.admission;
    expect(answer.record.admission.taskId).toBe(taskId);
    expect(await timesTaken(world, taskId, row)).toBe(1);
    expect(await world.real.familyCounts([taskId])).toMatchObject([{ unsatisfied: row.waits ? 1 : 0 }]);
  });

  it('and the end of what it names are in one order, whoever commits first', async () => {
    for (const first of ['submit', 'end'] as const) {
      const { world, other } = await twoProcesses();
      await world.admit('first', { taskId: 'first' });
      const ends = (by: World) => by.cancel('first');
      const submits = (by: World) => by.submit('task', { taskId: 'task', ...given(row.waits) });
      const held = other.probe.hold();
      const late = first === 'submit' ? ends(other) : submits(other);
      await held;
      await (first === 'submit' ? submits(world) : ends(world));
      other.probe.release();
      await late;
      // It waits for nothing that is over: it was let go when that ended, or never held.
      expect(await world.stored('task')).toMatchObject({ status: 'queued', openDependencies: false });
      expect(await world.real.familyCounts(['task'])).toEqual([{ liveChildren: 0, unsatisfied: 0 }]);
      await world.assertHistories(['first', 'task']);
    }
  });
});
