// What a restart of the service leaves between a worker and its leases: claims that were committed and never sent,
// and last words whose answer never came (lifecycle.md section 7).

import { describe, expect, it } from 'vitest';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

async function heldBy(slots: number) {
  const world = await World.open();
  const worker = await openWorker(world, { slots });
  const record = await world.admit('k');
  await world.settle();
  return { world, worker, taskId: record.admission.taskId };
}

describe('a worker that comes back after a restart', () => {
  it('gets a claim it never had anew, at once and with its attempt given back', async () => {
    const { world, worker, taskId } = await heldBy(1);
    world.kill();
    const restarted = await world.replica();
    const again = await worker.reattach({ world: restarted, named: [] });
    await restarted.settle();
    expect(again.sink.claimed.map(({ record, epoch }) => [record.admission.taskId, epoch])).toEqual([[taskId, 2]]);
    expect(await restarted.stored(taskId)).toMatchObject({ status: 'running', attempt: 1, handBacks: 1 });
  });

  it('loses a claim it had accepted and no longer names', async () => {
    const { world, worker, taskId } = await heldBy(1);
    await worker.say(taskId, 'accepted', 'started');
    world.kill();
    const restarted = await world.replica();
    await worker.reattach({ world: restarted, named: [] });
    await restarted.settle();
    expect(await restarted.stored(taskId)).toMatchObject({ status: 'running', epoch: 2, attempt: 2, handBacks: 0 });
  });

  it('hears the answer to its last words when it says them again', async () => {
    const { world, worker, taskId } = await heldBy(1);
    await worker.say(taskId, 'accepted', 'started', 'completed');
    world.kill();
    const restarted = await world.replica();
    const named = [{ taskId, epoch: 1, answeredThrough: 2 }];
    const again = await worker.reattach({ world: restarted, named });
    expect(again.attached.kept).toEqual(named);
    expect(again.attached.lost).toEqual([]);
    const events = [{ seq: 3, saying: { kind: 'completed', resultJson: null, ending: null } as const }];
    expect(await again.sayNumbered(taskId, 1, events)).toMatchObject({ judgedThrough: 3, refused: [] });
    expect((await restarted.eventTypes(taskId)).filter((type) => type === 'completed')).toHaveLength(1);
  });

  it('is told of a claim that was taken from it, though it was the last to have it', async () => {
    const { world, worker, taskId } = await heldBy(1);
    await worker.say(taskId, 'accepted', 'started');
    await world.cancel(taskId, 1);
    worker.drop();
    await world.clock.advance(1_100);
    const named = [{ taskId, epoch: 1, answeredThrough: 2 }];
    const again = await worker.reattach({ named });
    expect(again.attached.lost).toEqual(named);
  });
});
