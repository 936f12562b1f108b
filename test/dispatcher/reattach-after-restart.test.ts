// What a restart of the service leaves between a worker and its leases: claims that were committed and never sent,
// and last words whose answer never came (lifecycle.md section 7).

import { describe, expect, it } from 'vitest';
import type { LeaseLossCause } from '../../src/dispatcher/work-sink.js';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import { causeOf } from '../support/submissions.js';
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
    expect(again.attached.lost).toEqual([{ taskId, epoch: 1, generation: 1, cause: 'cancel_grace' }]);
  });
});

describe('what a worker hears when it comes back', () => {
  it('is how far it was answered, though it missed that', async () => {
    const { world, worker, taskId } = await heldBy(1);
    await worker.say(taskId, 'accepted', 'started', 'progress');
    worker.drop();
    const again = await worker.reattach({ named: [{ taskId, epoch: 1, answeredThrough: 1 }] });
    expect(again.attached.kept).toEqual([{ taskId, epoch: 1, answeredThrough: 3 }]);
    expect(again.session.held.get(taskId)).toMatchObject({ answeredThrough: 3 });
    const ahead = await again.reattach({ named: [{ taskId, epoch: 1, answeredThrough: 7 }] });
    expect(ahead.attached.kept).toEqual([{ taskId, epoch: 1, answeredThrough: 7 }]);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running' });
  });

  const losses: readonly {
    readonly cause: LeaseLossCause;
    readonly policy?: TaskPolicyInput;
    /** What happens while the worker is away. */
    readonly away: (world: World, taskId: string) => Promise<unknown>;
  }[] = [
    { cause: 'cancel_grace', away: (world, taskId) => world.cancel(taskId, 1) },
    { cause: 'deadline', policy: { timeoutMs: 1_000 }, away: () => Promise.resolve() },
    { cause: 'attempt_timed_out', policy: { attemptTimeoutMs: 1_000 }, away: () => Promise.resolve() },
    {
      cause: 'suspended',
      away: (world, taskId) =>
        world.apply({ taskId, intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } }),
    },
    {
      cause: 'not_held',
      away: (world, taskId) => handBack(world, taskId, 'forgotten'),
    },
    {
      cause: 'superseded',
      away: async (world, taskId) => {
        const other = await openWorker(world, { name: 'other' });
        await handBack(world, taskId, 'forgotten');
        await world.settle();
        expect(other.sink.claimedIds).toEqual([taskId]);
      },
    },
  ];

  it.each(losses)('is why a claim of its own is lost: $cause', async ({ cause, policy, away }) => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k', { policy: policy ?? {} });
    const { taskId } = admission;
    await world.settle();
    await worker.say(taskId, 'accepted', 'started');
    worker.drop();
    await away(world, taskId);
    await world.clock.advance(1_100);
    const again = await worker.reattach({ named: [{ taskId, epoch: 1, answeredThrough: 2 }] });
    expect(again.attached.lost).toEqual([{ taskId, epoch: 1, generation: 1, cause }]);
  });

  it('is "superseded" of a task that nobody knows', async () => {
    const { worker } = await heldBy(1);
    worker.drop();
    const again = await worker.reattach({ named: [{ taskId: 'nobody', epoch: 4, answeredThrough: 0 }] });
    expect(again.attached.lost).toEqual([{ taskId: 'nobody', epoch: 4, generation: 0, cause: 'superseded' }]);
  });
});

function handBack(world: World, taskId: string, why: 'forgotten'): Promise<unknown> {
  const sessionId = world.published.findLast((commit) => commit.record.lease !== null)?.record.lease?.sessionId ?? '';
  return world.apply({
    taskId,
    intent: { kind: 'hand_back', lease: { sessionId, epoch: 1 }, why, cause: causeOf('recovery') },
  });
}
