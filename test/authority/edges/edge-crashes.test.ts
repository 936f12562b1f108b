// For every row of the edge table: the process that takes it dies before its commit, or after it and before its answer;
// and its key is repeated. On memory each case in a world of its own, on SQLite all of them in one file that is closed
// and opened again.

import { describe, expect, it } from 'vitest';
import type { IntentAnswer } from '../../../src/authority/intent-work.js';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../../contract/engines.js';
import { until } from '../../support/turns.js';
import { World } from '../../support/world.js';
import { ADMISSIONS, type EdgeCase, nameOf } from './edge-cases.js';
import type { Situation } from './situations.js';
import { ALL_CASES } from './trigger-cases.js';

const ALONE = { dispatcher: null, timers: 'stopped', propagation: 'stopped' } as const;
const KEY = { key: 'once', contentHash: 'sha256:00' };

function takeByKey(world: World, { take }: EdgeCase, situation: Situation): Promise<IntentAnswer> {
  const { on, intent } = take(situation);
  const taskId = on ?? situation.taskId;
  return world.apply({ taskId, intent, key: KEY });
}

async function timesTaken(world: World, taskId: string, { from, to }: Pick<EdgeCase, 'from' | 'to'>): Promise<number> {
  await world.assertHistories([taskId]);
  return (await world.events(taskId)).filter((event) => event.from === from && event.to === to).length;
}

/** The request is on its way, and the process dies: without a trace of it, or with everything but the answer. */
async function dieWith(world: World, ask: () => Promise<unknown>, when: 'before' | 'after'): Promise<void> {
  world.probe.outcomeHidden = true;
  world.probe.failNext(when === 'before' ? 'lost_request' : 'lost_answer');
  const asked = world.probe.calls.get('outcomeOf') ?? 0;
  void ask();
  // Whoever asks what came of it has lost the answer, and the store is done with it.
  await until(() => (world.probe.calls.get('outcomeOf') ?? 0) > asked, 'the commit');
  world.kill();
}

describe.each(ALL_CASES.map((row) => [nameOf(row), row] as const))('%s', (_, row) => {
  it.each(['before', 'after'] as const)('is there once when the process dies %s its commit', async (when) => {
    const world = await World.open(ALONE);
    const situation = await row.arrive(world, 'task');
    const taken = await timesTaken(world, 'task', row);
    const stood = await world.stored('task');
    await dieWith(world, () => takeByKey(world, row, situation), when);
    const next = await world.replica(ALONE);
    if (when === 'before') expect(await next.stored('task')).toEqual(stood);
    expect(await timesTaken(next, 'task', row)).toBe(when === 'before' ? taken : taken + 1);
    const answer = await takeByKey(next, row, situation);
    expect(answer.kind).toBe(when === 'before' ? 'applied' : 'replayed');
    expect(await timesTaken(next, 'task', row)).toBe(taken + 1);
  });

  it('is told again, and not taken again, when its key is repeated', async () => {
    const world = await World.open(ALONE);
    const situation = await row.arrive(world, 'task');
    const first = await takeByKey(world, row, situation);
    if (first.kind !== 'applied') throw new Error(`it was ${first.kind}`);
    const after = await world.stored('task');
    const again = await takeByKey(world, row, situation);
    const fact = first.events.findLast(({ revision }) => revision !== null);
    expect(again).toMatchObject({ kind: 'replayed', remembered: { kind: 'applied', revision: fact?.revision } });
    expect(await world.stored('task')).toEqual(after);
    const { on, intent } = row.take(situation);
    const taskId = on ?? 'task';
    const other = await world.apply({ taskId, intent, key: { ...KEY, contentHash: 'sha256:11' } });
    expect(other).toMatchObject({ kind: 'refused', refusal: { reason: 'IDEMPOTENCY_CONFLICT' } });
  });
});

describe.each(ADMISSIONS.map((row) => [nameOf(row), row] as const))('%s', (_, row) => {
  it.each(['before', 'after'] as const)('is there once when the process dies %s its commit', async (when) => {
    const world = await World.open(ALONE);
    await world.admit('first', { taskId: 'first' });
    const dependsOn = row.waits ? [{ taskId: 'first', condition: 'terminal' as const }] : [];
    const submit = (by: World) => by.submit('task', { taskId: 'task', policy: { dependsOn } });
    await dieWith(world, () => submit(world), when);
    const next = await world.replica(ALONE);
    expect((await next.real.findTaskId('default', 'task')) !== null).toBe(when === 'after');
    expect((await submit(next)).kind).toBe(when === 'before' ? 'created' : 'replayed');
    expect((await submit(next)).kind).toBe('replayed');
    expect(await timesTaken(next, 'task', row)).toBe(1);
    expect(await next.real.familyCounts(['task'])).toMatchObject([{ unsatisfied: row.waits ? 1 : 0 }]);
  });
});

describe('on SQLite', () => {
  it.each(['before', 'after'] as const)(
    'every edge is there once when the process dies %s its commit',
    async (when) => {
      const path = `${temporaryFolder()}/reeve.db`;
      let store = await openSqliteStore({ path });
      const taken = new Map<string, { row: EdgeCase; situation: Situation; times: number; at: number }>();
      const first = await World.open({ ...ALONE, real: store });
      for (const [at, row] of ALL_CASES.entries()) {
        const name = `task-${String(at)}`;
        // The clock of the world goes on with every case; each process has a cache of its own.
        const world = await first.replica(ALONE);
        const situation = await row.arrive(world, name);
        taken.set(name, { row, situation, times: await timesTaken(world, name, row), at: world.clock.nowMs() });
        await dieWith(world, () => takeByKey(world, row, situation), when);
      }
      await store.close();
      store = await openSqliteStore({ path });
      const next = await World.open({ ...ALONE, real: store, clock: first.clock });
      for (const [name, { row, situation, times, at }] of taken) {
        next.clock.step(at - next.clock.nowMs());
        const kind = when === 'before' ? 'applied' : 'replayed';
        expect([nameOf(row), (await takeByKey(next, row, situation)).kind]).toEqual([nameOf(row), kind]);
        expect([nameOf(row), await timesTaken(next, name, row)]).toEqual([nameOf(row), times + 1]);
      }
      expect(next.defects).toEqual([]);
      await next.authority.stop();
      await store.close();
    },
  );
});
