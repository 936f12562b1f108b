// Whose word a passed deadline is: the server's while it is heard. What the worker stopped by itself is never left as it is.

import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { Handler } from '../../src/sdk/worker.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

let fixture: WorkerFixture;

beforeEach(async () => {
  fixture = await WorkerFixture.open();
});

afterEach(() => fixture.close());

const passed = { seconds: 1n, nanos: 0 };
/** After so much silence the worker is on its own. */
const SHORT_TTL = { ttl: durationFromMs(300) };
/** The session is kept, and its heartbeats come soon enough to be answered. */
const kept = (answeredThrough: bigint) => ({
  heartbeatInterval: durationFromMs(2_000),
  leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough }],
});

test('a deadline that has passed stops nobody while the server is heard: it may have been moved', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1', { deadline: passed }));
  const { context, finish } = await fixture.begun.next();
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  expect(context.signal.aborted).toBe(false);
  finish('in time');
  expect(await session.events(1)).toEqual(['3 completed']);
});

test.each([
  ['deadline', LeaseLossCause.DEADLINE],
  ['attempt_timed_out', LeaseLossCause.ATTEMPT_TIMED_OUT],
])(
  'a lease that is taken for its %s says so to the handler, whenever the claim thought that was',
  async (why, cause) => {
    const session = await fixture.start(fixture.held);
    session.claim(claimOf('t1', { deadline: { seconds: 4_000_000_000n, nanos: 0 } }));
    const { context } = await fixture.begun.next();
    await session.events(2);
    session.lose('t1', cause);
    expect(await fixture.notices.find(({ type }) => type === 'lease_lost')).toMatchObject({ why });
    expect(context.signal.reason).toMatchObject({ name: 'DeadlineExceeded' });
    expect((context.signal.reason as { deadline: Date }).deadline.getTime()).toBeLessThanOrEqual(Date.now());
    expect(session.peer.frames.pending).toHaveLength(0);
  },
);

/** Saves a checkpoint, and stops when it is told to. */
const saving: Handler = async (claim, context) => {
  await context.checkpoint({ at: 7 });
  return fixture.held(claim, context);
};

async function stopsByItself(agent: Handler): Promise<ScriptedSession> {
  void fixture.make(agent).start();
  const session = await ScriptedSession.welcome(fixture.server, SHORT_TTL);
  session.claim(claimOf('t1', { deadline: passed }));
  const { context } = await fixture.begun.next();
  const { signal } = context;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
  expect(signal.reason).toMatchObject({ name: 'DeadlineExceeded' });
  return session;
}

test('what stopped because nothing was heard, and is still held, goes on from its checkpoint', async () => {
  await stopsByItself(saving);
  fixture.server.cut();
  const session = await ScriptedSession.welcome(fixture.server, kept(3n));
  expect(fixture.begun.pending).toEqual([]);
  // By the first heartbeat that is answered the server has had its time to take what is out of time.
  const heartbeatFrameId = await session.frameId('heartbeat');
  session.peer.send({ frame: { case: 'heartbeat', value: { heartbeatFrameId } } });
  const { claim, context, finish } = await fixture.begun.next();
  expect(claim).toMatchObject({ taskId: 't1', epoch: 1, checkpoint: { at: 7 }, deadline: undefined });
  expect(context.signal.aborted).toBe(false);
  finish('after all');
  // Its checkpoint once more; AEP allows no second `started`.
  expect(await session.events(2)).toEqual(['4 checkpoint', '5 completed']);
});

test('a cancel of what has stopped by itself settles it', async () => {
  const before = await stopsByItself(fixture.held);
  expect(await before.events(2)).toEqual(['1 accepted', '2 started']);
  fixture.server.cut();
  const session = await ScriptedSession.welcome(fixture.server, kept(2n));
  session.cancel('t1', 'enough');
  expect(await session.event()).toMatchObject({
    eventSeq: 3n,
    event: { case: 'cancelled', value: { reason: 'enough' } },
  });
});

test('so does one that came while it was stopping', async () => {
  let leave: () => void = () => undefined;
  const slow: Handler = async (claim, context) => {
    try {
      await fixture.held(claim, context);
    } catch (error) {
      await new Promise<void>((resolve) => (leave = resolve));
      throw error;
    }
  };
  const session = await stopsByItself(slow);
  session.cancel('t1', 'enough');
  await session.next('cancelReceipts');
  await fixture.notices.find(({ type }) => type === 'cancel_requested');
  leave();
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 cancelled']);
});
