// From a committed claim to its worker (lifecycle.md section 7): sent after the commit, handed back when it could not
// be sent or was not accepted, with growing pauses, and given up at the tenth time; cancels follow their claims.

import { describe, expect, it } from 'vitest';
import { DEFAULT_ACCEPT_TIMEOUT_MS } from '../../src/authority/authority.js';
import type { StoredEvent } from '../../src/store/task-store.js';
import { causeOf } from '../support/submissions.js';
import { failure, openWorker } from '../support/test-worker.js';
import { Signal } from '../support/turns.js';
import { World } from '../support/world.js';

async function worldWithWorker() {
  const world = await World.open();
  const worker = await openWorker(world);
  const warm = await world.admit('warm-up');
  await world.settle();
  await worker.say(warm.admission.taskId, 'accepted', 'started', 'completed');
  await world.settle();
  worker.sink.frames.length = 0;
  return { world, worker };
}

describe('a claim', () => {
  it('carries the record as it was committed, its epoch, its tokens and its deadline', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k', { policy: { timeoutMs: 60_000, attemptTimeoutMs: 10_000 } });
    await world.settle();
    expect(worker.sink.claimed).toMatchObject([
      {
        record: { status: 'running', attempt: 1, lease: { sessionId: worker.sessionId, acceptedAt: null } },
        epoch: 1,
        checkpointJson: null,
        inputJson: null,
        deadlineAt: world.clock.nowMs() + 10_000,
        ...world.authority.tokens.ofClaim(admission.taskId, 1),
      },
    ]);
  });

  it('of a later attempt brings the checkpoint and the input of a resume', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    const { taskId } = admission;
    await world.settle();
    await worker.say(taskId, 'accepted', 'started', { kind: 'checkpoint', checkpointJson: '{"next":2}' });
    await worker.say(taskId, { kind: 'suspended', reason: null });
    const cause = causeOf('operator');
    const resume = { kind: 'resume', newGenerationId: null, spareGenerationId: 'x', inputJson: '"go"', cause } as const;
    await world.apply({ taskId, intent: resume });
    await world.settle();
    expect(worker.sink.claimed.at(-1)).toMatchObject({ epoch: 2, checkpointJson: '{"next":2}', inputJson: '"go"' });
  });

  it('several of one turn are one frame', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 5 });
    await Promise.all(['a', 'b', 'c'].map((key) => world.admit(key)));
    await world.settle();
    expect(worker.sink.frames.map((frame) => frame.kind)).toEqual(['claims']);
    expect(worker.sink.claimed).toHaveLength(3);
  });

  it('is accepted once: the time to accept does not end it afterwards', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    await world.settle();
    await worker.say(admission.taskId, 'accepted');
    await world.clock.advance(DEFAULT_ACCEPT_TIMEOUT_MS + 2_000);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'running', epoch: 1 });
  });
});

