// Families and dependencies through a real server: what a task says of its parent and of those it waits for, each
// refusal by its name and field, and the worker that is told that its lease went with the parent.

import type { MessageInitShape } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  DependencyCondition,
  OnUnsatisfied,
  ParentAttachment,
  type Task,
  type TaskPolicySchema,
  TaskStatus,
} from '../../src/gen/reeve/v1/task_pb.js';
import { CancelState } from '../../src/gen/reeve/v1/task_service_pb.js';
import { LeaseLossCause } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { Worker, accepted, completed, started, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

type Policy = MessageInitShape<typeof TaskPolicySchema>;

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const { ATTACHED, DETACHED } = ParentAttachment;

const under = (parent: Task, attachment = ATTACHED) => ({
  taskId: parent.taskId,
  generationId: parent.generation?.id ?? '',
  attachment,
});

const admit = (policy: Policy = {}, queue = '') => submitted(fixture.client, { policy, queue });
const get = async (taskId: string): Promise<Task | undefined> =>
  (await fixture.client.unary(tasks.get, { taskId })).task;
const cancel = (taskId: string) => fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
const refused = (policy: Policy, taskId = '') => refusal(submitted(fixture.client, { policy, taskId }));

describe('a submission', () => {
  it('says its parent, and is found by it', async () => {
    const parent = await admit();
    const attached = await admit({ parent: under(parent) });
    const detached = await admit({ parent: { taskId: parent.taskId, attachment: DETACHED } });
    expect(attached.parent).toMatchObject({ ...under(parent) });
    expect(detached.parent).toMatchObject({ ...under(parent, DETACHED) });
    expect((await get(parent.taskId))?.parent).toBeUndefined();
    const listed = await fixture.client.unary(tasks.list, { filter: { parentTaskId: parent.taskId } });
    expect(listed.tasks.map(({ taskId }) => taskId)).toEqual([detached.taskId, attached.taskId]);
  });

  it('says what it waits for, and waits', async () => {
    const [one, two] = [await admit(), await admit()];
    const dependsOn = [
      { taskId: one.taskId },
      { taskId: two.taskId, condition: DependencyCondition.TERMINAL },
      { taskId: one.taskId, condition: DependencyCondition.SUCCEEDED },
    ];
    const waiter = await admit({ dependsOn, onUnsatisfied: OnUnsatisfied.FAIL });
    expect(waiter).toMatchObject({
      status: TaskStatus.WAITING_DEPENDENCY,
      revision: 2n,
      policy: {
        dependsOn: [
          { taskId: one.taskId, condition: DependencyCondition.SUCCEEDED },
          { taskId: two.taskId, condition: DependencyCondition.TERMINAL },
        ],
        onUnsatisfied: OnUnsatisfied.FAIL,
      },
    });
    await cancel(two.taskId);
    expect((await get(waiter.taskId))?.status).toBe(TaskStatus.WAITING_DEPENDENCY);
    await cancel(one.taskId);
    expect(await get(waiter.taskId)).toMatchObject({
      status: TaskStatus.FAILED,
      reason: { code: 'run.failed.dependency' },
      error: { code: 'dependency_unsatisfied' },
    });
  });

  it('of a batch may name one before it, and not one after it', async () => {
    const ids = [freshKey('id'), freshKey('id'), freshKey('id')];
    const [first = '', second = '', third = ''] = ids;
    const one = (taskId: string, dependency: string | null) => ({
      idempotencyKey: freshKey(),
      actionKind: 'agent',
      executionTarget: 1,
      taskId,
      policy: dependency === null ? {} : { dependsOn: [{ taskId: dependency }] },
    });
    const { verdicts } = await fixture.client.unary(tasks.submitBatch, {
      submissions: [one(first, null), one(second, first), one(freshKey('id'), third), one(third, null)],
    });
    expect(verdicts.map(({ verdict }) => verdict.case)).toEqual(['accepted', 'accepted', 'refused', 'accepted']);
  });

  it('is replayed when its parent is over, with what differs ignored', async () => {
    const parent = await admit();
    const request = { idempotencyKey: freshKey(), actionKind: 'agent', executionTarget: 1 } as const;
    const first = await fixture.client.unary(tasks.submit, { ...request, policy: { parent: under(parent) } });
    await cancel(parent.taskId);
    const again = await fixture.client.unary(tasks.submit, { ...request, policy: { parent: under(parent) } });
    expect(again).toMatchObject({ task: { taskId: first.task?.taskId }, ignoredPolicyFields: [] });
    const without = await fixture.client.unary(tasks.submit, { ...request, policy: { dependsOn: [{ taskId: 'x' }] } });
    expect(without.ignoredPolicyFields).toEqual(['parent', 'depends_on']);
  });
});

describe('a submission is refused', () => {
  it('TASK_NOT_FOUND when its parent or a dependency is unknown', async () => {
    const parent = { taskId: 'nobody', generationId: 'g', attachment: ATTACHED };
    expect(await refused({ parent })).toMatchObject({
      code: grpc.status.NOT_FOUND,
      reason: 'TASK_NOT_FOUND',
      metadata: { task_id: 'nobody', field: 'policy.parent.task_id' },
    });
    const known = await admit();
    expect(await refused({ dependsOn: [{ taskId: known.taskId }, { taskId: 'nobody' }] })).toMatchObject({
      reason: 'TASK_NOT_FOUND',
      metadata: { field: 'policy.depends_on[1].task_id' },
    });
  });

  it('PARENT_CONSTRAINT under a parent that is over, or in another generation', async () => {
    const parent = await admit();
    expect(await refused({ parent: { ...under(parent), generationId: 'other' } })).toMatchObject({
      code: grpc.status.FAILED_PRECONDITION,
      reason: 'PARENT_CONSTRAINT',
      metadata: {
        parent_task_id: parent.taskId,
        parent_status: 'queued',
        parent_generation_id: parent.generation?.id,
      },
    });
    await cancel(parent.taskId);
    expect(await refused({ parent: under(parent) })).toMatchObject({
      reason: 'PARENT_CONSTRAINT',
      metadata: { parent_status: 'cancelled' },
    });
  });

  const malformed: readonly (readonly [Policy, string])[] = [
    [{ parent: { taskId: 'p', generationId: 'g' } }, 'policy.parent.attachment'],
    [{ parent: { taskId: 'p', attachment: ATTACHED } }, 'policy.parent.generation_id'],
    [{ parent: { taskId: '', generationId: 'g', attachment: ATTACHED } }, 'policy.parent.task_id'],
    [{ parent: { taskId: 'me', generationId: 'g', attachment: ATTACHED } }, 'policy.parent.task_id'],
    [{ dependsOn: [{ taskId: 'me' }] }, 'policy.depends_on[0].task_id'],
    [{ dependsOn: [{ taskId: 'a~b' }] }, 'policy.depends_on[0].task_id'],
    [{ dependsOn: [{ taskId: 'a' }, { taskId: 'a', condition: 2 }] }, 'policy.depends_on[1].condition'],
    [{ dependsOn: [{ taskId: 'a', condition: 9 as 1 }] }, 'policy.depends_on[0].condition'],
    [{ dependsOn: Array.from({ length: 101 }, (_, n) => ({ taskId: `t${String(n)}` })) }, 'policy.depends_on'],
    [{ onUnsatisfied: 9 as 1 }, 'policy.on_unsatisfied'],
    [
      { parent: { taskId: 'p', generationId: 'g', attachment: ATTACHED }, dependsOn: [{ taskId: 'p' }] },
      'policy.depends_on[0].task_id',
    ],
  ];
  it.each(malformed)('MALFORMED: %j', async (policy, field) => {
    expect(await refused(policy, 'me')).toMatchObject({ reason: 'MALFORMED', field });
  });
});

describe('a parent', () => {
  it('that is cancelled takes its children with it, and their workers are told', async () => {
    const worker = await Worker.start(fixture.client);
    const parent = await admit();
    const running = await admit({ parent: under(parent) }, worker.queue);
    const claim = await worker.claim();
    await worker.say(claim, [accepted], 1);
    const queued = await admit({ parent: under(parent) });
    expect(await cancel(parent.taskId)).toMatchObject({ state: CancelState.CANCELLED });
    expect(await get(queued.taskId)).toMatchObject({
      status: TaskStatus.CANCELLED,
      reason: { code: 'run.cancelled.parent' },
    });
    const { losses } = await worker.frame('leasesLost');
    expect(losses).toMatchObject([{ taskId: running.taskId, cause: LeaseLossCause.PARENT }]);
    expect(await get(running.taskId)).toMatchObject({ status: TaskStatus.CANCELLED });
  });

  it('cannot complete while attached children live: CHILDREN_ACTIVE', async () => {
    const worker = await Worker.start(fixture.client);
    const parent = await admit({}, worker.queue);
    const claim = await worker.claim();
    await worker.say(claim, [accepted, started], 1);
    const child = await admit({ parent: under(parent) });
    const verdict = await worker.say(claim, [completed], 3);
    expect(verdict.rejected).toMatchObject([{ eventSeq: 3n }]);
    expect(JSON.stringify(verdict.rejected, withoutBigInts)).toContain('"children":"1"');
    await cancel(child.taskId);
    await worker.say(claim, [completed], 4);
    expect((await get(parent.taskId))?.status).toBe(TaskStatus.COMPLETED);
  });
});

function withoutBigInts(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
