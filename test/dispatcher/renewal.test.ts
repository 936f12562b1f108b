// Heartbeats (lifecycle.md section 7): many sessions in few transactions, no task row written; claims that a worker no
// longer names go back; and the silence that the service itself caused proves nothing.

import { describe, expect, it } from 'vitest';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

async function runningTask(ttlMs = 5_000) {
  const world = await World.open();
  await world.clock.advance(31_000);
  const worker = await openWorker(world, { ttlMs });
  const { admission } = await world.admit('k');
  await world.settle();
  await worker.say(admission.taskId, 'accepted', 'started');
  return { world, worker, taskId: admission.taskId };
}

describe('heartbeats', () => {
  it('of a thousand sessions cost a few transactions and no task row', async () => {
    const world = await World.open();
    const workers = await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => openWorker(world, { name: `w${String(n)}` })),
    );
    await world.admit('k');
    await world.settle();
    const before = world.probe.batches.length;
    const renewals = Promise.all(
      workers.map((worker) => world.dispatcher.heartbeat(worker.session, worker.attachment, worker.holding)),
    );
    await world.clock.advance(200);
    expect(new Set(await renewals)).toEqual(new Set(['renewed']));
    const batches = world.probe.batches.slice(before);
    expect(batches.length).toBeLessThanOrEqual(4);
    expect(batches.flatMap(({ plans }) => plans.flatMap(({ records }) => records))).toEqual([]);
    expect(batches.flatMap(({ plans }) => plans.flatMap(({ sessions }) => sessions))).toHaveLength(1_000);
  });

  it('of one session that come together are one renewal', async () => {
    const { world, worker } = await runningTask();
    const before = world.probe.plans().length;
    const renewals = [1, 2, 3].map(() => world.dispatcher.heartbeat(worker.session, 1, worker.holding));
    await world.clock.advance(200);
    expect(await Promise.all(renewals)).toEqual(['renewed', 'renewed', 'renewed']);
    expect(world.probe.plans().length - before).toBe(1);
  });

  it('are answered after the renewal is committed, and move the expiry by one TTL', async () => {
    const { world, worker } = await runningTask();
    const held = world.probe.hold();
    let answered = false;
    const beat = world.dispatcher.heartbeat(worker.session, 1, worker.holding).then(() => (answered = true));
    const passing = world.clock.advance(200);
    await held;
    await passing;
    expect(answered).toBe(false);
    const renewedAt = world.clock.nowMs();
    world.probe.release();
    await beat;
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ expiresAt: renewedAt + 5_000 });
  });

  it('of a session that is gone are told so', async () => {
    const { world, worker } = await runningTask();
    await world.clock.advance(7_000);
    expect(await worker.heartbeat()).toBe('gone');
  });

  it('that the store could not keep are told that they failed, and cost nothing', async () => {
    const { world, worker, taskId } = await runningTask();
    world.probe.failNext('unavailable');
    expect(await worker.heartbeat()).toBe('failed');
    expect(await worker.heartbeat()).toBe('renewed');
    expect(await world.stored(taskId)).toMatchObject({ status: 'running' });
  });
});

describe('a claim that the heartbeats do not name', () => {
  it('goes back after one TTL, not before, and its worker is told', async () => {
    const { world, worker, taskId } = await runningTask();
    for (let beat = 0; beat < 3; beat++) {
      await world.clock.advance(1_300);
      await worker.heartbeat([]);
    }
    expect(await world.stored(taskId)).toMatchObject({ epoch: 1 });
    await world.clock.advance(1_300);
    await worker.heartbeat([]);
    expect(worker.sink.lost).toMatchObject([{ taskId, epoch: 1, cause: 'not_held' }]);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 2, attempt: 2 });
  });

  it('by its epoch counts as not named', async () => {
    const { world, worker, taskId } = await runningTask();
    for (let beat = 0; beat < 5; beat++) {
      await world.clock.advance(1_300);
      await worker.heartbeat([{ taskId, epoch: 99 }]);
    }
    expect(await world.stored(taskId)).toMatchObject({ epoch: 2 });
  });

  it('stays when it is named now and then', async () => {
    const { world, worker, taskId } = await runningTask();
    for (let beat = 0; beat < 12; beat++) {
      await world.clock.advance(1_300);
      await worker.heartbeat(beat % 3 === 0 ? worker.holding : []);
    }
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });

  it('because the service stood still is excused for one TTL', async () => {
    const { world, worker, taskId } = await runningTask();
    await world.clock.stall(20_000);
    await worker.heartbeat([]);
    expect(await world.stored(taskId)).toMatchObject({ epoch: 1 });
    for (let beat = 0; beat < 4; beat++) {
      await world.clock.advance(1_300);
      await worker.heartbeat([]);
    }
    expect(await world.stored(taskId)).toMatchObject({ epoch: 2 });
  });

  it('and that another process has ended frees its slot here', async () => {
    const { world, worker, taskId } = await runningTask();
    const other = await world.replica({ dispatcher: null, timers: 'stopped' });
    await other.cancel(taskId, 1);
    await world.clock.advance(1);
    await other.apply({ taskId, intent: { kind: 'tick', quietSince: 0, chance: 0 } });
    expect([(await world.stored(taskId)).status, worker.session.credit]).toEqual(['cancelled', 0]);
    for (let beat = 0; beat < 5; beat++) {
      await world.clock.advance(1_300);
      await worker.heartbeat([]);
    }
    expect(worker.session.credit).toBe(1);
  });
});

