import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { ReceiptKind } from '../../src/gen/reeve/v1/task_pb.js';
import { LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { claimOf, ScriptedSession } from './scripted-session.js';
import { WorkerFixture } from './worker-fixture.js';

let fixture: WorkerFixture;

beforeEach(async () => {
  fixture = await WorkerFixture.open();
});

afterEach(() => fixture.close());

test('a cancel is delivered at once, acknowledged when the handler hears it, and settles as cancelled', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  await fixture.begun.next();
  session.cancel('t1', 'changed my mind');
  const receipts = [...(await session.next('cancelReceipts')).receipts];
  if (receipts.length < 2) receipts.push(...(await session.next('cancelReceipts')).receipts);
  expect(receipts).toMatchObject([
    { taskId: 't1', epoch: 1n, generation: 1, cancellationToken: 'cancel-t1', kind: ReceiptKind.DELIVERED },
    { taskId: 't1', cancellationToken: 'cancel-t1', kind: ReceiptKind.ACKNOWLEDGED },
  ]);
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  expect(await session.event()).toMatchObject({
    eventSeq: 3n,
    event: { case: 'cancelled', value: { reason: 'changed my mind' } },
  });
});

test('receipts that are refused for now are said again, and events that were not refused are not', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  await fixture.begun.next();
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  session.cancel('t1');
  session.reject(await session.frameId('cancelReceipts'), ErrorReason.CONTENTION, status.ABORTED);
  const kinds = (receipts: readonly { kind: ReceiptKind }[]) => receipts.map(({ kind }) => kind);
  const both = [ReceiptKind.DELIVERED, ReceiptKind.ACKNOWLEDGED];
  for (;;) if (kinds((await session.next('cancelReceipts')).receipts).join() === both.join()) break;
  expect(await session.events(1)).toEqual(['3 cancelled']);
});

test('a handler that computes hears a cancel where it awaits what it says', async () => {
  const session = await fixture.start(
    async (_claim, context) => {
      fixture.begun.push({ claim: _claim, context, finish: () => undefined });
      const until = performance.now() + 5_000;
      while (!context.signal.aborted && performance.now() < until) {
        const step = performance.now() + 20;
        while (performance.now() < step);
        await context.progress();
      }
      context.signal.throwIfAborted();
    },
    { renewal: 'main' },
  );
  session.claim(claimOf('t1'));
  await fixture.begun.next();
  session.cancel('t1');
  for (;;) {
    const { event } = await session.event();
    if (event.case === 'progress') continue;
    if (event.case === 'accepted' || event.case === 'started') continue;
    expect(event.case).toBe('cancelled');
    break;
  }
});

test('a handler that polls acknowledges when it looks; one that never looks acknowledges nothing', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'), claimOf('t2'));
  const polling = await fixture.begun.next();
  const blind = await fixture.begun.next();
  expect(polling.context.signal.aborted).toBe(false);
  session.cancel('t1');
  session.cancel('t2');
  await session.next('cancelReceipts');
  await session.next('cancelReceipts');
  expect(() => polling.context.signal.throwIfAborted()).toThrow('enough');
  expect(await session.next('cancelReceipts')).toMatchObject({
    receipts: [{ taskId: 't1', kind: ReceiptKind.ACKNOWLEDGED }],
  });
  blind.finish('done all the same');
  expect((await session.events(5))[4]).toBe('3 completed');
  expect(fixture.worker.held).toBe(2);
});

test('an AbortError under a cancel settles as cancelled, without one as failed', async () => {
  const abort = new DOMException('aborted', 'AbortError');
  const session = await fixture.start(async (_claim, context) => {
    await fixture.deaf(_claim, context);
    throw abort;
  });
  session.claim(claimOf('t1'), claimOf('t2'));
  const first = await fixture.begun.next();
  const second = await fixture.begun.next();
  session.cancel('t1');
  await session.next('cancelReceipts');
  first.finish();
  second.finish();
  expect((await session.events(6)).slice(4)).toEqual(['3 cancelled', '3 failed']);
});

