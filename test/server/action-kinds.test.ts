// Action kinds of a deployment through a real server: one judgement of args at every door, replays that outlive a
// change of the configuration, and what becomes of the tasks of a kind that is no longer registered.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExecutionTarget, TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { BlockerKind, IntentKind, SubmitOutcome } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { ActionKindSetting } from '../../src/deployment/action-kind-setting.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { Worker, accepted, completed, started } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

const CRAWL: ActionKindSetting = {
  name: 'crawl',
  argsSchema: {
    type: 'object',
    properties: { url: { type: 'string' }, depth: { type: 'integer', maximum: 5 } },
    required: ['url'],
  },
  timeoutMs: 90_000,
};

/** Several deployments over one store, one after another or side by side. */
const store = openMemoryStore();
const shared: TaskStore = Object.assign(Object.create(store) as TaskStore, { close: () => Promise.resolve() });
const deploy = (...actionKinds: ActionKindSetting[]): Promise<Fixture> =>
  startFixture({ actionKinds }, { store: shared });

let fixture: Fixture;
beforeAll(async () => {
  fixture = await deploy(CRAWL, { name: 'agent', allowEmptyArgs: false });
});
afterAll(() => fixture.close());

const crawl = (args: unknown, more: object = {}) => ({
  idempotencyKey: freshKey(),
  actionKind: 'crawl',
  executionTarget: ExecutionTarget.HOST,
  argsForm: { case: 'argsJson' as const, value: JSON.stringify(args) },
  ...more,
});

describe('a schema of args', () => {
  const bad = { url: 7, depth: 9 };
  const expected = {
    field: 'args_json',
    pointer: '/url',
    violations: JSON.stringify([
      { pointer: '/url', detail: 'must be string' },
      { pointer: '/depth', detail: 'must be <= 5' },
    ]),
  };
  const message = 'args_json/url: must be string (and 1 more)';

  it('is judged alike by a call, in a batch and in a stream, and nothing is written', async () => {
    const request = crawl(bad);
    expect(await refusal(fixture.client.unary(tasks.submit, request))).toMatchObject({
      code: 3,
      reason: 'MALFORMED',
      field: 'args_json',
      message,
      metadata: expected,
    });
    const good = crawl({ url: 'x' });
    const { verdicts } = await fixture.client.unary(tasks.submitBatch, { submissions: [request, good] });
    expect(verdicts.map(({ verdict }) => verdict.case)).toEqual(['refused', 'accepted']);
    expect(verdicts[0]?.verdict.value).toMatchObject({ grpcCode: 3, message, metadata: expected });
    const stream = fixture.client.bidi(tasks.submitStream);
    stream.send({ submissions: [request] });
    const verdict = (await stream.next())?.verdicts[0]?.verdict;
    expect(verdict).toMatchObject({ case: 'refused', value: { grpcCode: 3, message, metadata: expected } });
    stream.half();
    const { idempotencyKey } = request;
    expect(await refusal(fixture.client.unary(tasks.get, { idempotencyKey }))).toMatchObject({
      reason: 'TASK_NOT_FOUND',
    });
  });

  it('goes for args as a structure, with the field named as they were sent', async () => {
    const argsForm = { case: 'args' as const, value: { url: 7 } };
    const refused = await refusal(fixture.client.unary(tasks.submit, crawl({}, { argsForm })));
    expect(refused).toMatchObject({
      field: 'args',
      message: 'args/url: must be string',
      metadata: { pointer: '/url' },
    });
  });

  it('leaves empty args alone, and a kind that wants some says so', async () => {
    await fixture.client.unary(tasks.submit, crawl({}));
    const refused = await refusal(fixture.client.unary(tasks.submit, crawl({}, { actionKind: 'agent' })));
    expect(refused).toMatchObject({ reason: 'MALFORMED', message: 'args_json: must not be empty' });
    await fixture.client.unary(tasks.submit, crawl({ any: 'thing' }, { actionKind: 'agent' }));
  });
});

describe('the time-out of a kind', () => {
  const timeoutOf = async (more: object) => {
    const { task } = await fixture.client.unary(tasks.submit, crawl({ url: 'x' }, more));
    return [task?.policy?.timeout?.seconds, task?.timers?.deadline !== undefined];
  };

  it('holds where the submission states none', async () => {
    expect(await timeoutOf({})).toEqual([90n, true]);
    expect(await timeoutOf({ policy: { timeout: { seconds: 5n } } })).toEqual([5n, true]);
    expect(await timeoutOf({ actionKind: 'flow' })).toEqual([undefined, false]);
  });
});

