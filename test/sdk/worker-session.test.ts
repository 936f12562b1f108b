import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { FakeServer } from './fake-server.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

let fixture: WorkerFixture;

beforeEach(async () => {
  fixture = await WorkerFixture.open();
});

afterEach(() => fixture.close());

test('Hello says who is there', async () => {
  const session = await fixture.start(fixture.held, {
    name: 'w',
    version: '1',
    buildId: 'b',
    namespaces: ['n'],
    queues: ['q'],
    capabilities: ['gpu'],
    executionTargets: ['host', 'process'],
    slots: 3,
    ttlMs: 5_000,
    lingerMs: 1_000,
  });
  expect(session.hello).toMatchObject({
    workerName: 'w',
    version: '1',
    buildId: 'b',
    namespaces: ['n'],
    queues: ['q'],
    capabilities: ['gpu'],
    executionTargets: [1, 5],
    actionKinds: ['agent'],
    slots: 3,
    ttl: durationFromMs(5_000),
    linger: durationFromMs(1_000),
  });
  expect(session.hello.reattach).toBeUndefined();
  expect(await fixture.notices.next()).toMatchObject({ type: 'attached', sessionAlias: 'alias', resumed: false });
  fixture.worker.setSlots(7);
  expect((await session.next('slots')).slots).toBe(7);
});

test('after a cut the worker attaches again, says what it holds, and says again what is unanswered', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'), claimOf('t2'), claimOf('t3'));
  const [first, second, third] = [await fixture.begun.next(), await fixture.begun.next(), await fixture.begun.next()];
  await session.events(6);
  session.judge('t1', 2);
  session.judge('t2', 1);
  await first.context.committed();
  fixture.server.cut();
  await fixture.notices.find(({ type }) => type === 'detached');
  // Said while nobody hears it.
  await first.context.progress(0.5);
  first.finish('one');
  const again = await ScriptedSession.welcome(fixture.server, {
    attachment: 2n,
    leasesKept: [
      { taskId: 't1', epoch: 1n, answeredThrough: 2n },
      { taskId: 't2', epoch: 1n, answeredThrough: 1n },
    ],
    leasesLost: [{ taskId: 't3', epoch: 1n, generation: 1, cause: LeaseLossCause.NOT_ACCEPTED }],
  });
  expect(again.hello.reattach).toMatchObject({
    sessionId: 's1',
    sessionSecret: 'secret',
    held: [
      { taskId: 't1', epoch: 1n, answeredThrough: 2n },
      { taskId: 't2', epoch: 1n, answeredThrough: 1n },
      { taskId: 't3', epoch: 1n, answeredThrough: 0n },
    ],
  });
  expect(await fixture.notices.find(({ type }) => type === 'attached')).toMatchObject({ attachment: 2, resumed: true });
  const said = [await again.event(), await again.event(), await again.event()];
  expect(said.map(({ taskId, eventSeq, event }) => `${taskId} ${eventSeq} ${event.case}`).sort()).toEqual([
    't1 3 progress',
    't1 4 completed',
    't2 2 started',
  ]);
  expect(third.context.signal.reason).toMatchObject({ name: 'LeaseLost', why: 'not_accepted' });
  expect(second.context.signal.aborted).toBe(false);
});

test('a settlement whose refusal was lost with the stream is said again', async () => {
  const session = await fixture.start(() => 'done');
  session.claim(claimOf('t1'));
  await session.events(3);
  fixture.server.cut();
  const again = await ScriptedSession.welcome(fixture.server, {
    leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough: 3n }],
  });
  expect(await again.events(1)).toEqual(['4 completed']);
});

test('a session that is gone loses everything and the worker begins anew', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  session.peer.fail({ code: status.FAILED_PRECONDITION, reason: 'SESSION_GONE' });
  expect(await fixture.notices.find(({ type }) => type === 'session_lost')).toMatchObject({ claims: 1 });
  expect(context.signal.reason).toMatchObject({ name: 'LeaseLost', why: 'session_expired' });
  const fresh = await ScriptedSession.welcome(fixture.server, { sessionId: 's2' });
  expect(fresh.hello.reattach).toBeUndefined();
  expect(fixture.worker.held).toBe(0);
});