test('a lost lease aborts the handler, silences it, and its stray takes a slot while it runs', async () => {
  const session = await fixture.start(fixture.deaf, { slots: 2 });
  session.claim(claimOf('t1'));
  const { context, finish } = await fixture.begun.next();
  await session.events(2);
  session.lose('t1', LeaseLossCause.CANCEL_GRACE);
  expect(await fixture.notices.find(({ type }) => type === 'lease_lost')).toMatchObject({
    taskId: 't1',
    why: 'cancel_grace',
  });
  expect(context.signal.reason).toMatchObject({ name: 'LeaseLost', why: 'cancel_grace' });
  await expect(context.progress(0.5)).rejects.toMatchObject({ name: 'LeaseLost' });
  await expect(context.committed()).rejects.toMatchObject({ name: 'LeaseLost' });
  expect((await session.next('slots')).slots).toBe(1);
  finish('too late');
  expect((await session.next('slots')).slots).toBe(2);
  expect(fixture.worker.held).toBe(0);
  expect(session.peer.frames.pending).toHaveLength(0);
});

test('an event refused because the lease is lost loses it', async () => {
  const session = await fixture.start(fixture.held);
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  await session.events(2);
  const refusal = { reason: ErrorReason.LEASE_LOST, grpcCode: status.FAILED_PRECONDITION };
  session.judge('t1', 0, [{ eventSeq: 1n, refusal }]);
  await fixture.notices.find(({ type }) => type === 'lease_lost');
  expect(context.signal.reason).toMatchObject({ name: 'LeaseLost', why: 'superseded' });
});

test('a task that comes back while its old handler runs is accepted, and begun when that has ended', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const old = await fixture.begun.next();
  await session.events(2);
  session.lose('t1', LeaseLossCause.NOT_ACCEPTED);
  session.claim(claimOf('t1', { epoch: 2n, attempt: 2 }), claimOf('t2'));
  expect((await fixture.begun.next()).claim.taskId).toBe('t2');
  const said = [await session.event(), await session.event(), await session.event()];
  expect(said.map(({ taskId, event }) => `${taskId} ${event.case}`).sort()).toEqual([
    't1 accepted',
    't2 accepted',
    't2 started',
  ]);
  expect(fixture.begun.pending).toEqual([]);
  old.finish('too late');
  expect((await fixture.begun.next()).claim).toMatchObject({ taskId: 't1', epoch: 2 });
  expect(await session.event()).toMatchObject({ taskId: 't1', epoch: 2n, eventSeq: 2n, event: { case: 'started' } });
});

test('a cancel of a task that waits for its old handler settles it, and it is never begun', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1', { epoch: 0n }));
  const old = await fixture.begun.next();
  session.claim(claimOf('t1'));
  await session.events(3);
  session.cancel('t1');
  expect(await session.event()).toMatchObject({ epoch: 1n, eventSeq: 2n, event: { case: 'cancelled' } });
  session.judge('t1', 2);
  old.finish('too late');
  session.claim(claimOf('t2'));
  expect((await fixture.begun.next()).claim.taskId).toBe('t2');
});

test('one that was taken back meanwhile is not begun at all', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const old = await fixture.begun.next();
  await session.events(2);
  session.claim(claimOf('t1', { epoch: 2n }));
  session.claim(claimOf('t1', { epoch: 3n }));
  session.claim(claimOf('t2'));
  await fixture.begun.next();
  old.finish('too late');
  expect((await fixture.begun.next()).claim).toMatchObject({ taskId: 't1', epoch: 3 });
  expect(fixture.begun.pending).toEqual([]);
});

test('the same claim said again is begun once, whatever has become of its acceptance', async () => {
  const session = await fixture.start(fixture.deaf);
  session.claim(claimOf('t1'));
  const { context } = await fixture.begun.next();
  session.claim(claimOf('t1'));
  fixture.server.cut();
  const again = await ScriptedSession.welcome(fixture.server, {
    leasesKept: [{ taskId: 't1', epoch: 1n, answeredThrough: 0n }],
  });
  again.claim(claimOf('t1'), claimOf('t2'));
  expect((await fixture.begun.next()).claim.taskId).toBe('t2');
  expect(fixture.begun.all).toHaveLength(2);
  expect(context.signal.aborted).toBe(false);
});
