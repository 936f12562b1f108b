// Words that get lost between a worker and the server, one at a time: an event, a claim, a cancel.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Welcome } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { storedTruth } from '../chaos/stored-truth.js';
import { Cli, parsed } from '../cli/cli-rig.js';
import { accepted, completed, started, submitted, Worker } from '../server/lifecycle-driver.js';
import { tasks, workers } from '../server/reeve-client.js';
import { startFixture } from '../server/server-fixture.js';
import { FaultyStore, Gate } from '../store/faulty-store.js';
import { FaultProxy } from './fault-proxy.js';
import { FaultRig } from './fault-rig.js';

let rig: FaultRig;
beforeAll(async () => {
  rig = await FaultRig.open('--drain-grace', '1s');
});
afterAll(async () => void (await rig.close()));

function welcomeOf({ stream }: Worker): Welcome {
  const first = stream.messages[0];
  if (first?.frame.case !== 'welcome') throw new Error('no Welcome');
  return first.frame.value;
}

describe('an event', () => {
  it('lost on the stream while the next one comes by Report is missed, and both are judged once and in order', async () => {
    const proxy = await rig.proxy();
    const worker = await Worker.start(rig.raw(proxy.address));
    const taskId = await rig.submit(worker.queue);
    const claim = await worker.claim();
    const { generation, epoch, leaseToken } = claim;
    const output = (n: number) => ({
      case: 'output' as const,
      value: { content: { case: 'outputJson' as const, value: String(n) } },
    });
    await worker.say(claim, [accepted, started, output(3), output(4), output(5)]);
    const event = (n: number) => ({ eventSeq: BigInt(n), event: output(n) });
    // The sixth is under way for long.
    proxy.freeze('up');
    worker.send({ case: 'events', value: { events: [{ taskId, generation, epoch, ...event(6) }] } });
    const report = { taskId, generation, epoch, leaseToken, answeredThrough: 5n };
    const reports = rig.raw();
    const early = await reports.unary(workers.report, { ...report, events: [event(7)] });
    expect(early.verdict).toMatchObject({ judgedThrough: 5n, rejected: [{ eventSeq: 7n }] });
    expect(early.verdict?.rejected[0]?.refusal?.metadata).toMatchObject({ expected_event_seq: '6' });
    const both = await reports.unary(workers.report, { ...report, events: [event(6), event(7)] });
    expect(both.verdict).toMatchObject({ judgedThrough: 7n, rejected: [] });
    // What comes late is answered as judged already.
    proxy.thaw('up');
    const { verdicts } = await worker.frame('verdicts');
    expect(verdicts).toMatchObject([{ judgedThrough: 7n, committedSequence: 0n, rejected: [] }]);
    const events = (await rig.eventsOf(taskId)).filter(({ type }) => type === 'task.output');
    expect(events.map(({ payload }) => payload)).toMatchObject([3, 4, 5, 6, 7].map((n) => ({ output: n })));
    worker.stop();
  });
});