describe('the silence that the service caused', () => {
  it('at a start excuses every session for one TTL of its own', async () => {
    const { world, worker, taskId } = await runningTask();
    await world.clock.advance(4_000);
    world.kill();
    await world.clock.advance(60_000);
    const restarted = await world.replica();
    await world.clock.advance(4_900);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    const again = await worker.reattach({ world: restarted });
    await again.heartbeat();
    await world.clock.advance(4_000);
    expect(await again.sayIn(taskId, 1, 'completed')).toMatchObject({ refused: [] });
  });

  it('at a start does not excuse for longer than that', async () => {
    const { world, taskId } = await runningTask();
    world.kill();
    await world.clock.advance(60_000);
    await world.replica();
    await world.clock.advance(5_700);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it('by a stall of its own process costs no living worker its lease', async () => {
    const { world, worker, taskId } = await runningTask();
    await world.clock.stall(20_000);
    await world.clock.advance(1_000);
    expect(await worker.heartbeat()).toBe('renewed');
    await world.clock.advance(4_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });

  it.each([3_600_000, -3_600_000])('by a step of the clock of %d ms costs no lease either', async (stepMs) => {
    const { world, worker, taskId } = await runningTask();
    world.clock.step(stepMs);
    await world.clock.advance(1_500);
    expect(await worker.heartbeat()).toBe('renewed');
    await world.clock.advance(3_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });

  it.each(['while it runs', 'while it is down'])(
    'does not give the dead hours when the clock is set back %s',
    async (when) => {
      const { world, taskId } = await runningTask();
      if (when === 'while it is down') world.kill();
      world.clock.step(-10_800_000);
      if (when === 'while it is down') await world.replica();
      await world.clock.advance(7_500);
      expect(await world.stored(taskId)).toMatchObject({ status: 'queued', epoch: 1 });
    },
  );

  it('by an outage of the store costs no living worker its lease', async () => {
    const { world, worker, taskId } = await runningTask();
    world.probe.down = true;
    for (let beat = 0; beat < 30; beat++) {
      await world.clock.advance(1_800);
      expect(await worker.heartbeat()).toBe('failed');
    }
    world.probe.down = false;
    await world.clock.advance(1_500);
    expect(await worker.heartbeat()).toBe('renewed');
    await world.clock.advance(3_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    expect(await worker.say(taskId, 'completed')).toMatchObject({ refused: [] });
  });

  it('by an outage excuses a claim that could not be accepted in it', async () => {
    const { world, worker, taskId } = await runningTask(30_000);
    await worker.say(taskId, 'completed');
    const { admission } = await world.admit('late');
    await world.settle();
    world.probe.down = true;
    await world.clock.advance(8_000);
    expect((await worker.say(admission.taskId, 'accepted')).kind).toBe('refused');
    world.probe.down = false;
    await world.clock.advance(3_000);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'running', epoch: 1 });
    expect(await worker.sayIn(admission.taskId, 2, 'accepted')).toBeDefined();
  });

  it('does not last: who stays silent afterwards loses its lease one TTL later', async () => {
    const { world, taskId } = await runningTask();
    await world.clock.stall(20_000);
    await world.clock.advance(4_900);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running' });
    await world.clock.advance(1_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it('is not mistaken: small steps and short pauses excuse nobody', async () => {
    const { world, taskId } = await runningTask();
    for (let n = 0; n < 12; n++) {
      world.clock.step(n % 2 === 0 ? 900 : -900);
      await world.clock.stall(490);
    }
    await world.clock.advance(1_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });
});
