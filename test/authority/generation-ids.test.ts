// A generation id names one life of a task for ever: named again it is MALFORMED, against the whole history and under
// races, and a repeat of the request that used it is still a replay.

import { describe, expect, it } from 'vitest';
import type { IntentAnswer } from '../../src/authority/intent-work.js';
import { causeOf } from '../support/submissions.js';
import { World } from '../support/world.js';

const MALFORMED = {
  kind: 'refused',
  refusal: { reason: 'MALFORMED', metadata: { field: 'new_generation_id' } },
} as const;

function resume(world: World, taskId: string, newGenerationId: string | null, key?: string): Promise<IntentAnswer> {
  return world.apply({
    taskId,
    intent: {
      kind: 'resume',
      newGenerationId,
      spareGenerationId: world.random.uuidV7(),
      inputJson: null,
      cause: causeOf('operator'),
    },
    ...(key === undefined ? {} : { key: { key, contentHash: `sha256:${key}` } }),
  });
}

/** A task in its generation n, cancelled; generation m of it was `g<m>`. */
async function cancelledIn(world: World, generation: number): Promise<string> {
  const { admission } = await world.admit(`k-${String(generation)}`);
  const { taskId } = admission;
  await world.cancel(taskId);
  for (let number = 2; number <= generation; number++) {
    expect(await resume(world, taskId, `g${String(number)}`)).toMatchObject({ kind: 'applied' });
    await world.cancel(taskId);
  }
  return taskId;
}

describe('a generation id', () => {
  it('of any life before is refused, and changes nothing', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 5);
    const first = (await world.events(taskId))[0];
    const firstId = first?.type === 'task.submitted' ? first.data.generationId : '';
    const before = await world.stored(taskId);
    for (const id of [firstId, 'g2', 'g3', 'g4', 'g5'])
      expect(await resume(world, taskId, id)).toMatchObject(MALFORMED);
    expect(await world.stored(taskId)).toEqual(before);
    expect(await resume(world, taskId, 'g6')).toMatchObject({ kind: 'applied', after: { generationId: 'g6' } });
    await world.assertHistories([taskId]);
  });

  it('that the authority made is taken as well', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 2);
    const made = await resume(world, taskId, null);
    const madeId = made.kind === 'applied' ? made.after.generationId : '';
    await world.cancel(taskId);
    await resume(world, taskId, 'g4');
    await world.cancel(taskId);
    expect(await resume(world, taskId, madeId)).toMatchObject(MALFORMED);
  });

  it('is looked up across a restart', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 3);
    const other = await world.replica({ dispatcher: null });
    expect(await resume(other, taskId, 'g2')).toMatchObject(MALFORMED);
  });

  it('named again under the key that used it is a replay; under that key with other content a conflict', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 1);
    expect(await resume(world, taskId, 'mine', 'once')).toMatchObject({ kind: 'applied' });
    await world.cancel(taskId);
    await resume(world, taskId, null);
    await world.cancel(taskId);
    expect(await resume(world, taskId, 'mine', 'once')).toMatchObject({ kind: 'replayed' });
    expect(await resume(world, taskId, 'mine')).toMatchObject(MALFORMED);
  });

  it('is judged after what comes before it: a stale generation, a guard, a task that is not over', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 3);
    const intent = {
      kind: 'resume',
      newGenerationId: 'g2',
      spareGenerationId: 's',
      inputJson: null,
      cause: causeOf('operator'),
    } as const;
    const guards = { generationId: 'g2', fromStatus: null, expectedRevision: null };
    expect(await world.apply({ taskId, intent, guards })).toMatchObject({ refusal: { reason: 'STALE_GENERATION' } });
    const wrong = { generationId: null, fromStatus: 'failed', expectedRevision: null } as const;
    expect(await world.apply({ taskId, intent, guards: wrong })).toMatchObject({ kind: 'conflict' });
    expect(await resume(world, 'nobody', 'g2')).toMatchObject({ refusal: { reason: 'TASK_NOT_FOUND' } });
    await resume(world, taskId, 'g4');
    expect(await resume(world, taskId, 'g2')).toMatchObject({ refusal: { reason: 'INVALID_TRANSITION' } });
  });

  it('costs a look at the history only where one is named and there were others', async () => {
    const world = await World.open({ dispatcher: null });
    const reads = () => world.probe.calls.get('readHistory') ?? 0;
    const taskId = await cancelledIn(world, 2);
    expect(reads()).toBe(0);
    await resume(world, taskId, null);
    expect(reads()).toBe(0);
    await world.cancel(taskId);
    await resume(world, taskId, 'g4');
    expect(reads()).toBeGreaterThan(0);
  });

  it('that others used and left while it was being looked up is still refused', async () => {
    const world = await World.open({ dispatcher: null });
    const taskId = await cancelledIn(world, 3);
    const other = await world.replica({ dispatcher: null });
    // Between the look at the history and the judgement two more lives pass, the first of them under the id wanted.
    const { real } = world;
    const read = real.readHistory.bind(real);
    let lives = ['wanted', 'later'];
    real.readHistory = async (...args) => {
      const page = await read(...args);
      if (page.length > 0) return page;
      for (const id of lives.splice(0)) {
        expect(await resume(other, taskId, id)).toMatchObject({ kind: 'applied' });
        await other.cancel(taskId);
      }
      return page;
    };
    expect(await resume(world, taskId, 'wanted')).toMatchObject(MALFORMED);
    expect(await world.stored(taskId)).toMatchObject({ generation: 5, generationId: 'later' });
    lives = ['between'];
    expect(await resume(world, taskId, 'fresh')).toMatchObject({ kind: 'applied', after: { generation: 7 } });
    await world.assertHistories([taskId]);
  });
});
