// UpdatePolicy through a real server: what the mask means, its guards and keys, its fact, and what it refuses.

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { Conflict, type UpdatePolicyRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { Fields } from '../../src/wire/message-fields.js';
import { completed, running, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const update = (request: Fields<typeof UpdatePolicyRequestSchema>) =>
  fixture.client.unary(tasks.updatePolicy, { idempotencyKey: freshKey('update'), ...request });

const given = { priority: 3, description: 'before', timeout: { seconds: 60n }, labels: { team: 'a' } };

describe('which fields change', () => {
  it('without a mask: those that are set, 0 and empty text too', async () => {
    const { taskId } = await submitted(fixture.client, { policy: given });
    const { task, applied } = await update({ taskId, policy: { priority: 0, description: '' } });
    expect(applied).toBe(true);
    expect(task?.policy).toMatchObject({ priority: 0, description: '', timeout: { seconds: 60n } });
    expect(task?.labels).toEqual({ team: 'a' });
  });

  it('with a mask: those that are named, back to their default where no value is given', async () => {
    const { taskId } = await submitted(fixture.client, { policy: given });
    const { task } = await update({
      taskId,
      policy: { priority: 9, retry: { maxAttempts: 7 }, cancellationPolicy: 2 },
      updateMask: { paths: ['timeout', 'labels', 'retry'] },
    });
    expect(task?.policy).toMatchObject({ priority: 3, description: 'before', retry: { maxAttempts: 7 } });
    expect(task?.policy?.timeout).toBeUndefined();
    expect(task?.labels).toEqual({});
    expect(task?.maxAttempts).toBe(7);
  });

  it('each that can, at once', async () => {
    const { taskId } = await submitted(fixture.client);
    const until = timestampFromDate(new Date('2100-01-01T00:00:00Z'));
    const policy = {
      priority: 1,
      labels: { a: 'b' },
      description: 'd',
      timeout: { seconds: 4_000_000_000n / 20n },
      startBy: { seconds: 2n, nanos: 0 },
      notBefore: until,
      attemptTimeout: { seconds: 3n, nanos: 0 },
      progressTimeout: { seconds: 4n, nanos: 0 },
      retry: { maxAttempts: 5 },
    };
    const { task } = await update({ taskId, policy });
    const { labels, timeout, ...rest } = policy;
    expect(task).toMatchObject({ labels, policy: { ...rest, timeout } });
    expect(task?.timers?.notBefore).toEqual(until);
  });

  it('labels are found by their new values and no longer by the old ones', async () => {
    const queue = freshKey('queue');
    const { taskId } = await submitted(fixture.client, { queue, policy: given });
    await update({ taskId, policy: { labels: { team: 'b' } } });
    const found = async (team: string) =>
      (await fixture.client.unary(tasks.list, { filter: { queue, labels: { team } } })).tasks.map((one) => one.taskId);
    expect(await found('b')).toEqual([taskId]);
    expect(await found('a')).toEqual([]);
  });
});

describe('the fact', () => {
  it('is named, tells what changed, and takes a revision', async () => {
    const { taskId, revision } = await submitted(fixture.client, { policy: given });
    const answer = await update({
      taskId,
      policy: { priority: 8 },
      updateMask: { paths: ['priority', 'timeout'] },
      cause: { actor: { type: 3, id: 'ann' }, reason: { code: 'app.ops.hurry' } },
    });
    expect(answer).toMatchObject({ transitionId: `${taskId}~r2`, event: { eventId: `${taskId}~e2` } });
    expect(answer.task?.revision).toBe(revision + 1n);
    const { events } = await fixture.client.unary(tasks.listEvents, { taskId });
    expect(events[1]).toMatchObject({ type: 'reeve.task.policy_updated', reason: { code: 'app.ops.hurry' } });
    expect(JSON.parse(events[1]?.payloadJson ?? '')).toEqual({
      task_id: taskId,
      policy: { priority: 8, timeout_ms: null },
    });
  });

  it('replays its key, and refuses the key with another content', async () => {
    const { taskId } = await submitted(fixture.client);
    const request = { taskId, idempotencyKey: freshKey('update'), policy: { priority: 2 } };
    const first = await update(request);
    await update({ taskId, policy: { priority: 3 } });
    const again = await update(request);
    expect(again).toMatchObject({ applied: true, replayed: true, transitionId: first.transitionId });
    expect(again.task?.policy?.priority).toBe(3);
    const other = await refusal(update({ ...request, policy: { priority: 4 } }));
    expect(other).toMatchObject({ code: 6, reason: 'IDEMPOTENCY_CONFLICT' });
  });
});

describe('guards', () => {
  it('a revision that does not hold is an answer', async () => {
    const { taskId } = await submitted(fixture.client);
    const answer = await update({ taskId, policy: { priority: 2 }, expectedRevision: 7n });
    expect(answer).toMatchObject({ applied: false, conflict: Conflict.REVISION, transitionId: '' });
    expect(answer.task?.policy?.priority).toBe(0);
    expect(await update({ taskId, policy: { priority: 2 }, expectedRevision: 1n })).toMatchObject({ applied: true });
  });

  it('another generation and one that is over are refused', async () => {
    const { taskId, generation } = await submitted(fixture.client);
    const stale = await refusal(update({ taskId, policy: { priority: 2 }, generationId: 'other' }));
    expect(stale.reason).toBe('STALE_GENERATION');
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
    const over = update({ taskId, policy: { priority: 2 }, generationId: generation?.id ?? '' });
    expect(await refusal(over)).toMatchObject({ code: 9, reason: 'TERMINAL_GENERATION' });
    const unknown = await refusal(update({ taskId: 'nobody', policy: { priority: 2 } }));
    expect(unknown).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
  });
});

describe('MALFORMED, with the field', () => {
  it.each<[string, Fields<typeof UpdatePolicyRequestSchema>]>([
    ['policy', {}],
    ['policy', { policy: {} }],
    ['policy.priority', { policy: { priority: 101 } }],
    ['policy.timeout', { policy: { timeout: { seconds: 0n } } }],
    ['policy.timeout', { policy: { timeout: { seconds: 315_360_001n } } }],
    ['policy.retry.max_attempts', { policy: { retry: { maxAttempts: 0 } } }],
    ['policy.cancellation_policy', { policy: { cancellationPolicy: 2 } }],
    ['policy.concurrency_key', { policy: { concurrencyKey: 'k' } }],
    ['policy.parent', { policy: { parent: { taskId: 'p' } } }],
    ['policy.depends_on', { policy: { dependsOn: [{ taskId: 'p' }] } }],
    ['update_mask', { policy: { priority: 1 }, updateMask: { paths: ['priority', 'concurrency_key'] } }],
    ['update_mask', { policy: { priority: 1 }, updateMask: { paths: ['nonsense'] } }],
    ['expected_revision', { policy: { priority: 1 }, expectedRevision: -1n }],
    ['idempotency_key', { policy: { priority: 1 }, idempotencyKey: '' }],
  ])('%s (case %#)', async (field, request) => {
    const { taskId } = await submitted(fixture.client);
    expect(await refusal(update({ taskId, ...request }))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });
});

it('a time-out set while it runs ends it, and its worker is told', async () => {
  const { task, worker, claim } = await running(fixture.client);
  await update({ taskId: task.taskId, policy: { timeout: { nanos: 1_000_000 } } });
  const { losses } = await worker.frame('leasesLost');
  expect(losses).toMatchObject([{ taskId: task.taskId, epoch: claim.epoch }]);
  const { task: after } = await fixture.client.unary(tasks.get, { taskId: task.taskId });
  expect(after?.status).toBe(TaskStatus.TIMED_OUT);
  expect((await worker.say(claim, [completed], 3)).rejected).toHaveLength(1);
  worker.stop();
});