describe('a claim that could not be sent', () => {
  it('is handed back at once, its attempt given back, and goes to a worker that takes it', async () => {
    const { world, worker } = await worldWithWorker();
    const other = await openWorker(world, { name: 'other' });
    worker.sink.open = false;
    const tasks = await Promise.all(['a', 'b'].map((key) => world.admit(key)));
    await world.settle();
    const undelivered = tasks.find(({ lease }) => lease?.sessionId === worker.sessionId);
    const { taskId } = undelivered?.admission ?? { taskId: '' };
    expect(await world.eventTypes(taskId)).toEqual(['submitted', 'claimed', 'retry_scheduled', 'requeued']);
    expect(await world.stored(taskId)).toMatchObject({
      status: 'queued',
      attempt: 0,
      epoch: 1,
      reason: { code: 'run.requeued.claim_undelivered' },
    });
    await other.say(other.sink.claimedIds[0] ?? '', 'accepted', 'started', 'completed');
    await world.settle();
    expect(other.sink.claimedIds.at(-1)).toBe(taskId);
    expect(await world.stored(taskId)).toMatchObject({ status: 'running', attempt: 1, epoch: 2 });
  });

  it('is the last its stream gets: tasks do not wear themselves out on a stream that takes nothing', async () => {
    const { world, worker } = await worldWithWorker();
    worker.sink.open = false;
    const { admission } = await world.admit('k');
    await world.clock.advance(20_000);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued', handBacks: 1 });
    const again = await worker.reattach();
    await world.settle();
    expect(again.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('because its worker did not read is its last only until the worker has caught up', async () => {
    const { world, worker } = await worldWithWorker();
    worker.sink.open = false;
    const { admission } = await world.admit('k');
    await world.settle();
    expect([worker.session.credit, worker.sink.claimed]).toEqual([0, []]);
    worker.sink.open = true;
    world.dispatcher.takesClaimsAgain(worker.session, worker.sink);
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('because its session lingers without a stream is handed back too', async () => {
    const { world, worker } = await worldWithWorker();
    const held = world.probe.hold();
    const submitted = world.admit('k');
    await held;
    worker.drop();
    world.probe.release();
    const { admission } = await submitted;
    await world.settle();
    expect(await world.eventTypes(admission.taskId)).toEqual(['submitted', 'claimed', 'retry_scheduled', 'requeued']);
  });

  it('because its payload cannot be read is left to its timer', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    const { taskId } = admission;
    await world.settle();
    await worker.say(taskId, 'accepted', 'started', { kind: 'checkpoint', checkpointJson: '{}' });
    world.real.readEvent = () => Promise.reject(new Error('unreadable'));
    await worker.say(taskId, { kind: 'failed', ending: failure(), retryAfterMs: 0 });
    await world.clock.advance(1_100);
    expect(worker.sink.claimed).toHaveLength(1);
    expect(world.errors.length).toBeGreaterThan(0);
    await world.clock.advance(20_000);
    await worker.heartbeat();
    await world.clock.advance(10_000);
    expect((await world.eventTypes(taskId)).filter((type) => type === 'retry_scheduled')).toHaveLength(2);
  });
});

describe('a claim that nobody accepts', () => {
  it('is handed back when its time to accept has passed, and its worker is told', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    await world.settle();
    // The quiet period after the start excuses everybody for one TTL.
    await world.clock.advance(30_000);
    await worker.heartbeat();
    await world.clock.advance(1_000);
    expect(worker.sink.lost).toMatchObject([{ taskId: admission.taskId, epoch: 1, cause: 'not_accepted' }]);
    expect(await world.stored(admission.taskId)).toMatchObject({ epoch: 2, attempt: 1 });
  });

  it('circles with growing pauses from the third time on, and fails at the tenth', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    for (let beat = 0; beat < 40; beat++) {
      await world.clock.advance(9_800);
      await worker.heartbeat();
    }
    const events = await world.events(admission.taskId);
    const pauses = events.flatMap((event) =>
      event.type === 'reeve.task.retry_scheduled' ? [event.data.retryAt - event.at] : [],
    );
    expect(pauses).toEqual([0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
    expect(events.filter(({ type }) => type === 'reeve.task.claimed')).toHaveLength(10);
    expect(await world.stored(admission.taskId)).toMatchObject({
      status: 'failed',
      attempt: 1,
      epoch: 10,
      reason: { code: 'run.failed.undeliverable' },
    });
    expect(worker.session.credit).toBe(1);
  });
});

describe('a cancel', () => {
  it('reaches the worker after its commit, with what is left of the grace', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    await world.settle();
    const held = world.probe.hold();
    const cancelling = world.cancel(admission.taskId, 3_000);
    await held;
    await world.settle();
    expect(worker.sink.cancelled).toEqual([]);
    world.probe.release();
    await cancelling;
    await world.settle();
    expect(worker.sink.cancelled).toMatchObject([{ taskId: admission.taskId, epoch: 1, graceMs: 3_000 }]);
  });

  it('in the very commit of the claim comes after it', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k', { taskId: 'order-17' });
    await Promise.all([world.cancel(admission.taskId)]);
    await world.settle();
    expect(worker.sink.frames.map((frame) => frame.kind)).toEqual(['claims', 'cancels']);
  });

  it('that comes while the payloads of its claim are being read follows the claim, and is not lost', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    const { taskId } = admission;
    await world.settle();
    await worker.say(taskId, 'accepted', 'started', { kind: 'checkpoint', checkpointJson: '{}' });
    const read = new Signal();
    const real = world.real.readEvent.bind(world.real);
    world.real.readEvent = async (...args): Promise<StoredEvent | null> => {
      await read.reached;
      return real(...args);
    };
    await worker.say(taskId, { kind: 'suspended', reason: null });
    const cause = causeOf('operator');
    const resume = { kind: 'resume', newGenerationId: null, spareGenerationId: 'x', inputJson: null, cause } as const;
    await world.apply({ taskId, intent: resume });
    await world.settle();
    worker.sink.frames.length = 0;
    await world.cancel(taskId);
    await world.settle();
    expect(worker.sink.frames).toEqual([]);
    read.reach();
    await world.settle();
    expect(worker.sink.frames.map((frame) => frame.kind)).toEqual(['claims', 'cancels']);
    expect(worker.sink.cancelled).toMatchObject([{ taskId, epoch: 2 }]);
  });

  it('of a task that waits sends nobody anything', async () => {
    const { world, worker } = await worldWithWorker();
    await world.admit('busy');
    const { admission } = await world.admit('k');
    await world.settle();
    worker.sink.frames.length = 0;
    await world.cancel(admission.taskId);
    await world.settle();
    expect(worker.sink.frames).toEqual([]);
  });
});

describe('the end of a lease', () => {
  it('that the worker brought about itself is not told to it', async () => {
    const { world, worker } = await worldWithWorker();
    const { admission } = await world.admit('k');
    await world.settle();
    await worker.say(admission.taskId, 'accepted', 'started', 'fatal');
    await world.settle();
    expect([worker.sink.lost, worker.session.credit]).toEqual([[], 1]);
  });

  it.each([
    ['an operator suspends it', 'suspended'],
    ['its deadline passes', 'deadline'],
    ['its attempt takes too long', 'attempt_timed_out'],
    ['it makes no progress', 'no_progress'],
    ['the grace of a cancel passes', 'cancel_grace'],
  ] as const)('is told when %s', async (how, cause) => {
    const { world, worker } = await worldWithWorker();
    const policy = {
      ...(cause === 'deadline' ? { timeoutMs: 40_000 } : {}),
      ...(cause === 'attempt_timed_out' ? { attemptTimeoutMs: 40_000 } : {}),
      ...(cause === 'no_progress' ? { progressTimeoutMs: 40_000 } : {}),
    };
    const { admission } = await world.admit('k', { policy });
    const { taskId } = admission;
    await world.settle();
    await worker.say(taskId, 'accepted', 'started');
    if (cause === 'suspended') {
      await world.apply({ taskId, intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } });
    }
    if (cause === 'cancel_grace') await world.cancel(taskId, 40_000);
    for (let beat = 0; beat < 5; beat++) {
      await world.clock.advance(9_000);
      await worker.heartbeat();
    }
    expect(worker.sink.lost[0], how).toMatchObject({ taskId, epoch: 1, cause });
  });
});
