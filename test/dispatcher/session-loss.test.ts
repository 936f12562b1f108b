// Sessions that end, and the leases that end with them (lifecycle.md section 7): taken by the store's own check, in
// bounded steps that a crash anywhere leaves resumable; what the old owner says afterwards is kept and never applied.

import { describe, expect, it } from 'vitest';
import { endOf } from '../contract/sample-plans.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

/** Past the quiet period of the start, with the worker alive all the time. */
async function runningTask(given: Parameters<typeof openWorker>[1] = {}) {
  const world = await World.open();
  await world.clock.advance(31_000);
  const worker = await openWorker(world, { ttlMs: 5_000, ...given });
  const { admission } = await world.admit('k');
  await world.settle();
  await worker.say(admission.taskId, 'accepted', 'started');
  return { world, worker, taskId: admission.taskId };
}

describe('a session that expires', () => {
  it('loses its leases within two seconds beyond its TTL, and another worker gets the task', async () => {
    const { world, worker, taskId } = await runningTask();
    const other = await openWorker(world, { name: 'other' });
    await world.clock.advance(4_900);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    await world.clock.advance(2_100);
    expect(worker.sink.closed).toBe('session_gone');
    expect(other.sink.claimed).toMatchObject([{ epoch: 2, record: { admission: { taskId }, attempt: 2 } }]);
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'gone' });
    expect((await world.eventTypes(taskId)).slice(-3)).toEqual(['retry_scheduled', 'requeued', 'claimed']);
    await world.assertHistories([taskId]);
  });

  it('does not expire while it is heard from', async () => {
    const { world, worker, taskId } = await runningTask();
    for (let beat = 0; beat < 20; beat++) {
      await world.clock.advance(1_500);
      expect(await worker.heartbeat()).toBe('renewed');
    }
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });

  it('has its late words refused as LEASE_LOST and kept as diagnostics, never applied', async () => {
    const { world, worker, taskId } = await runningTask();
    const other = await openWorker(world, { name: 'other' });
    await world.clock.advance(7_000);
    const before = await world.stored(taskId);
    const outcome = await worker.say(taskId, 'progress', 'completed');
    expect(outcome).toMatchObject({
      kind: 'judged',
      refused: [{ refusal: { reason: 'LEASE_LOST' } }, { refusal: { reason: 'LEASE_LOST' } }],
      committedSequence: 0,
    });
    expect(await world.stored(taskId)).toEqual(before);
    const kept = await world.real.readDiagnostics(taskId, 100);
    expect(kept.map(({ epoch, text }) => [epoch, (JSON.parse(text) as { said: { kind: string } }).said.kind])).toEqual([
      [1, 'progress'],
      [1, 'completed'],
    ]);
    await other.say(taskId, 'accepted', 'started', 'completed');
    expect(await world.stored(taskId)).toMatchObject({ status: 'completed', epoch: 2 });
  });

  it('may still settle after its time, while nobody took it', async () => {
    const { world, worker, taskId } = await runningTask();
    const held = world.probe.hold();
    const said = worker.say(taskId, 'completed');
    await held;
    await world.clock.advance(6_000);
    world.probe.release();
    expect(await said).toMatchObject({ kind: 'judged', refused: [] });
    await world.settle();
    expect(await world.stored(taskId)).toMatchObject({ status: 'completed' });
  });

  it('fails the task when no attempts are left, and settles it as cancelled under a pending request', async () => {
    const world = await World.open();
    await world.clock.advance(31_000);
    const worker = await openWorker(world, { ttlMs: 5_000, slots: 2 });
    const last = await world.admit('last', { policy: { retry: { maxAttempts: 1 } } });
    const cancelled = await world.admit('cancelled');
    await world.settle();
    for (const taskId of worker.sink.claimedIds) await worker.say(taskId, 'accepted', 'started');
    await world.cancel(cancelled.admission.taskId);
    await world.clock.advance(7_000);
    expect(await world.stored(last.admission.taskId)).toMatchObject({
      status: 'failed',
      reason: { code: 'run.failed.lease_attempts_exhausted' },
    });
    expect(await world.stored(cancelled.admission.taskId)).toMatchObject({
      status: 'cancelled',
      ownerStopped: false,
      reason: { code: 'run.cancelled.owner_lost' },
    });
  });

  it('gives back the attempt of a claim that it had not accepted', async () => {
    const world = await World.open();
    await world.clock.advance(31_000);
    await openWorker(world, { ttlMs: 2_000 });
    const { admission } = await world.admit('k');
    await world.clock.advance(4_000);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued', attempt: 0, epoch: 1 });
  });
});

