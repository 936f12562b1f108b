// Forgetting gone sessions on a clock of the test's: who goes and when, who stays, pauses of the service, and that a
// session that is forgotten is to its worker what one that is gone is.

import { expect, it, onTestFinished } from 'vitest';
import { GONE_SESSION_KEPT_MS } from '../../src/dispatcher/session-ends.js';
import { FORGET_PERIOD_MS, FORGET_QUIET_MS, SessionForgetting } from '../../src/timers/session-forgetting.js';
import type { SessionWrite } from '../../src/store/commit-plan.js';
import { endOf, planOf, sessionRow } from '../contract/sample-plans.js';
import { causeOf } from '../support/submissions.js';
import { helloOf, openWorker } from '../support/test-worker.js';
import { RecordingSink } from '../support/recording-sink.js';
import { World } from '../support/world.js';

/** A world beyond the quiet period of its start. */
async function open(limits: { readonly maxGone?: number } = {}) {
  const world = await World.open();
  const errors: unknown[] = [];
  const { authority, quiet } = world;
  const onError = (error: unknown): void => void errors.push(error);
  const forgetting = new SessionForgetting({ authority, quietSince: () => quiet.quietSince(), onError, ...limits });
  forgetting.start();
  onTestFinished(() => forgetting.stop());
  await world.clock.advance(FORGET_QUIET_MS);
  return { world, errors, forgetting };
}

/** A row of a session that is gone and may be forgotten so many ms from now. */
async function gone(world: World, sessionId: string, inMs: number): Promise<void> {
  const now = world.clock.nowMs();
  const end = endOf(now, { forgetAt: now + inMs });
  const write = (sessionWrite: SessionWrite) =>
    world.real.commit({ batchId: sessionId, plans: [planOf({ sessions: [sessionWrite] })] });
  await write({ kind: 'open', session: sessionRow(sessionId) });
  await write({ kind: 'end', sessionId, attachment: 1, end });
}

async function goneWorker(world: World) {
  const worker = await openWorker(world, { lingerMs: 0 });
  worker.drop();
  await world.settle();
  expect(await world.real.loadSession(worker.sessionId)).toMatchObject({ state: 'gone' });
  return worker;
}

it('says with the end of a session that it may be forgotten a day later', async () => {
  const world = await World.open();
  const { sessionId } = await goneWorker(world);
  const at = world.clock.nowMs();
  const ended = { at, cause: 'stream_ended', forgetAt: at + GONE_SESSION_KEPT_MS };
  expect(await world.real.loadSession(sessionId)).toMatchObject({ ended });
  const silent = await openWorker(world, { ttlMs: 2_000 });
  await world.clock.advance(33_000);
  const row = await world.real.loadSession(silent.sessionId);
  expect(row).toMatchObject({ state: 'gone', ended: { cause: 'expired', drained: false, held: 0 } });
  expect(row?.ended?.forgetAt).toBe((row?.ended?.at ?? 0) + GONE_SESSION_KEPT_MS);
});

it('forgets a gone session when its time has come, and no other', async () => {
  const { world } = await open();
  const live = await openWorker(world);
  await gone(world, 'soon', FORGET_PERIOD_MS / 2);
  await gone(world, 'later', 2 * FORGET_PERIOD_MS);
  await world.clock.advance(FORGET_PERIOD_MS);
  expect(await world.real.loadSession('soon')).toBeNull();
  expect(await world.real.loadSession('later')).not.toBeNull();
  await live.heartbeat();
  await world.clock.advance(2 * FORGET_PERIOD_MS);
  expect(await world.real.loadSession('later')).toBeNull();
  expect(await world.real.loadSession(live.sessionId)).toMatchObject({ state: 'live' });
});

it('forgets a session of one claim as soon as its claim is over', async () => {
  const { world } = await open();
  let sessionId = '';
  await world.dispatcher.unary.claim('w', 30_000, (row) => {
    ({ sessionId } = row);
    const claim = { sessionId, worker: 'w', sessionTtlMs: 30_000, acceptTimeoutMs: 5_000 };
    return world.apply({ taskId: 'nobody', intent: { kind: 'claim', ...claim, cause: causeOf('worker') } });
  });
  expect(await world.real.loadSession(sessionId)).toMatchObject({ ended: { cause: 'claim_ended', held: 0 } });
  await world.clock.advance(FORGET_PERIOD_MS);
  expect(await world.real.loadSession(sessionId)).toBeNull();
});

it('goes by no clock that may have jumped', async () => {
  const { world } = await open();
  const { sessionId } = await goneWorker(world);
  world.clock.step(2 * GONE_SESSION_KEPT_MS);
  await world.clock.advance(FORGET_QUIET_MS - FORGET_PERIOD_MS);
  expect(await world.real.loadSession(sessionId)).not.toBeNull();
  world.clock.step(-2 * GONE_SESSION_KEPT_MS);
  await world.clock.advance(2 * FORGET_QUIET_MS);
  expect(await world.real.loadSession(sessionId)).not.toBeNull();
});

it('keeps no more than so many of the gone, also while the clock is not to be trusted', async () => {
  const { world } = await open({ maxGone: 2 });
  for (const [at, sessionId] of ['first', 'second', 'third', 'last'].entries()) await gone(world, sessionId, at + 1e9);
  world.clock.step(60_000);
  await world.clock.advance(FORGET_PERIOD_MS);
  const left = (await world.real.goneSessions(null, 10)).map(({ sessionId }) => sessionId);
  expect(left).toEqual(['last', 'third']);
});

it('answers who attaches a forgotten session as it answers who attaches one that is gone or unknown', async () => {
  const { world } = await open();
  const { sessionId, secret } = await goneWorker(world);
  const attach = (id: string) => world.dispatcher.reattach(id, secret, [], helloOf(), new RecordingSink());
  const whenGone = await attach(sessionId);
  await world.real.forgetSessions(Number.MAX_SAFE_INTEGER, 0);
  expect(await world.real.loadSession(sessionId)).toBeNull();
  expect(await attach(sessionId)).toEqual(whenGone);
  expect(whenGone).toMatchObject({ ok: false, refusal: { reason: 'SESSION_GONE' } });
  expect(await attach('nobody')).toEqual(whenGone);
});

it('goes on when the store did not answer, and stops when it is told to', async () => {
  const { world, errors, forgetting } = await open();
  await gone(world, 'one', 1);
  world.probe.down = true;
  await world.clock.advance(FORGET_PERIOD_MS);
  expect(errors).toHaveLength(1);
  world.probe.down = false;
  await world.clock.advance(FORGET_QUIET_MS + 10 * FORGET_PERIOD_MS);
  expect(await world.real.loadSession('one')).toBeNull();
  await forgetting.stop();
  await gone(world, 'two', 1);
  await world.clock.advance(10 * FORGET_PERIOD_MS);
  expect(await world.real.loadSession('two')).not.toBeNull();
});