describe('a change of the configuration', () => {
  it('does not keep a caller from the task it had: a replay is one, whatever its args are worth by now', async () => {
    const request = crawl({ url: 'x', depth: 3 });
    const { task } = await fixture.client.unary(tasks.submit, request);
    const narrower = { ...CRAWL, argsSchema: { type: 'object', required: ['url', 'owner'] } };
    for (const kinds of [[narrower], []]) {
      const later = await deploy(...kinds);
      try {
        const again = await later.client.unary(tasks.submit, request);
        expect(again).toMatchObject({ outcome: SubmitOutcome.REPLAYED, task: { taskId: task?.taskId } });
        const { verdicts } = await later.client.unary(tasks.submitBatch, {
          submissions: [request, crawl({ url: 'y' })],
        });
        expect(verdicts.map(({ verdict }) => verdict.case)).toEqual(['accepted', 'refused']);
        const other = { ...request, argsForm: crawl({ url: 'z' }).argsForm };
        const conflict = await refusal(later.client.unary(tasks.submit, other));
        expect(conflict).toMatchObject({ reason: 'IDEMPOTENCY_CONFLICT', metadata: { task_id: task?.taskId } });
        const fresh = await refusal(later.client.unary(tasks.submit, crawl({ url: 'x' })));
        expect(fresh.reason).toBe(kinds.length === 0 ? 'ACTION_KIND_UNREGISTERED' : 'MALFORMED');
      } finally {
        await later.close();
      }
    }
  });

  it('leaves the queued tasks of a kind that is gone where they are, and hands them to nobody', async () => {
    const queue = freshKey('queue');
    const { task } = await fixture.client.unary(tasks.submit, crawl({ url: 'x' }, { queue }));
    const taskId = task?.taskId ?? '';
    const later = await deploy();
    const worker = await Worker.start(later.client, { queues: [queue] });
    try {
      const { blockers } = await later.client.unary(tasks.explain, { taskId });
      expect(blockers).toMatchObject([{ kind: BlockerKind.KIND_UNREGISTERED }]);
      const claim = { taskId, idempotencyKey: freshKey(), intent: { case: 'claim' as const, value: {} } };
      const refused = await refusal(later.client.unary(tasks.transition, claim));
      expect(refused).toMatchObject({
        code: 9,
        reason: 'ACTION_KIND_UNREGISTERED',
        metadata: { action_kind: 'crawl' },
      });
      const { allowed } = await later.client.unary(tasks.transition, {
        taskId,
        validateOnly: true,
        intent: { case: 'suspend', value: {} },
      });
      expect(allowed.find(({ intent }) => intent === IntentKind.CLAIM)?.allowed).toBe(false);
      // A task that came later and is the worker's passes it by.
      const { task: next } = await later.client.unary(tasks.submit, crawl({}, { actionKind: 'flow', queue }));
      const handed = await worker.claim();
      expect(handed.taskId).toBe(next?.taskId);
      expect(await later.client.unary(tasks.get, { taskId })).toMatchObject({ task: { status: TaskStatus.QUEUED } });
      // What holds a task is judged by its lifecycle, not by its kind: an operator still ends it, or lets it go on.
      const cancelled = await later.client.unary(tasks.cancel, { taskId: handed.taskId, requestId: freshKey() });
      expect(cancelled.generation?.number).toBe(1);
    } finally {
      worker.stop();
      await later.close();
    }
  });

  it('that brings the kind back brings its tasks to a worker', async () => {
    const queue = freshKey('queue');
    const { task } = await fixture.client.unary(tasks.submit, crawl({ url: 'x' }, { queue }));
    const without = await deploy();
    await without.close();
    const again = await deploy({ name: 'crawl' });
    const worker = await Worker.start(again.client, { queues: [queue] });
    try {
      const claim = await worker.claim();
      expect(claim.taskId).toBe(task?.taskId);
      await worker.say(claim, [accepted, started, completed]);
    } finally {
      worker.stop();
      await again.close();
    }
  });

  it('does not take a running task from its worker', async () => {
    const queue = freshKey('queue');
    const { task } = await fixture.client.unary(tasks.submit, crawl({ url: 'x' }, { queue }));
    const taskId = task?.taskId ?? '';
    const claim = { taskId, idempotencyKey: freshKey(), intent: { case: 'claim' as const, value: {} } };
    const { lease } = await fixture.client.unary(tasks.transition, claim);
    const later = await deploy();
    try {
      // A repetition of the claim is answered as the first time, with the lease.
      expect(await later.client.unary(tasks.transition, claim)).toMatchObject({ replayed: true, lease: { epoch: 1n } });
      const settled = await later.client.unary(tasks.transition, {
        taskId,
        idempotencyKey: freshKey(),
        lease: { epoch: lease?.epoch ?? 0n, leaseToken: lease?.leaseToken ?? '' },
        intent: { case: 'settleCompletion', value: {} },
      });
      expect(settled).toMatchObject({ applied: true, currentStatus: TaskStatus.COMPLETED });
    } finally {
      await later.close();
    }
  });
});
