// Concurrency keys through a real server: real work streams, a limit from the configuration, and what callers are told
// of a task that waits for its turn.

import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { BlockerKind, IntentKind } from '../../src/gen/reeve/v1/task_service_pb.js';
import { loadConfig } from '../../src/server/load-config.js';
import { memoryEngine, sqliteEngine } from '../contract/engines.js';
import { Worker, accepted, completed, started, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

const SETTINGS = {
  concurrency: loadConfig({ flags: { concurrency: 'three-*=3' }, env: {} }).concurrency,
  capabilityClasses: loadConfig({ flags: { capabilityClasses: 'gpu=serialization' }, env: {} }).capabilityClasses,
};

/** Takes whatever comes, one after the other, and tells how many of all such workers were at work at once. */
class Crew {
  atWork = 0;
  most = 0;
  readonly order: string[] = [];

  async serve(worker: Worker, count: () => boolean): Promise<void> {
    while (count()) {
      const claim = await worker.claim();
      this.atWork += 1;
      this.most = Math.max(this.most, this.atWork);
      await worker.say(claim, [accepted, started]);
      this.order.push(claim.taskId);
      this.atWork -= 1;
      await worker.say(claim, [completed], 3);
    }
  }
}

describe.each([memoryEngine, sqliteEngine])('three workers and tasks of one key, $name', (engine) => {
  it.each([
    ['that nothing is configured for', 'single', 1],
    ['of three', 'three-a', 3],
  ])('%s: never more at work than may, and all of them in the end', async (_what, name, limit) => {
    const real = await engine.open();
    const fixture = await startFixture(SETTINGS, { wrap: () => real });
    onTestFinished(() => fixture.close());
    const { client } = fixture;
    const queue = freshKey('queue');
    const concurrencyKey = freshKey(name);
    const crew = new Crew();
    const workers = await Promise.all(
      ['a', 'b', 'c'].map((workerName) => Worker.start(client, { queues: [queue], workerName })),
    );
    const serving = workers.map((worker) => crew.serve(worker, () => crew.order.length < 12).catch(() => undefined));
    const admitted = await Promise.all(
      Array.from({ length: 12 }, () => submitted(client, { queue, policy: { concurrencyKey } })),
    );
    const last = await Promise.all(
      admitted.map(async ({ taskId }) => {
        const watch = client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId } });
        expect(await watch.ended).toBeNull();
        return (await client.unary(tasks.get, { taskId })).task?.status;
      }),
    );
    expect(new Set(last)).toEqual(new Set([TaskStatus.COMPLETED]));
    expect(crew.most).toBeLessThanOrEqual(limit);
    if (limit > 1) expect(crew.most).toBeGreaterThan(1);
    expect(crew.order.toSorted()).toEqual(admitted.map(({ taskId }) => taskId).toSorted());
    for (const worker of workers) worker.stream.cancel();
    await Promise.all(serving);
    expect(await real.permits(null, 9)).toEqual([]);
  });
});

describe('a key that is taken', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await startFixture(SETTINGS);
  });
  afterAll(() => fixture.close());

  const explain = async (taskId: string) => (await fixture.client.unary(tasks.explain, { taskId })).blockers;

  /** Two workers, one of which has the first of three tasks. */
  async function taken(capabilities: string[] = []) {
    const queue = freshKey('queue');
    const concurrencyKey = freshKey('key');
    const holder = await Worker.start(fixture.client, { queues: [queue], slots: 1, linger: {}, capabilities });
    // One or the other: what waits for both is explained by what it waits for first.
    const policy = capabilities.length === 0 ? { concurrencyKey } : {};
    const submit = () => submitted(fixture.client, { queue, policy, requiredCapabilities: capabilities });
    const first = await submit();
    const claim = await holder.claim();
    const other = await Worker.start(fixture.client, { queues: [queue], capabilities });
    const [second, third] = [await submit(), await submit()];
    return { holder, other, claim, first, second, third, concurrencyKey };
  }

  it('is given on when its holder is cancelled', async () => {
    const { holder, other, first, second, claim } = await taken();
    await holder.say(claim, [accepted, started]);
    await fixture.client.unary(tasks.cancel, { taskId: first.taskId, requestId: freshKey('cancel') });
    await holder.say(claim, [{ case: 'cancelled', value: {} }], 3);
    expect((await other.claim()).taskId).toBe(second.taskId);
  });

  it('stays with a task whose worker is killed, and the next comes after it', async () => {
    const { holder, other, first, second, claim } = await taken();
    await holder.say(claim, [accepted, started]);
    holder.stream.cancel();
    const again = await other.claim();
    expect([again.taskId, again.attempt]).toEqual([first.taskId, 2]);
    await other.say(again, [accepted, started, completed]);
    expect((await other.claim()).taskId).toBe(second.taskId);
  });

  it('is explained: which key, who has it, how many are before', async () => {
    const { first, second, third, concurrencyKey } = await taken();
    expect(await explain(second.taskId)).toMatchObject([
      {
        kind: BlockerKind.CONCURRENCY_KEY,
        detail: `it waits for concurrency key ${concurrencyKey}: 1 of 1 running, 0 of its route before it`,
        holders: [{ taskId: first.taskId, workerName: '' }],
        holderCount: 1,
      },
    ]);
    expect((await explain(third.taskId))[0]?.detail).toMatch(/ 1 of its route before it$/);
    const { task } = await fixture.client.unary(tasks.get, { taskId: second.taskId });
    expect(task).toMatchObject({ status: TaskStatus.QUEUED, policy: { concurrencyKey } });
  });

  it('is explained for a capability, by its label', async () => {
    const { first, second } = await taken(['gpu']);
    expect(await explain(second.taskId)).toMatchObject([
      { kind: BlockerKind.SERIALIZED_CAPABILITY, holders: [{ taskId: first.taskId }] },
    ]);
    await fixture.client.unary(tasks.cancel, { taskId: first.taskId, requestId: freshKey('c'), grace: {} });
  });

  it('is no claim by name: refused, judged dry and not allowed, each with the key', async () => {
    const { second, concurrencyKey } = await taken();
    const { taskId } = second;
    const claim = { taskId, intent: { case: 'claim', value: { workerName: 'curl' } } } as const;
    const named = { reason: 'INVALID_TRANSITION', metadata: { concurrency_key: concurrencyKey, task_id: taskId } };
    const idempotencyKey = freshKey('claim');
    const call = (validateOnly: boolean) =>
      fixture.client.unary(tasks.transition, { ...claim, idempotencyKey, validateOnly });
    expect(await refusal(call(false))).toMatchObject(named);
    expect(await refusal(call(true))).toMatchObject(named);
    const { allowed } = await fixture.client.unary(tasks.transition, {
      taskId,
      idempotencyKey: freshKey('dry'),
      validateOnly: true,
      intent: { case: 'suspend', value: {} },
    });
    const answer = allowed.find(({ intent }) => intent === IntentKind.CLAIM);
    expect(answer).toMatchObject({ allowed: false, refusal: { metadata: { concurrency_key: concurrencyKey } } });
  });
});