describe('a stream that ends', () => {
  it('of a worker without linger ends the session and its leases at once', async () => {
    const { world, worker, taskId } = await runningTask({ lingerMs: 0 });
    const other = await openWorker(world, { name: 'other' });
    worker.drop();
    await world.settle();
    expect(other.sink.claimedIds).toEqual([taskId]);
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'gone' });
  });

  it('of any other worker is not a death: the lease stays for its TTL', async () => {
    const { world, worker, taskId } = await runningTask();
    worker.drop();
    await world.clock.advance(3_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    await world.clock.advance(4_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });

  it('that was replaced by a newer one ends nothing', async () => {
    const { world, worker, taskId } = await runningTask({ lingerMs: 0 });
    const again = await worker.reattach();
    worker.drop();
    await world.settle();
    expect(await again.sayIn(taskId, 1, 'completed')).toMatchObject({ kind: 'judged', refused: [] });
  });
});

describe('many sessions at once', () => {
  it('lose their leases in a number of reads that grows with them, not with their square', async () => {
    const world = await World.open();
    await world.clock.advance(31_000);
    const count = 300;
    const workers = await Promise.all(
      Array.from({ length: count }, (_, n) => openWorker(world, { name: `w${String(n)}`, ttlMs: 2_000 })),
    );
    const tasks = await Promise.all(Array.from({ length: count }, (_, n) => world.admit(`k${String(n)}`)));
    await world.settle();
    await Promise.all(workers.map((worker) => worker.say(worker.sink.claimedIds[0] ?? '', 'accepted', 'started')));
    const reads = world.probe.calls.get('tasksOfSession') ?? 0;
    await world.clock.advance(4_000);
    expect((world.probe.calls.get('tasksOfSession') ?? 0) - reads).toBeLessThanOrEqual(count + 16);
    for (const { admission } of tasks) expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued' });
    expect(await world.real.leaseHolders()).toEqual([]);
  });
});

describe('a crash between the end of a session and of its leases', () => {
  it('is finished by the next process', async () => {
    const { world, worker, taskId } = await runningTask();
    // The flip is committed, and then the process is gone.
    world.kill();
    await world.real.commit({
      batchId: 'flip',
      plans: [
        {
          recordReads: [],
          sessionReads: [],
          records: [],
          sessions: [{ kind: 'end', sessionId: worker.sessionId, attachment: 1, end: endOf() }],
          ledger: [],
          diagnostics: [],
        },
      ],
    });
    expect(await world.stored(taskId)).toMatchObject({ status: 'running' });
    const restarted = await world.replica();
    const other = await openWorker(restarted, { name: 'other' });
    await world.clock.advance(1_000);
    expect(other.sink.claimed).toMatchObject([{ epoch: 2, record: { admission: { taskId } } }]);
  });

  it('half-way through the leases is finished too', async () => {
    const world = await World.open();
    await world.clock.advance(31_000);
    const worker = await openWorker(world, { ttlMs: 2_000, slots: 600 });
    const tasks = await Promise.all(Array.from({ length: 600 }, (_, n) => world.admit(`k${String(n)}`)));
    await world.settle();
    await Promise.all(worker.sink.claimedIds.map((taskId) => worker.say(taskId, 'accepted')));
    let commits = 0;
    world.probe.beforeCommit = async (batch) => {
      const takes = batch.plans.some(({ records }) => records.some(({ index }) => index.leaseSession === null));
      if (takes && ++commits > 1) world.probe.down = true;
    };
    await world.clock.advance(4_000);
    const left = await world.real.tasksOfSession(worker.sessionId, 0, 1_000);
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(600);
    world.kill();
    await world.replica();
    await world.clock.advance(1_000);
    expect(await world.real.leaseHolders()).toEqual([]);
    for (const { admission } of tasks) expect((await world.stored(admission.taskId)).status).toBe('queued');
  });

  it('when the store fails in between is taken up again at a later step', async () => {
    const { world, taskId } = await runningTask();
    world.probe.beforeCommit = async (batch) => {
      if (!batch.plans.some(({ sessions }) => sessions.some(({ kind }) => kind === 'expire'))) return;
      world.probe.beforeCommit = () => Promise.resolve();
      world.probe.failAfter(1, 'unavailable');
    };
    await world.clock.advance(5_600);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', epoch: 1 });
    await world.clock.advance(1_000);
    expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
  });
});
