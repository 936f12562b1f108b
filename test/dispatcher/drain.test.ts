// Stopping: after beginDrain there is no claim, everything else goes on; a session that drains gets nothing more. And
// nothing is remembered of sessions that are gone.

import { describe, expect, it } from 'vitest';
import { Pool, subscriptionKey } from '../../src/dispatcher/pool.js';
import { WorkSession } from '../../src/dispatcher/work-session.js';
import type { CommitPlan } from '../../src/store/commit-plan.js';
import { RecordingSink } from '../support/recording-sink.js';
import { subscription } from '../support/submissions.js';
import { helloOf, openWorker } from '../support/test-worker.js';
import { Signal } from '../support/turns.js';
import { World } from '../support/world.js';

/** The next plan of this kind loses as if its session were not what it was. */
function loseOnce(world: World, sessionId: string, which: (plan: CommitPlan) => boolean): void {
  world.probe.overrule = (plan) => {
    if (!which(plan)) return null;
    world.probe.overrule = () => null;
    return { kind: 'conflict', subject: 'session', id: sessionId };
  };
}

describe('after beginDrain', () => {
  it('nothing is claimed, whatever becomes ready or free; leases, reports and time-outs go on', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 2 });
    const running = await world.admit('running');
    await world.settle();
    await worker.say(running.admission.taskId, 'accepted', 'started');
    world.dispatcher.beginDrain(1_000, 5_000);
    expect(worker.sink.frames.at(-1)).toEqual({ kind: 'drain' });
    const waiting = await world.admit('waiting');
    expect(await worker.say(running.admission.taskId, 'completed')).toMatchObject({ refused: [] });
    world.dispatcher.setSlots(worker.session, 10);
    await world.clock.advance(12_000);
    expect(await worker.heartbeat()).toBe('renewed');
    expect(worker.sink.claimed).toHaveLength(1);
    expect(await world.stored(waiting.admission.taskId)).toMatchObject({ status: 'queued', epoch: 0 });
  });

  it('workers are sent elsewhere', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    world.dispatcher.beginDrain(1_000, 5_000);
    const refused = { ok: false, refusal: { reason: 'DRAINING' } };
    expect(await world.dispatcher.open(helloOf(), new RecordingSink())).toMatchObject(refused);
    expect(
      await world.dispatcher.reattach(worker.sessionId, worker.secret, [], helloOf(), new RecordingSink()),
    ).toMatchObject(refused);
  });

  it('a claim under way is committed and delivered', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 2 });
    await world.admit('warm-up');
    const held = world.probe.hold();
    const submitted = world.admit('k');
    await held;
    world.dispatcher.beginDrain(1_000, 5_000);
    world.probe.release();
    const { admission } = await submitted;
    await world.settle();
    expect(worker.sink.claimedIds).toContain(admission.taskId);
  });

  it('stop ends streams and leaves no timer behind', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    await world.clock.advance(1_000);
    world.dispatcher.beginDrain(1_000, 5_000);
    world.dispatcher.stop();
    await world.timers.stop();
    await world.propagation.stop();
    world.quiet.stop();
    await world.authority.stop();
    await world.clock.advance(10_000);
    expect(worker.sink.closed).toBe('draining');
    expect(world.clock.armedTimers).toBe(0);
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'live' });
  });
});

describe('a session that drains', () => {
  it('gets nothing more, keeps what it has, and others get the rest', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 3 });
    const { admission } = await world.admit('k');
    await world.settle();
    await world.dispatcher.drain(worker.session);
    const other = await openWorker(world, { name: 'other' });
    const next = await world.admit('next');
    await world.settle();
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
    expect(other.sink.claimedIds).toEqual([next.admission.taskId]);
    expect(await worker.say(admission.taskId, 'accepted', 'started', 'completed')).toMatchObject({ refused: [] });
    expect(await worker.heartbeat()).toBe('renewed');
    expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'draining' });
  });

  it('though the claim was on its way gets none: the claim is refused in its write and goes elsewhere', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 3 });
    await world.admit('warm-up');
    await world.settle();
    const other = await world.replica();
    // The session is drained behind this process's back.
    await other.authority.writeSession({ kind: 'drain', sessionId: worker.sessionId, attachment: 1 });
    const { admission } = await world.admit('k');
    await world.clock.advance(1_000);
    expect(worker.sink.claimedIds).not.toContain(admission.taskId);
    const helper = await openWorker(world, { name: 'helper' });
    await world.settle();
    expect(helper.sink.claimedIds).toEqual([admission.taskId]);
  });
});

