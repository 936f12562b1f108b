// Purge through a real server: steps by age, status, namespace and queue, dry and repeated, and what the names of a
// purged task are answered with by every call.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { PurgeResponse } from '../../src/gen/reeve/v1/admin_service_pb.js';
import { TaskOutcome, TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { SubmitOutcome, type SubmitRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { submitted } from './lifecycle-driver.js';
import { type ReeveClient, admin, refusal, refusedOf, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
let client: ReeveClient;
beforeAll(async () => {
  fixture = await startFixture();
  ({ client } = fixture);
});
afterAll(() => fixture.close());

interface Wish {
  readonly idempotencyKey?: string;
  /** Seconds. */
  readonly olderThan?: bigint;
  readonly statuses?: TaskStatus[];
  readonly namespace?: string;
  readonly queue?: string;
  readonly maxTasks?: number;
  readonly reason?: string;
  readonly validateOnly?: boolean;
  readonly pageToken?: string;
}

const purge = ({ olderThan: seconds = 0n, ...wish }: Wish): Promise<PurgeResponse> =>
  client.unary(admin.purge, {
    idempotencyKey: freshKey('purge'),
    reason: 'tests',
    ...wish,
    olderThan: { seconds },
  });

async function ended(more: MessageInitShape<typeof SubmitRequestSchema> = {}): Promise<string> {
  const { taskId } = await submitted(client, more);
  await client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  return taskId;
}

const isPurged = async (taskId: string): Promise<boolean> =>
  (await client.unary(tasks.get, { taskId })).task?.purged ?? false;

/** A namespace of its own, so that tests do not take each other's tasks. */
const space = (): string => freshKey('space').replaceAll(/[^a-z0-9-]/g, '-');

describe('a step', () => {
  it('takes what is finished, of the namespace, queue and status that were named', async () => {
    const namespace = space();
    const live = (await submitted(client, { namespace })).taskId;
    const [one, two, other] = [await ended({ namespace }), await ended({ namespace, queue: 'q' }), await ended()];
    const skipped = (await submitted(client, { namespace })).taskId;
    const skip = { case: 'skip' as const, value: { reason: { code: 'run.skipped.operator' } } };
    const cause = { reason: { code: 'run.skipped.operator', summary: '' } };
    await client.unary(tasks.transition, {
      taskId: skipped,
      idempotencyKey: freshKey(),
      intent: { ...skip, value: {} },
      cause,
    });
    expect(await purge({ namespace, queue: 'q' })).toMatchObject({
      purged: 1n,
      kept: 0n,
      more: false,
      nextPageToken: '',
    });
    expect(await purge({ namespace, statuses: [TaskStatus.SKIPPED] })).toMatchObject({ purged: 1n });
    const kept = await Promise.all([live, one, two, other, skipped].map(isPurged));
    expect(kept).toEqual([false, false, true, false, true]);
    const before = Date.now();
    const last = await purge({ namespace });
    expect(last).toMatchObject({ purged: 1n, replayed: false });
    expect(Number(last.newestFinishTime?.seconds)).toBeGreaterThan(before / 1_000 - 60);
    expect(last.horizon).toBeGreaterThan(0n);
    const nothing = await purge({ namespace });
    expect(nothing.purged).toBe(0n);
    expect(nothing.newestFinishTime).toBeUndefined();
  });

  it('takes only what is old enough, and all namespaces when asked to', async () => {
    const namespace = space();
    const taskId = await ended({ namespace });
    expect(await purge({ namespace, olderThan: 3_600n })).toMatchObject({ purged: 0n, kept: 0n });
    expect(await isPurged(taskId)).toBe(false);
    const all = await purge({ namespace: '*', validateOnly: true });
    expect(all.purged).toBeGreaterThan(0n);
  });

  it('is bounded, and goes on from its token until everything was looked at', async () => {
    const namespace = space();
    const taskIds: string[] = [];
    for (let at = 0; at < 5; at++) taskIds.push(await ended({ namespace }));
    await submitted(client, { namespace });
    const steps: PurgeResponse[] = [];
    for (let pageToken = ''; steps.length === 0 || pageToken !== '';) {
      steps.push(await purge({ namespace, maxTasks: 2, pageToken }));
      pageToken = steps.at(-1)?.nextPageToken ?? '';
    }
    expect(steps.map(({ purged }) => purged)).toEqual([2n, 2n, 1n]);
    expect(steps.map(({ more }) => more)).toEqual([true, true, false]);
    expect(await Promise.all(taskIds.map(isPurged))).toEqual([true, true, true, true, true]);
  });

  it('counts what would go and what is needed, and takes nothing away', async () => {
    const namespace = space();
    const parent = await submitted(client, { namespace });
    const link = { taskId: parent.taskId, generationId: parent.generation?.id ?? '', attachment: 1 };
    const [child, plain] = [await ended({ namespace, policy: { parent: link } }), await ended({ namespace })];
    expect(await purge({ namespace, validateOnly: true, idempotencyKey: '' })).toMatchObject({ purged: 1n, kept: 1n });
    expect(await Promise.all([child, plain].map(isPurged))).toEqual([false, false]);
    expect(await purge({ namespace })).toMatchObject({ purged: 1n, kept: 1n });
    expect(await Promise.all([child, plain].map(isPurged))).toEqual([false, true]);
    await client.unary(tasks.cancel, { taskId: parent.taskId, requestId: freshKey() });
    expect(await purge({ namespace })).toMatchObject({ purged: 2n, kept: 0n });
  });

  it('is done once under its key, also when it is repeated at the same time', async () => {
    const namespace = space();
    await ended({ namespace });
    const idempotencyKey = freshKey('purge');
    const both = await Promise.all([purge({ namespace, idempotencyKey }), purge({ namespace, idempotencyKey })]);
    expect(both.map(({ purged }) => purged)).toEqual([1n, 1n]);
    expect(both.map(({ replayed }) => replayed).sort()).toEqual([false, true]);
    await ended({ namespace });
    expect(await purge({ namespace, idempotencyKey })).toMatchObject({ purged: 1n, replayed: true });
    expect(await purge({ namespace, validateOnly: true })).toMatchObject({ purged: 1n });
    expect(await refusal(purge({ namespace, idempotencyKey, maxTasks: 5 }))).toMatchObject({
      code: 6,
      reason: 'IDEMPOTENCY_CONFLICT',
      metadata: { idempotency_key: idempotencyKey },
    });
  });

  it.each<[string, Wish]>([
    ['older_than', { olderThan: -1n }],
    ['idempotency_key', { idempotencyKey: '' }],
    ['statuses[0]', { statuses: [TaskStatus.RUNNING] }],
    ['namespace', { namespace: 'No' }],
    ['queue', { queue: ' ' }],
    ['max_tasks', { maxTasks: 10_001 }],
    ['reason', { reason: 'x'.repeat(1_025) }],
  ])('is refused for %s', async (field, wish) => {
    expect(await refusal(purge(wish))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });

  it('must say how old, if only 0', async () => {
    const nothing = client.unary(admin.purge, { idempotencyKey: freshKey() });
    expect(await refusal(nothing)).toMatchObject({ reason: 'MALFORMED', field: 'older_than' });
  });

  it('refuses a token that was given for something else', async () => {
    const namespace = space();
    for (let at = 0; at < 2; at++) await ended({ namespace });
    const { nextPageToken: pageToken } = await purge({ namespace, maxTasks: 1 });
    expect(pageToken).not.toBe('');
    expect(await refusal(purge({ namespace, queue: 'q', pageToken }))).toMatchObject({ reason: 'CURSOR_INVALID' });
  });
});

describe('the names of a purged task', () => {
  let taskId: string;
  const key = freshKey('purged');
  const namespace = space();
  const submission = { namespace, actionKind: 'agent', executionTarget: 1, idempotencyKey: key };

  beforeAll(async () => {
    taskId = await ended({ ...submission, policy: { retention: { seconds: 60n } } });
    await purge({ namespace });
  });

  it('bring its stub, by id and by key, in every view', async () => {
    const stub = {
      taskId,
      namespace,
      idempotencyKey: key,
      generation: { number: 1 },
      status: TaskStatus.CANCELLED,
      outcome: TaskOutcome.CANCELLED,
      purged: true,
    };
    for (const view of [TaskView.NAME, TaskView.BASIC, TaskView.FULL]) {
      const { task } = await client.unary(tasks.get, { taskId, view });
      expect(task).toMatchObject(stub);
      expect(task?.applicationHash).toMatch(/^sha256:[0-9a-f]{64}$/);
      expect(task?.finishTime).toBeDefined();
      expect([task?.application, task?.policy]).toEqual([undefined, undefined]);
    }
    expect((await client.unary(tasks.get, { namespace, idempotencyKey: key })).task).toMatchObject(stub);
    expect((await client.unary(tasks.list, { filter: { namespace } })).tasks).toEqual([]);
  });

  it('are replayed for the same application, in a call, a batch and a stream', async () => {
    const replay = await client.unary(tasks.submit, submission);
    expect(replay).toMatchObject({
      outcome: SubmitOutcome.REPLAYED,
      task: { taskId, purged: true, status: TaskStatus.CANCELLED },
      transitionId: `${taskId}~r1`,
      event: { eventNumber: 1n },
      ignoredPolicyFields: [],
    });
    expect(replay.event?.sequence).toBeGreaterThan(0n);
    const { verdicts } = await client.unary(tasks.submitBatch, { submissions: [submission], view: TaskView.FULL });
    expect(verdicts[0]?.verdict).toMatchObject({ case: 'accepted', value: { task: { taskId, purged: true } } });
    const stream = client.bidi(tasks.submitStream);
    stream.send({ submissions: [submission] });
    const answer = await stream.next();
    stream.half();
    expect(answer?.verdicts[0]?.verdict).toMatchObject({ case: 'accepted', value: { task: { taskId, purged: true } } });
  });

  it('conflict with another application, with its fields named, and keep the id taken', async () => {
    const other = { ...submission, argsForm: { case: 'argsJson' as const, value: '{"n":1}' } };
    const conflict = await refusal(client.unary(tasks.submit, other));
    expect(conflict).toMatchObject({
      code: 6,
      reason: 'IDEMPOTENCY_CONFLICT',
      metadata: { task_id: taskId, pointers: '["/args"]' },
    });
    const taken = { ...submission, idempotencyKey: freshKey(), taskId };
    expect(await refusal(client.unary(tasks.submit, taken))).toMatchObject({ code: 6, reason: 'TASK_ID_TAKEN' });
  });

  it('are no task for every other call', async () => {
    const idempotencyKey = freshKey();
    const scope = { case: 'taskId' as const, value: taskId };
    const answers = [
      () => client.unary(tasks.cancel, { taskId, requestId: freshKey() }),
      () => client.unary(tasks.resume, { taskId, idempotencyKey }),
      () =>
        client.unary(tasks.transition, {
          taskId,
          idempotencyKey,
          intent: { case: 'skip', value: {} },
          cause: { reason: { code: 'run.skipped.operator' } },
        }),
      () => client.unary(tasks.updatePolicy, { taskId, idempotencyKey, policy: { priority: 1 } }),
      () => client.unary(tasks.listEvents, { taskId }),
      () => client.unary(tasks.explain, { taskId }),
      () => client.unary(tasks.submit, { ...submission, idempotencyKey, policy: { dependsOn: [{ taskId }] } }),
    ];
    for (const answer of answers) {
      expect(await refusal(answer())).toMatchObject({
        code: 5,
        reason: 'TASK_NOT_FOUND',
        metadata: { task_id: taskId, purged: 'true' },
      });
    }
    const watch = client.serverStream(tasks.watch, { scope });
    expect(refusedOf(await watch.ended)).toMatchObject({ code: 5, metadata: { purged: 'true' } });
  });
});

it('keeps the retention of a task that ends, and refuses to change it afterwards', async () => {
  const { taskId } = await submitted(client, { policy: { retention: { seconds: 86_400n } } });
  const update = (seconds: bigint) =>
    client.unary(tasks.updatePolicy, { taskId, idempotencyKey: freshKey(), policy: { retention: { seconds } } });
  const { task } = await update(7_200n);
  expect(task?.policy?.retention).toMatchObject({ seconds: 7_200n });
  await client.unary(tasks.cancel, { taskId, requestId: freshKey() });
  expect(await refusal(update(1n))).toMatchObject({ reason: 'TERMINAL_GENERATION' });
});
