// What a drain means is kept before it begins: a failure in its middle, a restart, another process.

import { expect, it } from 'vitest';
import { WorkerDrains } from '../../src/services/worker-drains.js';
import type { DrainCommand } from '../../src/wire/worker-session-codec.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const COMMAND: DrainCommand = {
  alias: null,
  workerName: 'worker-1',
  key: 'k',
  actor: { type: 'operator', id: '' },
  reason: null,
  contentHash: 'sha256:1',
};

function drainsOf(world: World) {
  const logged: unknown[] = [];
  const { authority, dispatcher } = world;
  const onDrained = (details: unknown): void => void logged.push(details);
  const drains = new WorkerDrains({ authority, dispatcher, onDrained }, () => world.real.sessions(null, 1_000));
  return { drains, logged };
}

const statesOf = async (world: World, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await world.real.loadSession(id))?.state));

it('finishes by a repetition what a failure left half done, and drains none that came since', async () => {
  const world = await World.open();
  const ids = [];
  for (let at = 0; at < 3; at++) ids.push((await openWorker(world)).sessionId);
  // The key is kept and one session drained, and then the store takes no more.
  world.probe.failAfter(2, 'unavailable');
  await expect(drainsOf(world).drains.drain(COMMAND, 'anonymous')).rejects.toMatchObject({
    refusal: { reason: 'STORE_UNAVAILABLE' },
  });
  expect((await statesOf(world, ids)).filter((state) => state === 'draining')).toHaveLength(1);
  const since = await openWorker(world);
  const restarted = drainsOf(await world.replica());
  const again = await restarted.drains.drain(COMMAND, 'anonymous');
  expect(again.replayed).toBe(true);
  expect([...again.sessionIds].sort()).toEqual([...ids].sort());
  expect(await statesOf(world, ids)).toEqual(['draining', 'draining', 'draining']);
  expect(await statesOf(world, [since.sessionId])).toEqual(['live']);
});

it('does nothing when its key cannot be kept', async () => {
  const world = await World.open();
  const { sessionId } = await openWorker(world);
  world.probe.failNext('unavailable');
  await expect(drainsOf(world).drains.drain(COMMAND, 'anonymous')).rejects.toMatchObject({
    refusal: { reason: 'STORE_UNAVAILABLE' },
  });
  expect(await statesOf(world, [sessionId])).toEqual(['live']);
});

it('means what the first of two processes meant', async () => {
  const world = await World.open();
  const { sessionId } = await openWorker(world);
  const other = await world.replica();
  const [one, two] = [drainsOf(world), drainsOf(other)];
  const both = await Promise.all([one, two].map(({ drains }) => drains.drain(COMMAND, 'anonymous')));
  expect(both.map(({ sessionIds }) => sessionIds)).toEqual([[sessionId], [sessionId]]);
  const different = { ...COMMAND, contentHash: 'sha256:2' };
  await expect(two.drains.drain(different, 'anonymous')).rejects.toMatchObject({
    refusal: { reason: 'IDEMPOTENCY_CONFLICT' },
  });
});

it('gives two calls at once one answer, and refuses the second where it says something else', async () => {
  const world = await World.open();
  await openWorker(world);
  const { drains, logged } = drainsOf(world);
  const calls = [COMMAND, COMMAND, { ...COMMAND, contentHash: 'sha256:2' }];
  const [first, same, other] = await Promise.allSettled(calls.map((command) => drains.drain(command, 'anonymous')));
  expect(first).toMatchObject({ value: { replayed: false } });
  expect(same).toMatchObject({ value: { replayed: true } });
  expect(other).toMatchObject({ reason: { refusal: { reason: 'IDEMPOTENCY_CONFLICT' } } });
  expect(logged).toHaveLength(1);
});

it('is the same drain still when all that it meant are gone', async () => {
  const world = await World.open();
  const worker = await openWorker(world, { lingerMs: 0 });
  const first = await drainsOf(world).drains.drain(COMMAND, 'anonymous');
  worker.drop();
  await world.settle();
  expect(await statesOf(world, first.sessionIds)).toEqual(['gone']);
  expect(await drainsOf(world).drains.drain(COMMAND, 'anonymous')).toEqual({ ...first, replayed: true });
});