test('without linger the claims end with the stream', async () => {
  const session = await fixture.start(fixture.held, { lingerMs: 0 });
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  fixture.server.cut();
  const fresh = await ScriptedSession.welcome(fixture.server);
  expect(fresh.hello.reattach).toBeUndefined();
  expect(context.signal.reason).toMatchObject({ name: 'LeaseLost' });
});

test('heartbeats name what is held, and their answers make the lease sure', async () => {
  void fixture.make(fixture.held).start();
  const session = await ScriptedSession.welcome(fixture.server, {
    heartbeatInterval: durationFromMs(200),
    ttl: durationFromMs(60_000),
  });
  session.claim(claimOf('t1', { epoch: 5n }), claimOf('t2'));
  const { context } = await fixture.begun.next();
  const sureAtFirst = context.leaseSureUntil.getTime();
  for (;;) {
    const { frameId, frame } = await session.peer.frames.next();
    if (frame.case !== 'heartbeat') continue;
    session.peer.send({ frame: { case: 'heartbeat', value: { heartbeatFrameId: frameId } } });
    if (frame.value.held.length < 2) continue;
    expect(frame.value.held).toMatchObject([
      { taskId: 't1', epoch: 5n },
      { taskId: 't2', epoch: 1n },
    ]);
    if (context.leaseSureUntil.getTime() > sureAtFirst) break;
  }
});

test('a server that falls silent is left, with everything held', async () => {
  void fixture.make(fixture.held).start();
  const session = await ScriptedSession.welcome(fixture.server, { heartbeatInterval: durationFromMs(20) });
  session.claim(claimOf('t1'));
  await fixture.begun.next();
  expect(await fixture.notices.find(({ type }) => type === 'detached')).toMatchObject({
    error: { message: 'the server has been silent for too long' },
  });
  const again = await ScriptedSession.welcome(fixture.server, {
    leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough: 0n }],
  });
  expect(again.hello.reattach?.held).toHaveLength(1);
  expect(await again.events(2)).toEqual(['1 accepted', '2 started']);
});

test('a frame of an unknown kind is answered as unsupported', async () => {
  const session = await fixture.start(fixture.held);
  // Field 99 of some later version.
  session.peer.send({ frameId: 42n, $unknown: [{ no: 99, wireType: 2, data: new Uint8Array([0]) }] });
  expect(await session.next('rejection')).toMatchObject({
    frameId: 42n,
    refusal: { reason: ErrorReason.UNSUPPORTED, grpcCode: status.UNIMPLEMENTED },
  });
});

test('a gap that the server finds is filled from where it says', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  await context.progress(0.1);
  await session.events(3);
  const refusal = { reason: ErrorReason.EVENT_GAP, grpcCode: status.FAILED_PRECONDITION };
  session.judge('t1', 1, [{ eventSeq: 3n, refusal }]);
  expect(await session.events(2)).toEqual(['2 started', '3 progress']);
});

test('a frame refused for now is said again', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  await session.events(2);
  const refusal = {
    reason: ErrorReason.OVERLOADED,
    grpcCode: status.RESOURCE_EXHAUSTED,
    retryAfter: durationFromMs(1),
  };
  session.peer.send({ frame: { case: 'rejection', value: { frameId: 2n, refusal } } });
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
});

test('a worker that the server will not have is told so at once', async () => {
  const started = fixture.make(fixture.held).start();
  const peer = await fixture.server.works.next();
  peer.fail({ code: status.PERMISSION_DENIED, reason: 'PERMISSION_DENIED' });
  await expect(started).rejects.toMatchObject({ reason: 'PERMISSION_DENIED' });
});

test('a worker waits for a server that is not there yet', async () => {
  const { address } = fixture.server;
  await fixture.server.stop();
  const started = fixture.make(fixture.held, { address }).start();
  await fixture.notices.find(({ type }) => type === 'detached');
  fixture.server = await FakeServer.start(address);
  await ScriptedSession.welcome(fixture.server);
  await started;
});
