// Workers that are killed, stopped and terminated, as processes against a server that is one.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tasks } from '../server/reeve-client.js';
import { FaultRig } from './fault-rig.js';
import { fullLength, RECOVERY_SLACK_MS } from './full-length.js';

const TTL_MS = fullLength ? 30_000 : 2_000;
const PATIENCE_MS = 3 * TTL_MS + 20_000;

let rig: FaultRig;
beforeAll(async () => {
  rig = await FaultRig.open('--drain-grace', '1s');
});
afterAll(async () => {
  const lives = await rig.close();
  for (const { record } of lives.values()) expect(record.lease).toBeNull();
});

describe.concurrent('a worker', { timeout: PATIENCE_MS }, () => {
  it('killed with −9 is replaced within its TTL and two seconds', async () => {
    const doomed = rig.process({ name: 'kill-1', ttlMs: TTL_MS, queues: ['kill'] });
    await doomed.tells('attached');
    const taskId = await rig.submit('kill', { ms: 60_000 });
    await doomed.tells('begun');
    const other = await rig.worker('kill-2', { ttlMs: TTL_MS });
    doomed.signal('SIGKILL');
    const killedAtMs = performance.now();
    const { claim, finish } = await other.executions.next();
    finish({ by: 'kill-2' });
    const { result } = await rig.reeve.result(taskId);
    expect(performance.now() - killedAtMs).toBeLessThan(TTL_MS + RECOVERY_SLACK_MS);
    expect(result).toEqual({ by: 'kill-2' });
    expect(claim).toMatchObject({ taskId, epoch: 2, attempt: 2 });
  });

  it('stopped for longer than its TTL is replaced, and what it does afterwards changes nothing', async () => {
    const stopped = rig.process({ name: 'stop-1', ttlMs: TTL_MS, queues: ['stop'] });
    await stopped.tells('attached');
    const taskId = await rig.submit('stop', { ms: TTL_MS });
    await stopped.tells('begun');
    const other = await rig.worker('stop-2', { ttlMs: TTL_MS });
    stopped.signal('SIGSTOP');
    const stoppedAtMs = performance.now();
    const { finish } = await other.executions.next();
    expect(performance.now() - stoppedAtMs).toBeLessThan(TTL_MS + RECOVERY_SLACK_MS);
    // Its handler is over by now, and says so as soon as it may.
    stopped.signal('SIGCONT');
    expect(await stopped.tells('session_lost')).toMatchObject({ claims: 1 });
    await stopped.tells('attached');
    finish({ by: 'stop-2' });
    expect((await rig.reeve.result(taskId)).result).toEqual({ by: 'stop-2' });
    expect(stopped.told.all.filter(({ type }) => type === 'settled')).toEqual([]);
    expect(await rig.typesOf(taskId)).toEqual([
      ...['submitted', 'claimed', 'accepted', 'started', 'retry_scheduled', 'requeued'],
      ...['claimed', 'accepted', 'started', 'completed'],
    ]);
  });

  it('without a stream, stopped in the same way, is refused, and what it said can be read', async () => {
    const taskId = await rig.submit('alone');
    const stopped = rig.process({ name: 'alone-1', unary: { taskId, ttlMs: TTL_MS, ms: 100 } });
    await stopped.tells('begun');
    stopped.signal('SIGSTOP');
    const stoppedAtMs = performance.now();
    const other = await rig.worker('alone-2', { ttlMs: TTL_MS });
    const { finish } = await other.executions.next();
    expect(performance.now() - stoppedAtMs).toBeLessThan(TTL_MS + RECOVERY_SLACK_MS);
    stopped.signal('SIGCONT');
    expect(await stopped.tells('reported')).toMatchObject({ refused: 'LEASE_LOST' });
    finish();
    await rig.reeve.result(taskId);
    const { diagnostics } = await rig.raw().unary(tasks.listEvents, { taskId, includeDiagnostics: true });
    expect(diagnostics.map(({ epoch, eventSeq, type }) => [epoch, eventSeq, type])).toEqual([
      [1n, 1n, 'task.accepted'],
      [1n, 2n, 'task.started'],
      [1n, 3n, 'task.completed'],
    ]);
    expect((await rig.typesOf(taskId)).filter((type) => type === 'completed')).toHaveLength(1);
  });

  it('terminated in the middle of a handler finishes it, and it is done once', async () => {
    const handlerMs = fullLength ? 15_000 : 1_500;
    const terminated = rig.process({ name: 'term-1', drainGraceMs: 2 * handlerMs, queues: ['term'] });
    await terminated.tells('attached');
    const taskId = await rig.submit('term', { ms: handlerMs });
    await terminated.tells('begun');
    const other = await rig.worker('term-2');
    terminated.signal('SIGTERM');
    await terminated.tells('draining');
    // What comes meanwhile goes elsewhere.
    const later = await rig.submit('term');
    const { claim, finish } = await other.executions.next();
    finish();
    expect(claim.taskId).toBe(later);
    expect(await rig.reeve.result(taskId)).toMatchObject({ result: { by: 'term-1' }, attempt: 1 });
    expect(await terminated.exited).toBe(0);
    expect(other.executionsOf(taskId)).toBe(0);
  });

  it('terminated with less patience than its handler needs hands it back, and another does it', async () => {
    const terminated = rig.process({ name: 'hurry-1', drainGraceMs: 100, queues: ['hurry'] });
    await terminated.tells('attached');
    const taskId = await rig.submit('hurry', { ms: 60_000 });
    await terminated.tells('begun');
    const other = await rig.worker('hurry-2');
    terminated.signal('SIGTERM');
    const { claim, finish } = await other.executions.next();
    // Handed back, so that the attempt does not count.
    expect(claim).toMatchObject({ taskId, epoch: 2, attempt: 1 });
    finish({});
    await rig.reeve.result(taskId);
  });
});

// In test/dispatcher/deadly-claim.test.ts without the time: the pauses between ten deaths take two minutes.
if (fullLength) {
  it('a claim that kills whoever receives it ends as undeliverable', { timeout: 300_000 }, async () => {
    const taskId = await rig.submit('deadly', { deadly: true });
    let over = false;
    const ended = rig.reeve.result(taskId).catch((error: unknown) => error);
    void ended.finally(() => (over = true));
    let deaths = 0;
    while (!over) {
      const victim = rig.process({ name: 'deadly-1', ttlMs: 2_000, queues: ['deadly'] });
      await Promise.race([victim.exited.then(() => (deaths += 1)), ended]);
    }
    expect(await ended).toMatchObject({ task: { status: 'failed', reason: { code: 'run.failed.undeliverable' } } });
    expect(deaths).toBe(10);
    expect((await rig.typesOf(taskId)).filter((type) => type === 'claimed')).toHaveLength(10);
  });
}
