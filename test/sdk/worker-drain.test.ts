import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

let fixture: WorkerFixture;

beforeEach(async () => {
  fixture = await WorkerFixture.open();
});

afterEach(() => fixture.close());

test('a drain lets handlers finish, says no more claims, and ends the stream in peace', async () => {
  void fixture.make(fixture.held);
  const ran = fixture.worker.run();
  const session = await ScriptedSession.welcome(fixture.server);
  session.claim(claimOf('t1'));
  const { finish } = await fixture.begun.next();
  const drained = fixture.worker.drain();
  await session.next('drain');
  // Committed before the drain was heard: handed back without being fixture.begun.
  session.claim(claimOf('t2'));
  expect((await session.next('release')).claims).toMatchObject([{ taskId: 't2', epoch: 1n, generation: 1 }]);
  session.lose('t2', LeaseLossCause.RELEASED);
  finish('in time');
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  session.judge('t1', 3);
  await session.peer.ended;
  session.peer.end();
  await drained;
  await ran;
  expect(fixture.begun.all).toHaveLength(1);
  expect(fixture.notices.all.at(-1)).toEqual({ type: 'drained', released: 0 });
});

test('what does not finish in its grace is told, says its last word, and is handed back', async () => {
  const session = await fixture.start(async (claim, context) => {
    try {
      await fixture.held(claim, context);
    } finally {
      await context.checkpoint({ page: 3 });
    }
  });
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  await session.events(2);
  const stopped = fixture.worker.stop();
  expect(await session.event()).toMatchObject({
    eventSeq: 3n,
    event: { case: 'checkpoint', value: { checkpointJson: '{"page":3}' } },
  });
  expect(context.signal.reason).toMatchObject({ name: 'Draining' });
  // After its checkpoint, which the empty one keeps.
  expect((await session.next('release')).claims).toMatchObject([{ taskId: 't1', checkpointJson: '' }]);
  session.judge('t1', 3);
  session.lose('t1', LeaseLossCause.RELEASED);
  await session.peer.ended;
  session.peer.end();
  await stopped;
});

test('SIGTERM drains, and run resolves after it', async () => {
  fixture.make(fixture.held, { signals: ['SIGUSR2'] });
  const ran = fixture.worker.run();
  const session = await ScriptedSession.welcome(fixture.server);
  await fixture.notices.find(({ type }) => type === 'attached');
  process.kill(process.pid, 'SIGUSR2');
  await session.next('drain');
  await session.peer.ended;
  session.peer.end();
  await ran;
  expect(process.listenerCount('SIGUSR2')).toBe(0);
});

test('run twice is one run: a signal drains once, and does not stop', async () => {
  fixture.make(fixture.held, { signals: ['SIGUSR2'] });
  const runs = [fixture.worker.run(), fixture.worker.run()];
  const session = await ScriptedSession.welcome(fixture.server);
  session.claim(claimOf('t1'));
  const { context, finish } = await fixture.begun.next();
  expect(process.listenerCount('SIGUSR2')).toBe(1);
  process.kill(process.pid, 'SIGUSR2');
  await session.next('drain');
  expect(context.signal.aborted).toBe(false);
  finish('in time');
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  session.judge('t1', 3);
  await session.peer.ended;
  session.peer.end();
  await Promise.all(runs);
  expect(fixture.notices.all.filter(({ type }) => type === 'draining')).toHaveLength(1);
});

const childrenActive = { reason: ErrorReason.CHILDREN_ACTIVE, grpcCode: status.FAILED_PRECONDITION };

