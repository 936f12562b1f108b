// What networks do to the connection between a worker and the server: nothing is lost, nothing is executed twice, and
// the worker is back within the limits that are stated for silence.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FaultRig } from './fault-rig.js';
import type { FaultProxy } from './fault-proxy.js';
import { fullLength, pass } from './full-length.js';

const TTL_MS = fullLength ? 30_000 : 3_000;
/** A heartbeat every third of it, and silence of twice that is the end of a stream. */
const SILENCE_MS = (2 * TTL_MS) / 3;
/** The worker looks four times per interval; then a pause, a new connection, and a busy machine. */
const RECONNECT_MS = TTL_MS / 12 + 500;
const TIMEOUT_MS = 3 * TTL_MS + 20_000;

let rig: FaultRig;
beforeAll(async () => {
  rig = await FaultRig.open('--drain-grace', '1s');
});
afterAll(async () => void (await rig.close()));

const faults: readonly (readonly [string, string, (proxy: FaultProxy) => void, (proxy: FaultProxy) => void])[] = [
  ['half open', 'half', (proxy) => proxy.halfOpen(), () => undefined],
  ['deaf to the worker', 'up', (proxy) => proxy.freeze('up'), (proxy) => proxy.thaw('up')],
  ['dumb to the worker', 'down', (proxy) => proxy.freeze('down'), (proxy) => proxy.thaw('down')],
];

describe.for(faults)('a connection that is %s', { timeout: TIMEOUT_MS }, ([, name, harm, heal]) => {
  it.concurrent('is left in time, and the execution goes on', async () => {
    const proxy = await rig.proxy();
    const worker = await rig.worker(`${name}hold`, { via: proxy, ttlMs: TTL_MS });
    const taskId = await rig.submit(`${name}hold`);
    const { context, finish } = await worker.executions.next();
    await context.output({ page: 1 });
    await context.committed();
    const resumed = worker.notices.find((notice) => notice.type === 'attached' && notice.resumed);
    harm(proxy);
    const harmedAtMs = performance.now();
    await context.output({ page: 2 });
    await resumed;
    expect(performance.now() - harmedAtMs).toBeLessThan(SILENCE_MS + RECONNECT_MS);
    await context.output({ page: 3 });
    finish();
    expect(await rig.reeve.result(taskId)).toMatchObject({ attempt: 1, status: 'completed' });
    // What was on its way all the time comes now, under an attachment that no longer counts.
    heal(proxy);
    const outputs = (await rig.eventsOf(taskId)).filter(({ type }) => type === 'task.output');
    expect(outputs.map(({ payload }) => payload)).toMatchObject([1, 2, 3].map((page) => ({ output: { page } })));
    expect(await rig.typesOf(taskId)).toEqual([
      ...['submitted', 'claimed', 'accepted', 'started', 'output', 'output', 'output', 'completed'],
    ]);
    expect([worker.executionsOf(taskId), proxy.connections]).toEqual([1, 2]);
  });

  it.concurrent('swallows no claim: it comes again, its attempt not spent', async () => {
    const proxy = await rig.proxy();
    const worker = await rig.worker(`${name}claim`, { via: proxy, ttlMs: TTL_MS });
    harm(proxy);
    const taskId = await rig.submit(`${name}claim`);
    void (async () => {
      for (;;) (await worker.executions.next()).finish();
    })();
    expect(await rig.reeve.result(taskId)).toMatchObject({ status: 'completed', attempt: 1 });
    heal(proxy);
    // With a TTL so long the time to accept passes first; a handler whose `accepted` was never heard is begun again.
    if (!fullLength) expect(worker.executionsOf(taskId)).toBe(1);
  });
});

describe.concurrent('a connection', { timeout: TIMEOUT_MS }, () => {
  it('that is cut ten times in a second leaves one execution, and its events once and in order', async () => {
    const proxy = await rig.proxy();
    const worker = await rig.worker('cuts', { via: proxy });
    const taskId = await rig.submit('cuts');
    const { context, finish } = await worker.executions.next();
    let cut = 0;
    let said = 0;
    const saying = (async () => {
      while (cut < 10) {
        await context.output({ n: ++said });
        // An attempt has room for 10,000 outputs.
        await pass(1);
      }
    })();
    const begunAtMs = performance.now();
    while (cut < 10) {
      const resumed = worker.notices.find((notice) => notice.type === 'attached' && notice.resumed);
      if (cut % 2 === 0) proxy.cut();
      else proxy.reset();
      cut += 1;
      await resumed;
    }
    const tookMs = performance.now() - begunAtMs;
    await saying;
    finish({ said });
    expect(await rig.reeve.result(taskId)).toMatchObject({ attempt: 1, result: { said } });
    const outputs = (await rig.eventsOf(taskId)).filter(({ type }) => type === 'task.output');
    const numbers = outputs.map(({ payload }) => (payload as { output: { n: number } }).output.n);
    expect(numbers).toEqual(Array.from({ length: said }, (_, index) => index + 1));
    expect(worker.executionsOf(taskId)).toBe(1);
    expect(said).toBeGreaterThan(10);
    // The first pause of the worker is at most 100 ms.
    expect(tookMs).toBeLessThan(4_000);
  });

  it('that is slow changes nothing', async () => {
    const proxy = await rig.proxy();
    proxy.delay('up', 100);
    proxy.delay('down', 150);
    const worker = await rig.worker('slow', { via: proxy, ttlMs: TTL_MS });
    const taskId = await rig.submit('slow');
    const { context, finish } = await worker.executions.next();
    await context.output({ page: 1 });
    await context.committed();
    finish();
    await rig.reeve.result(taskId);
    expect([proxy.connections, worker.executionsOf(taskId)]).toEqual([1, 1]);
  });
});
