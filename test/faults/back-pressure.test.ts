// Flow control both ways through a real connection: a worker that floods is slowed, one that does not read costs a
// bounded amount, and what is urgent overtakes what is large.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { accepted, type Event, started, submitted, Worker } from '../server/lifecycle-driver.js';
import { ReeveClient, tasks } from '../server/reeve-client.js';
import { type Fixture, startFixture } from '../server/server-fixture.js';
import { FaultyStore, Gate } from '../store/faulty-store.js';
import { FaultProxy } from './fault-proxy.js';

const MIB = 1_048_576;
/** Outstanding events, what grpc-js and the sockets on both sides of the proxy hold. */
const MAX_TAKEN_BYTES = 48 * MIB;

let folder: string;
let store: FaultyStore;
let fixture: Fixture;
let proxy: FaultProxy;
let through: ReeveClient;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-faults-'));
  store = new FaultyStore(await openSqliteStore({ path: join(folder, 'reeve.db') }));
  fixture = await startFixture({}, { store });
  proxy = await FaultProxy.start(fixture.server.address);
  through = new ReeveClient(proxy.address);
});

afterEach(async () => {
  through.close();
  await proxy.close();
  await fixture.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Resolves when no more bytes have gone through for a while. */
async function standstill(direction: 'up' | 'down'): Promise<number> {
  for (let before = -1; before !== proxy.bytes[direction];) {
    before = proxy.bytes[direction];
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return proxy.bytes[direction];
}

it('a worker that says more than can be committed is not read any further, and answered in full in the end', async () => {
  const worker = await Worker.start(through);
  await submitted(fixture.client, { queue: worker.queue });
  const claim = await worker.claim();
  await worker.say(claim, [accepted, started]);
  const { taskId, generation, epoch } = claim;
  const gate = new Gate();
  store.failNextCommits({ kind: 'wait', gate });
  const event: Event = { case: 'checkpoint', value: { checkpointJson: JSON.stringify('x'.repeat(100_000)) } };
  const frames = 96;
  for (let frame = 0; frame < frames; frame++) {
    const seqs = Array.from({ length: 10 }, (_, index) => BigInt(3 + frame * 10 + index));
    worker.send({
      case: 'events',
      value: { events: seqs.map((eventSeq) => ({ taskId, generation, epoch, eventSeq, event })) },
    });
  }
  await gate.reached;
  expect(await standstill('up')).toBeLessThan(MAX_TAKEN_BYTES);
  gate.open();
  const last = BigInt(2 + frames * 10);
  for (let through = 0n; through < last;) {
    const { verdicts } = await worker.frame('verdicts');
    for (const { judgedThrough, rejected } of verdicts) {
      expect(rejected).toEqual([]);
      through = judgedThrough;
    }
  }
  expect(proxy.bytes.up).toBeGreaterThan(90 * MIB);
  worker.stop();
});

it('a worker that does not read is given no more claims than fit, and the others are done elsewhere', async () => {
  const worker = await Worker.start(through, { slots: 1_000 });
  proxy.freeze('down');
  const argsJson = JSON.stringify({ text: 'x'.repeat(1_000_000) });
  const count = 64;
  for (let n = 0; n < count; n++) {
    await submitted(fixture.client, { queue: worker.queue, argsForm: { case: 'argsJson', value: argsJson } });
  }
  expect(await standstill('down')).toBeLessThan(16 * MIB);
  const held = async () => {
    const { tasks: all } = await fixture.client.unary(tasks.list, { filter: { queue: worker.queue }, pageSize: 1_000 });
    return all.filter(({ lease }) => lease !== undefined).length;
  };
  // Four mebibytes wait in the server, the rest in the transport; whatever does not fit went back at once.
  expect(await held()).toBeLessThan(24);
  const other = await Worker.start(fixture.client, { queues: [worker.queue], slots: 1_000 });
  let taken = 0;
  while (taken < count - 24) taken += (await other.frame('claims')).claims.length;
  other.stream.cancel();
  await other.stream.ended;
  // Once it reads again, it is given claims as before.
  proxy.thaw('down');
  const { taskId } = await submitted(fixture.client, { queue: worker.queue });
  for (let ids: string[] = []; !ids.includes(taskId);) {
    ids = (await worker.frame('claims')).claims.map((claim) => claim.taskId);
  }
  worker.stream.cancel();
});

it('a worker that speaks and does not listen is not listened to', async () => {
  const worker = await Worker.start(through);
  proxy.freeze('down');
  // Each is answered by a rejection; without a bound these would pile up.
  const frames = 30_000;
  for (let n = 0; n < frames; n++) worker.send({ case: undefined });
  const upBytes = await standstill('up');
  proxy.thaw('down');
  let rejections = 0;
  while (rejections < frames) {
    await worker.frame('rejection');
    rejections += 1;
  }
  expect(upBytes).toBeLessThan(0.75 * proxy.bytes.up);
  worker.stop();
});

it('a cancel overtakes the claims that wait for a slow reader', async () => {
  const worker = await Worker.start(through, { slots: 100 });
  const task = await submitted(fixture.client, { queue: worker.queue });
  const claim = await worker.claim();
  await worker.say(claim, [accepted, started]);
  proxy.freeze('down');
  const argsJson = JSON.stringify({ text: 'x'.repeat(1_000_000) });
  for (let n = 0; n < 8; n++) {
    await submitted(fixture.client, { queue: worker.queue, argsForm: { case: 'argsJson', value: argsJson } });
  }
  await standstill('down');
  await fixture.client.unary(tasks.cancel, { taskId: task.taskId, requestId: 'overtake' });
  proxy.thaw('down');
  const order: string[] = [];
  while (!order.includes('cancels')) order.push(String((await worker.stream.next())?.frame.case));
  const before = order.filter((kind) => kind === 'claims').length;
  await worker.frame('claims');
  expect(before).toBeLessThan(8);
  worker.stop();
});