describe('a pairing that fails for its session', () => {
  it('gives the task back to be paired at once, not only when the route is polled', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const first = await world.admit('first');
    await world.settle();
    const { admission } = await world.admit('k');
    const other = await world.replica();
    await other.authority.writeSession({ kind: 'drain', sessionId: worker.sessionId, attachment: 1 });
    await worker.say(first.admission.taskId, 'accepted', 'started', 'completed');
    await world.settle();
    const helper = await openWorker(world, { name: 'helper' });
    await world.settle();
    expect(helper.sink.claimedIds).toEqual([admission.taskId]);
  });

  it('trusts the session again when its row could not be read', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const first = await world.admit('first');
    await world.settle();
    await world.admit('k');
    const real = world.real.loadSession.bind(world.real);
    world.real.loadSession = () => {
      world.real.loadSession = real;
      return Promise.reject(new Error('unreadable'));
    };
    // The claim loses once, for a session that is as it was.
    loseOnce(world, worker.sessionId, ({ sessionReads }) => sessionReads.some(({ needs }) => needs === 'live'));
    await worker.say(first.admission.taskId, 'accepted', 'started', 'completed');
    await world.clock.advance(1_000);
    expect(world.errors).toHaveLength(1);
    expect(worker.sink.claimed).toHaveLength(2);
  });

  it('does not doubt a stream that attached while the row of the older one was read', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 2 });
    await world.admit('warm-up');
    await world.settle();
    const real = world.real.loadSession.bind(world.real);
    const asked = new Signal();
    const read = new Signal();
    world.real.loadSession = async (sessionId) => {
      const row = await real(sessionId);
      world.real.loadSession = real;
      asked.reach();
      await read.reached;
      return row;
    };
    // A renewal that is lost makes it look: the row is read before the worker attaches anew.
    loseOnce(world, worker.sessionId, ({ sessions }) => sessions.some(({ kind }) => kind === 'renew'));
    const beat = worker.heartbeat();
    await asked.reached;
    const again = await worker.reattach();
    read.reach();
    await beat;
    await world.settle();
    expect(again.sink.closed).toBeNull();
    const { admission } = await world.admit('k');
    await world.settle();
    expect(again.sink.claimedIds).toEqual([admission.taskId]);
  });
});

describe('what is left of sessions that are gone', () => {
  function sessionOf(pool: Pool, id: string): WorkSession {
    const identity = { sessionId: id, workerName: id, ttlMs: 1_000, lingerMs: null };
    const session = new WorkSession(identity, pool, () => undefined);
    session.attach(new RecordingSink(), 1);
    session.setSlots(1);
    return session;
  }

  it('is nothing: a pool forgets who left, and is dropped with the last', () => {
    let empty = 0;
    const pool = new Pool(subscription(), () => (empty += 1));
    const stays = sessionOf(pool, 'stays');
    for (let n = 0; n < 5_000; n++) pool.leave(sessionOf(pool, `s${String(n)}`));
    expect((pool as unknown as { ring: unknown[] }).ring.length).toBeLessThan(10);
    expect(pool.take()).toBe(stays);
    expect([pool.take(), empty]).toEqual([null, 0]);
    pool.leave(stays);
    stays.unreserve();
    expect([pool.take(), empty]).toEqual([null, 1]);
  });

  it('is nothing in the dispatcher either, whatever they subscribed to', async () => {
    const world = await World.open();
    await world.admit('k', { capabilities: ['host:7'] });
    for (let n = 0; n < 20; n++) {
      const serves = subscription({ capabilities: [`host:${String(n)}`], queues: ['none'] });
      (await openWorker(world, { lingerMs: 0, serves })).drop();
    }
    await world.settle();
    const { routes } = world.dispatcher as unknown as { routes: { pools: Map<string, Pool> } };
    expect(routes.pools.size).toBe(0);
    const worker = await openWorker(world, { serves: subscription({ capabilities: ['host:7'] }) });
    await world.settle();
    expect(worker.sink.claimed).toHaveLength(1);
  });

  it('equal subscriptions are one pool, in whatever order they were said', () => {
    const key = subscriptionKey(subscription({ queues: ['a', 'b'], capabilities: ['x', 'y'] }));
    expect(subscriptionKey(subscription({ queues: ['b', 'a'], capabilities: ['y', 'x'] }))).toBe(key);
    expect(subscriptionKey(subscription({ queues: ['a'], capabilities: ['x', 'y'] }))).not.toBe(key);
    expect(subscriptionKey(subscription({ queues: [] }))).not.toBe(subscriptionKey(subscription()));
  });
});
