// The server is killed, stopped, away for longer than a TTL, terminated: live workers keep what they hold, and every
// task is executed once. One server per scenario, because each takes it away.

import { describe, expect, it, type TestContext } from 'vitest';
import { STOP_PATIENCE_MS } from '../../src/server/shutdown.js';
import { tasks } from '../server/reeve-client.js';
import { FaultRig } from './fault-rig.js';
import { fullLength, pass } from './full-length.js';

const PATIENCE_MS = 120_000;

/** Closed when the test is over, and proved then. */
async function open(context: TestContext, ...flags: readonly string[]): Promise<FaultRig> {
  const rig = await FaultRig.open('--drain-grace', '1s', ...flags);
  context.onTestFinished(async () => void (await rig.close()));
  return rig;
}

/** One execution, one claim, one end. */
const ONE_LIFE = ['submitted', 'claimed', 'accepted', 'started', 'completed'];

describe.concurrent('a server', { timeout: PATIENCE_MS }, () => {
  it('killed with −9 finds its workers again with all they hold', async (context) => {
    const rig = await open(context);
    const workers = await Promise.all(['w-1', 'w-2'].map((name) => rig.worker(name, { slots: 2 })));
    const ids = await Promise.all([0, 1, 2, 3].map(() => rig.submit('w')));
    const begun = await Promise.all(workers.flatMap(({ executions }) => [executions.next(), executions.next()]));
    await rig.server.kill('SIGKILL');
    const resumed = workers.map((worker) => worker.notices.find((n) => n.type === 'attached' && n.resumed));
    await rig.server.start();
    await Promise.all(resumed);
    for (const { finish } of begun) finish();
    for (const id of ids) expect(await rig.reeve.result(id)).toMatchObject({ attempt: 1 });
    for (const id of ids) {
      expect(workers.reduce((sum, worker) => sum + worker.executionsOf(id), 0)).toBe(1);
      expect(await rig.typesOf(id)).toEqual(ONE_LIFE);
    }
  });

  // Shorter than the TTL nobody but the stream may break; longer, only the quiet period keeps the leases.
  it.for(
    fullLength
      ? [[30_000, 20_000]]
      : [
          [6_000, 4_000],
          [2_000, 3_000],
        ],
  )('of a session of %d ms, stopped for %d ms, loses no lease', async ([ttlMs = 0, stopMs = 0], context) => {
    const rig = await open(context);
    const worker = await rig.worker('w-1', { ttlMs });
    const other = await rig.worker('w-2', { ttlMs, slots: 0 });
    const taskId = await rig.submit('w');
    const { finish } = await worker.executions.next();
    rig.server.signal('SIGSTOP');
    await pass(stopMs);
    rig.server.signal('SIGCONT');
    // One TTL and what a reaper takes: whoever is to be lost is lost by then.
    await pass(Math.min(ttlMs, 10_000) + 1_000);
    expect(await rig.reeve.get(taskId)).toMatchObject({ status: 'running', attempt: 1, lease: { epoch: 1 } });
    finish();
    await rig.reeve.result(taskId);
    expect(await rig.typesOf(taskId)).toEqual(ONE_LIFE);
    expect(worker.notices.all.map(({ type }) => type)).not.toContain('lease_lost');
    expect([worker.executionsOf(taskId), other.executions.all]).toEqual([1, []]);
  });

  it('that is away for longer than the TTL leaves live workers what they hold', async (context) => {
    const ttlMs = fullLength ? 10_000 : 2_000;
    const rig = await open(context);
    const worker = await rig.worker('w-1', { ttlMs });
    const taskId = await rig.submit('w');
    const { finish } = await worker.executions.next();
    await rig.server.kill('SIGKILL');
    await pass(1.5 * ttlMs);
    const resumed = worker.notices.find((notice) => notice.type === 'attached' && notice.resumed);
    await rig.server.start();
    await resumed;
    // Its server would not wait longer than a TTL.
    for (const notice of worker.notices.all) {
      if (notice.type === 'detached') expect(notice.retryInMs).toBeLessThanOrEqual(ttlMs / 4);
    }
    finish();
    await rig.reeve.result(taskId);
    expect(await rig.typesOf(taskId)).toEqual(ONE_LIFE);
    expect(worker.executionsOf(taskId)).toBe(1);
  });

  it('terminated in the middle of a handler hands its workers to the next, and the task is done once', async (context) => {
    const rig = await open(context, '--drain-reconnect', '100ms');
    const worker = await rig.worker('w-1');
    const ids = [await rig.submit('w'), await rig.submit('w')];
    const [first, second] = [await worker.executions.next(), await worker.executions.next()];
    const stopped = rig.server.kill('SIGTERM');
    await worker.notice('server_draining');
    // What ends while it drains is taken by it, what ends later by the next.
    first.finish();
    await worker.settled.next();
    await stopped;
    await pass(fullLength ? 15_000 : 500);
    const resumed = worker.notices.find((notice) => notice.type === 'attached' && notice.resumed);
    await rig.server.start();
    await resumed;
    second.finish();
    for (const id of ids) {
      await rig.reeve.result(id);
      expect(await rig.typesOf(id)).toEqual(ONE_LIFE);
      expect(worker.executionsOf(id)).toBe(1);
    }
  });

  it('terminated while a connection is half open ends in its time all the same', async (context) => {
    const rig = await open(context);
    const proxy = await rig.proxy();
    const client = rig.raw(proxy.address);
    await client.unary(tasks.list, {});
    proxy.halfOpen();
    const terminatedAtMs = performance.now();
    await rig.server.kill('SIGTERM');
    expect(performance.now() - terminatedAtMs).toBeLessThan(1_000 + STOP_PATIENCE_MS);
  });
});
