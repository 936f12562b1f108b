// What a session does after its stream ended (worker_service.proto, Hello.linger): it waits so long to be attached again
// and not longer, at most its TTL; and what a new Hello says takes the place of what the one before said.

import { describe, expect, it } from 'vitest';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

/** A worker with one task, past the quiet period of the start. */
async function running(given: Parameters<typeof openWorker>[1]) {
  const world = await World.open();
  await world.clock.advance(31_000);
  const worker = await openWorker(world, { ttlMs: 20_000, ...given });
  const { admission } = await world.admit('k');
  await world.settle();
  await worker.say(admission.taskId, 'accepted', 'started');
  return { world, worker, taskId: admission.taskId };
}

describe('a stream that ends', () => {
  it('leaves its session its linger to come back, and no longer', async () => {
    const { world, worker, taskId } = await running({ lingerMs: 1_000 });
    worker.drop();
    await world.clock.advance(900);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    await world.clock.advance(1_100);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it('right after a sign of life too: the renewal that follows does not outlast the linger', async () => {
    const { world, worker, taskId } = await running({ lingerMs: 1_000 });
    const heard = world.dispatcher.heartbeat(worker.session, worker.attachment, worker.holding);
    worker.drop();
    await world.clock.advance(2_100);
    expect(await heard).toBe('renewed');
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it.each([
    ['without a linger of its own', null],
    ['with a linger beyond it', 100_000],
  ])('%s leaves it the TTL', async (_what, lingerMs) => {
    const { world, worker, taskId } = await running({ lingerMs });
    worker.drop();
    await world.clock.advance(19_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    await world.clock.advance(3_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it('and a worker that comes back in time has its whole TTL again', async () => {
    const { world, worker, taskId } = await running({ lingerMs: 1_000 });
    worker.drop();
    await world.clock.advance(900);
    const again = await worker.reattach();
    await world.clock.advance(10_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    expect(await again.heartbeat()).toBe('renewed');
    // The end of the older stream, noticed late, takes nothing from the newer one.
    worker.drop();
    await world.clock.advance(5_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });
});

describe('the Hello of a worker that comes back', () => {
  it('replaces name, TTL and linger, in the row and for what is claimed next', async () => {
    const { world, worker } = await running({ lingerMs: 1_000 });
    worker.drop();
    const given = { name: 'renamed', ttlMs: 3_000, lingerMs: 0, slots: 2 };
    const again = await worker.reattach({ given });
    const expected = { workerName: 'renamed', ttlMs: 3_000, lingerMs: 0 };
    expect(again.session.identity).toMatchObject(expected);
    const row = await world.real.loadSession(worker.sessionId);
    expect(row).toMatchObject({ ...expected, expiresAt: world.clock.nowMs() + 3_000 });
    const { admission } = await world.admit('next');
    await world.settle();
    const claimedEvent = (await world.events(admission.taskId)).at(-1);
    expect(claimedEvent).toMatchObject({ type: 'reeve.task.claimed', cause: { actor: { id: 'renamed' } } });
    expect((await world.stored(admission.taskId)).lease).toMatchObject({ sessionTtlMs: 3_000 });
    again.drop();
    await world.settle();
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'gone' });
  });
});
