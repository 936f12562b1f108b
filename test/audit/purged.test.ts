// What a purge leaves behind is no damage: verification of the whole store knows it, on both engines.

import { describe, expect, it } from 'vitest';
import { memoryEngine, sqliteEngine } from '../contract/engines.js';
import { World } from '../support/world.js';
import { auditAll } from './stored-file.js';

describe.each([memoryEngine, sqliteEngine])('on $name', (engine) => {
  async function withPurged(swept: boolean, detachedChild: boolean) {
    const store = await engine.open();
    const world = await World.open({ real: store, dispatcher: null });
    const ended = await world.admit('ended');
    const { taskId } = ended.admission;
    const link = { taskId, generationId: ended.generationId, attached: false };
    await world.admit('live', detachedChild ? { policy: { parent: link } } : {});
    await world.cancel(taskId);
    const version = (await world.stored(taskId)).lastEvent;
    expect(await world.authority.upkeep.purge({ taskId, version })).toEqual({ kind: 'purged' });
    while (swept && (await store.sweepPurged()));
    return { store, now: world.clock.nowMs() };
  }

  it('a child whose parent was purged has nothing wrong with it', async () => {
    const { store, now } = await withPurged(true, true);
    expect(await auditAll(store, now)).toMatchObject({ findings: [] });
  });

  it.each([true, false])('what is left of a purged task is no task (swept: %s)', async (swept) => {
    const { store, now } = await withPurged(swept, false);
    expect(await auditAll(store, now)).toMatchObject({ findings: [] });
    const { entries, next } = await store.auditTasks({ taskIds: null, after: 0, limit: 10 });
    expect(entries.map((entry) => entry?.kind)).toEqual(['purged', 'task']);
    expect(next).toBeNull();
  });
});