describe('a cancel', () => {
  it('while nobody is attached is the first thing that is said to the worker when it is back', async () => {
    const raw = rig.raw();
    const worker = await Worker.start(raw);
    const taskId = await rig.submit(worker.queue);
    const claim = await worker.claim();
    await worker.say(claim, [accepted, started]);
    const { sessionId, sessionSecret } = welcomeOf(worker);
    worker.stream.cancel();
    await worker.stream.ended;
    expect(await rig.reeve.cancel(taskId, { reason: 'enough' })).toMatchObject({ state: 'cancellation_requested' });
    const held = [{ taskId, epoch: claim.epoch, answeredThrough: 2n }];
    // More than one thing is waiting for it.
    await rig.submit(worker.queue);
    const reattach = { sessionId, sessionSecret, held };
    const again = await Worker.start(raw, { queues: [worker.queue], slots: 10, reattach });
    const second = await again.stream.next();
    expect(second?.frame).toMatchObject({
      case: 'cancels',
      value: { cancels: [{ taskId, epoch: 1n, cancellationToken: claim.cancellationToken }] },
    });
    await again.claim();
    again.stream.cancel();
  });

  it('leaves receipts that Get, Watch and the command line show', async () => {
    const proxy = await rig.proxy();
    const worker = await rig.worker('cancel', { via: proxy });
    const taskId = await rig.submit('cancel');
    const { context } = await worker.executions.next();
    await context.committed();
    proxy.pauseAccept();
    proxy.cut();
    await worker.notice('detached');
    await rig.reeve.cancel(taskId, { reason: 'enough' });
    const pending = await rig.reeve.get(taskId);
    expect(pending).toMatchObject({ status: 'running', cancellation: { reason: { summary: 'enough' } } });
    expect(pending.cancellation?.deliveredTime).toBeUndefined();
    const watched: string[] = [];
    const watching = (async () => {
      for await (const { type } of rig.reeve.watch(taskId)) watched.push(type);
    })();
    proxy.resumeAccept();
    await watching;
    expect(context.signal.aborted).toBe(true);
    expect(watched.slice(-4)).toEqual([
      'task.cancel.requested',
      'reeve.task.cancel_delivered',
      'reeve.task.cancel_acknowledged',
      'task.cancelled',
    ]);
    const { cancellation } = await rig.reeve.get(taskId);
    expect(cancellation).toMatchObject({ ownerStopped: 'confirmed' });
    expect(cancellation?.deliveredTime).toBeInstanceOf(Date);
    expect(cancellation?.acknowledgedTime).toBeInstanceOf(Date);
    const { end, out } = await Cli.run(['--address', rig.server.address, 'get', taskId, '--json']);
    expect(end).toBe(0);
    expect(parsed(out)).toMatchObject({
      cancellation: { delivered_time: expect.any(String) as string, acknowledged_time: expect.any(String) as string },
    });
    const said = async (...words: readonly string[]) =>
      (await Cli.run(['--address', rig.server.address, ...words, taskId])).out;
    expect(await said('get')).toMatch(/^cancellation +settled, asked .*, delivered, acknowledged, owner stopped/m);
    for (const following of ['events', 'watch']) {
      expect(await said(following)).toMatch(/cancel_delivered[^]*cancel_acknowledged[^]*task\.cancelled/);
    }
  });
});

describe('a claim', () => {
  it('whose connection is reset between its commit and its frame is back in two seconds, its attempt not spent', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reeve-faults-'));
    const path = join(folder, 'reeve.db');
    const store = new FaultyStore(await openSqliteStore({ path }));
    const fixture = await startFixture({}, { store });
    const proxy = await FaultProxy.start(fixture.server.address);
    const worker = await Worker.start(rig.raw(proxy.address), { slots: 1 });
    // Once its queue is known, a submission is claimed in its own commit.
    await submitted(fixture.client, { queue: worker.queue });
    await worker.say(await worker.claim(), [accepted, started, completed]);
    const gate = new Gate();
    store.failNextCommits({ kind: 'wait', gate });
    const submitting = submitted(fixture.client, { queue: worker.queue });
    await gate.reached;
    // The claim is in that commit; nobody will be there to be told.
    proxy.reset();
    const isAttached = async () =>
      (await fixture.client.unary(workers.listWorkers, { queue: worker.queue })).workers.some((w) => w.attached);
    while (await isAttached());
    gate.open();
    const committedAtMs = performance.now();
    const { taskId } = await submitting;
    const other = await Worker.start(fixture.client, { queues: [worker.queue], slots: 1 });
    expect(await other.claim()).toMatchObject({ taskId, epoch: 2n, attempt: 1 });
    expect(performance.now() - committedAtMs).toBeLessThan(2_000);
    const { task } = await fixture.client.unary(tasks.get, { taskId });
    expect(task).toMatchObject({ attempt: 1, lease: { epoch: 2n } });
    other.stop();
    await proxy.close();
    await fixture.close();
    const truth = await openSqliteStore({ path });
    await storedTruth(truth);
    await truth.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