test('a result that waits for live children is asked for again while the grace of a drain lasts', async () => {
  const session = await fixture.start(() => 'done');
  session.claim(claimOf('t1'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  session.judge('t1', 3, [{ eventSeq: 3n, refusal: { ...childrenActive, retryAfter: durationFromMs(60_000) } }]);
  await fixture.notices.find(({ type }) => type === 'event_refused');
  const drained = fixture.worker.drain({ graceMs: 60_000 });
  // At once, and not when the hint says.
  expect(await session.events(1)).toEqual(['4 completed']);
  session.judge('t1', 4, [{ eventSeq: 4n, refusal: { ...childrenActive, retryAfter: durationFromMs(60_000) } }]);
  expect(await session.events(1)).toEqual(['5 completed']);
  session.judge('t1', 5);
  await session.peer.ended;
  session.peer.end();
  await drained;
  expect(fixture.notices.all.at(-1)).toEqual({ type: 'drained', released: 0 });
});

test.each([
  ['before', 50],
  ['after', 0],
])('a result refused for its children %s the grace is over is handed back, and not lost', async (_when, graceMs) => {
  const session = await fixture.start(() => 'done');
  session.claim(claimOf('t1'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  const drained = fixture.worker.drain({ graceMs, answerMs: 10_000 });
  await session.next('drain');
  session.judge('t1', 3, [{ eventSeq: 3n, refusal: childrenActive }]);
  const { claims } = await session.next('release');
  // The handler's own checkpoint stays.
  expect(claims).toMatchObject([{ taskId: 't1', epoch: 1n, checkpointJson: '' }]);
  session.lose('t1', LeaseLossCause.RELEASED);
  await session.peer.ended;
  session.peer.end();
  await drained;
  const types = fixture.notices.all.map(({ type }) => type);
  expect(types).not.toContain('lease_lost');
  expect(fixture.notices.all).toContainEqual(
    expect.objectContaining({
      type: 'settlement_abandoned',
      taskId: 't1',
      error: expect.objectContaining({ reason: 'CHILDREN_ACTIVE' }) as object,
    }),
  );
  expect(fixture.notices.all.at(-1)).toEqual({ type: 'drained', released: 1 });
});

test('what is handed back is not told as lost, whatever comes after', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const { context, finish } = await fixture.begun.next();
  const drained = fixture.worker.drain({ graceMs: 0, answerMs: 10_000 });
  await session.next('release');
  session.lose('t1', LeaseLossCause.RELEASED);
  await session.peer.ended;
  session.peer.end();
  await drained;
  expect(fixture.notices.all.map(({ type }) => type)).not.toContain('lease_lost');
  await expect(context.progress(1)).rejects.toMatchObject({ name: 'Draining' });
  finish();
});

test('a settlement whose answer does not come is said to be in doubt', async () => {
  const session = await fixture.start(() => 'done');
  session.claim(claimOf('t1'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
  await fixture.worker.drain({ graceMs: 0, answerMs: 0 });
  expect(fixture.notices.all.at(-2)).toMatchObject({
    type: 'settlement_abandoned',
    taskId: 't1',
    error: { reason: 'UNAVAILABLE', message: 'the worker left before the settlement was answered' },
  });
});

test('a release that a cut swallowed is said again after the re-attach', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const { finish } = await fixture.begun.next();
  await session.events(2);
  session.judge('t1', 2);
  const drained = fixture.worker.drain({ graceMs: 0, answerMs: 10_000 });
  await session.next('release');
  fixture.server.cut();
  const again = await ScriptedSession.welcome(fixture.server, {
    leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough: 2n }],
  });
  await again.next('drain');
  expect((await again.next('release')).claims).toHaveLength(1);
  again.lose('t1', LeaseLossCause.RELEASED);
  await again.peer.ended;
  again.peer.end();
  await drained;
  finish();
});

test('a release that is refused for now is said again', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const { finish } = await fixture.begun.next();
  await session.events(2);
  session.judge('t1', 2);
  const drained = fixture.worker.drain({ graceMs: 0, answerMs: 10_000 });
  for (let times = 0; times < 2; times += 1) {
    const frameId = await session.frameId('release');
    session.reject(frameId, ErrorReason.STORE_UNAVAILABLE, status.UNAVAILABLE);
  }
  expect((await session.next('release')).claims).toMatchObject([{ taskId: 't1', epoch: 1n }]);
  session.lose('t1', LeaseLossCause.RELEASED);
  await session.peer.ended;
  session.peer.end();
  await drained;
  finish();
});

test('a draining server is left after the delay it names, and the work goes on', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  await session.events(2);
  session.peer.send({ frame: { case: 'drain', value: { reconnectAfter: durationFromMs(5) } } });
  await session.peer.ended;
  session.peer.end();
  const again = await ScriptedSession.welcome(fixture.server, {
    leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough: 2n }],
  });
  expect(again.hello.reattach?.held).toHaveLength(1);
  expect(context.signal.aborted).toBe(false);
  await context.progress(1);
  expect(await again.events(1)).toEqual(['3 progress']);
});
