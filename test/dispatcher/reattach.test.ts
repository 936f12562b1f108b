// Coming back to a session (lifecycle.md section 7): epochs are kept, what was lost is named, the older stream can do
// nothing more, and whoever has no right to the session learns nothing about it.

import { describe, expect, it } from 'vitest';
import type { LeasedTask } from '../../src/store/task-store.js';
import { StoreError } from '../../src/store/store-error.js';
import { RecordingSink } from '../support/recording-sink.js';
import { causeOf, subscription } from '../support/submissions.js';
import { type WorkerGiven, helloOf, openWorker } from '../support/test-worker.js';
import { Signal } from '../support/turns.js';
import { World } from '../support/world.js';

async function holding(tasks: number, given: WorkerGiven = {}) {
  const world = await World.open();
  const worker = await openWorker(world, { slots: tasks, ...given });
  const admitted = await Promise.all(Array.from({ length: tasks }, (_, n) => world.admit(`k${String(n)}`)));
  await world.settle();
  const taskIds = admitted.map(({ admission }) => admission.taskId);
  for (const taskId of taskIds) await worker.say(taskId, 'accepted', 'started');
  return { world, worker, taskIds };
}

describe('a worker that comes back', () => {
  it('keeps its claims with their epochs and speaks on where it was', async () => {
    const { world, worker, taskIds } = await holding(2);
    worker.drop();
    const again = await worker.reattach();
    expect(again.attached.kept.map(({ taskId, epoch }) => [taskId, epoch])).toEqual(taskIds.map((id) => [id, 1]));
    expect(again.attached.lost).toEqual([]);
    expect(again.attachment).toBe(2);
    const [taskId = ''] = taskIds;
    expect(await again.sayIn(taskId, 1, 'progress', 'completed')).toMatchObject({ judgedThrough: 4, refused: [] });
    expect(await world.stored(taskId)).toMatchObject({ status: 'completed', epoch: 1, attempt: 1 });
  });

  it('is told which of the claims it names are no longer its own', async () => {
    const { world, worker, taskIds } = await holding(2);
    worker.drop();
    const [gone = '', kept = ''] = taskIds;
    await world.cancel(gone, 1);
    await world.clock.advance(1_100);
    const named = [
      { taskId: gone, epoch: 1, answeredThrough: 2 },
      { taskId: kept, epoch: 1, answeredThrough: 2 },
      { taskId: kept + '-unknown', epoch: 1, answeredThrough: 0 },
    ];
    const again = await worker.reattach({ named });
    expect(again.attached.kept.map(({ taskId }) => taskId)).toEqual([kept]);
    expect(again.attached.lost.map(({ taskId }) => taskId)).toEqual([gone, kept + '-unknown']);
  });

  it('gets the pending cancels as its first frame, before anything new', async () => {
    const { world, worker, taskIds } = await holding(1);
    const [taskId = ''] = taskIds;
    await world.admit('waiting');
    worker.drop();
    await world.cancel(taskId, 60_000);
    const again = await worker.reattach({ given: { slots: 2 } });
    await world.settle();
    expect(again.sink.frames.map((frame) => frame.kind)).toEqual(['cancels', 'claims']);
    expect(again.sink.cancelled).toMatchObject([{ taskId, epoch: 1 }]);
  });

  it('never gets more than its slots, though what it holds is still being read', async () => {
    const { world, worker, taskIds } = await holding(2);
    worker.drop();
    const replica = await world.replica();
    for (let n = 0; n < 5; n++) await world.admit(`more-${String(n)}`);
    const read = new Signal();
    const real = world.real.tasksOfSession.bind(world.real);
    world.real.tasksOfSession = async (...args): Promise<readonly LeasedTask[]> => {
      await read.reached;
      return real(...args);
    };
    const coming = worker.reattach({ world: replica });
    await replica.clock.advance(1_000);
    read.reach();
    const again = await coming;
    await replica.clock.advance(1_000);
    expect(again.sink.claimed).toEqual([]);
    expect([...again.session.held.keys()].sort()).toEqual([...taskIds].sort());
  });

  it('does not hold for ever what ended while it was being read', async () => {
    const { world, worker, taskIds } = await holding(1);
    const [taskId = ''] = taskIds;
    worker.drop();
    const read = new Signal();
    const asked = new Signal();
    const real = world.real.tasksOfSession.bind(world.real);
    world.real.tasksOfSession = async (...args): Promise<readonly LeasedTask[]> => {
      const tasks = await real(...args);
      asked.reach();
      await read.reached;
      return tasks;
    };
    const coming = worker.reattach();
    await asked.reached;
    await world.apply({ taskId, intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } });
    read.reach();
    const again = await coming;
    expect(again.attached.lost.map((claim) => claim.taskId)).toEqual([taskId]);
    expect([again.session.held.size, again.session.credit]).toEqual([0, 1]);
  });

  it('with another subscription is given what it serves now', async () => {
    const { world, worker } = await holding(1, { serves: subscription({ queues: ['default'] }), slots: 3 });
    const again = await worker.reattach({ given: { slots: 3, serves: subscription({ queues: ['new'] }) } });
    await world.admit('old', { queue: 'default' });
    const { admission } = await world.admit('new', { queue: 'new' });
    await world.settle();
    expect(again.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('to another process is sent what that process decides, and draining stays draining', async () => {
    const { world, worker, taskIds } = await holding(1, { slots: 2 });
    const other = await world.replica();
    await world.dispatcher.drain(worker.session);
    const again = await worker.reattach({ world: other });
    await other.cancel(taskIds[0] ?? '');
    await other.admit('more');
    await other.settle();
    expect(again.sink.frames.map((frame) => frame.kind)).toEqual(['cancels']);
  });

  it('twice at once, because its first answer was lost, is let in', async () => {
    const { worker } = await holding(1);
    worker.drop();
    const [first, second] = await Promise.allSettled([worker.reattach(), worker.reattach()]);
    expect(second).toMatchObject({ status: 'fulfilled', value: { attachment: 3 } });
    if (first.status === 'fulfilled') expect(first.value.sink.closed).toBe('superseded');
  });

  it('while its other try is still being read in, makes that one stale', async () => {
    const { world, worker, taskIds } = await holding(1, { slots: 1 });
    worker.drop();
    const read = new Signal();
    const asked = new Signal();
    const real = world.real.tasksOfSession.bind(world.real);
    world.real.tasksOfSession = async (...args): Promise<readonly LeasedTask[]> => {
      const tasks = await real(...args);
      world.real.tasksOfSession = real;
      asked.reach();
      await read.reached;
      return tasks;
    };
    const first = worker.reattach({ given: { slots: 9 } });
    await asked.reached;
    const second = await worker.reattach();
    read.reach();
    await expect(first).rejects.toThrow('SESSION_GONE');
    expect([second.session.credit, second.sink.closed]).toEqual([0, null]);
    expect([...second.session.held.keys()]).toEqual(taskIds);
  });

  it('has the numbers it was answered counted as used: a refused event leaves no gap', async () => {
    const { worker, taskIds } = await holding(1);
    const [taskId = ''] = taskIds;
    expect(await worker.say(taskId, 'accepted')).toMatchObject({ refused: [{ refusal: { reason: 'ILLEGAL_EVENT' } }] });
    worker.drop();
    const again = await worker.reattach({ named: [{ taskId, epoch: 1, answeredThrough: 3 }] });
    expect(await again.sayIn(taskId, 1, 'completed')).toMatchObject({ judgedThrough: 4, refused: [] });
  });
});

describe('numbers on one stream', () => {
  it.each(['one batch', 'two batches'])('go on after a refused event, in %s', async (when) => {
    const { world, worker, taskIds } = await holding(1);
    const [taskId = ''] = taskIds;
    const held = when === 'two batches' ? world.probe.hold() : null;
    if (held !== null) {
      void world.submit('something-else');
      await held;
    }
    const said = [worker.say(taskId, 'accepted'), worker.say(taskId, 'progress'), worker.say(taskId, 'completed')];
    world.probe.release();
    expect(await Promise.all(said)).toMatchObject([
      { judgedThrough: 3, refused: [{ seq: 3, refusal: { reason: 'ILLEGAL_EVENT' } }] },
      { judgedThrough: 4, refused: [] },
      { judgedThrough: 5, refused: [] },
    ]);
  });

  it('go on after a refused event whose answer was still on its way', async () => {
    const { world, worker, taskIds } = await holding(1);
    const [taskId = ''] = taskIds;
    const held = world.probe.hold();
    const first = Promise.all([worker.say(taskId, 'accepted'), world.cancel(taskId)]);
    await held;
    const second = worker.say(taskId, 'completed');
    world.probe.release();
    expect((await first)[0]).toMatchObject({ refused: [{ seq: 3 }] });
    expect(await second).toMatchObject({ judgedThrough: 4, refused: [] });
  });
});

describe('the older stream', () => {
  it('is closed, and can neither report nor heartbeat', async () => {
    const { world, worker, taskIds } = await holding(1);
    const again = await worker.reattach();
    expect(worker.sink.closed).toBe('superseded');
    expect(await worker.say(taskIds[0] ?? '', 'completed')).toMatchObject({ refusal: { reason: 'SESSION_GONE' } });
    const written = world.probe.plans().length;
    expect(await worker.heartbeat()).toBe('gone');
    expect(world.probe.plans()).toHaveLength(written);
    expect(again.sink.closed).toBeNull();
    expect(await again.heartbeat()).toBe('renewed');
    expect(await world.stored(taskIds[0] ?? '')).toMatchObject({ status: 'running' });
  });

  it('in another process is closed when that process finds out, and gets no claims from it', async () => {
    const { world, worker } = await holding(1, { slots: 5 });
    const other = await world.replica();
    const again = await worker.reattach({ world: other });
    worker.sink.frames.length = 0;
    const { admission } = await world.admit('contested');
    await world.clock.advance(6_000);
    expect(worker.sink.claimed).toEqual([]);
    expect(worker.sink.closed).toBe('superseded');
    expect(again.sink.claimedIds).toEqual([admission.taskId]);
  });
});

describe('a session is gone, in one and the same answer, when', () => {
  async function attach(change: (worker: Awaited<ReturnType<typeof openWorker>>) => [id: string, secret: string]) {
    const { world, worker } = await holding(1);
    worker.drop();
    const [id, secret] = change(worker);
    return world.dispatcher.reattach(id, secret, [], helloOf(), new RecordingSink());
  }

  it('its secret is wrong, it is unknown, or it is too late', async () => {
    const wrong = await attach((worker) => [worker.sessionId, worker.secret.replace(/^./, '!')]);
    const empty = await attach((worker) => [worker.sessionId, '']);
    const unknown = await attach((worker) => [worker.sessionId + 'x', worker.secret]);
    const { world, worker } = await holding(1);
    await world.clock.advance(61_000);
    const late = await world.dispatcher.reattach(worker.sessionId, worker.secret, [], helloOf(), new RecordingSink());
    expect(wrong).toMatchObject({ ok: false, refusal: { reason: 'SESSION_GONE' } });
    for (const answer of [empty, unknown, late]) expect(answer).toEqual(wrong);
  });

  it('an unknown one with the right secret for its id too', async () => {
    const { world } = await holding(1);
    const secret = world.authority.tokens.ofSession('never-opened');
    const answer = await world.dispatcher.reattach('never-opened', secret, [], helloOf(), new RecordingSink());
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'SESSION_GONE' } });
  });

  it('but an outage is not said to be that', async () => {
    const { world, worker } = await holding(1);
    world.probe.down = true;
    const answer = await world.dispatcher.reattach(worker.sessionId, worker.secret, [], helloOf(), new RecordingSink());
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'STORE_UNAVAILABLE' } });
  });
});

describe('a re-attach that fails half-way', () => {
  it('leaves no stream behind: nothing is sent to one that was refused', async () => {
    const { world, worker, taskIds } = await holding(1, { slots: 2 });
    worker.drop();
    const real = world.real.tasksOfSession.bind(world.real);
    world.real.tasksOfSession = () => Promise.reject(new StoreError('unavailable', 'for a moment'));
    const sink = new RecordingSink();
    const named = worker.holding;
    const answer = await world.dispatcher.reattach(worker.sessionId, worker.secret, named, helloOf(), sink);
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'STORE_UNAVAILABLE' } });
    expect(worker.session.attached).toBe(false);
    world.real.tasksOfSession = real;
    await world.cancel(taskIds[0] ?? '', 60_000);
    world.dispatcher.setSlots(worker.session, 2);
    await world.admit('more');
    await world.settle();
    expect(sink.frames).toEqual([]);
    const again = await worker.reattach({ named: [{ taskId: taskIds[0] ?? '', epoch: 1, answeredThrough: 2 }] });
    await world.settle();
    expect(again.sink.frames.map(({ kind }) => kind)).toContain('cancels');
  });
});
