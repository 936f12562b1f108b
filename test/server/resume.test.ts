// Resume through a real server: the same generation, the next one, new input, and its refusals.

import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { Conflict, type ResumeRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { Worker, accepted, started, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const resume = (request: MessageInitShape<typeof ResumeRequestSchema>) =>
  fixture.client.unary(tasks.resume, { idempotencyKey: freshKey('resume'), ...request });

async function cancelled(): Promise<string> {
  const { taskId } = await submitted(fixture.client);
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  return taskId;
}

it('gives a finished task a new generation, of the id that was asked for or of one that is made', async () => {
  const taskId = await cancelled();
  const named = await resume({ taskId, newGenerationId: 'second' });
  expect(named).toMatchObject({ applied: true, conflict: Conflict.NONE, replayed: false });
  expect(named.task).toMatchObject({ status: TaskStatus.QUEUED, generation: { id: 'second', number: 2 } });
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  const made = await resume({ taskId });
  expect(made.task?.generation?.number).toBe(3);
  expect(made.task?.generation?.id).toMatch(/^[0-9a-f-]{36}$/);
});

it('refuses a generation id that was used before, and still replays the request that used it', async () => {
  const taskId = await cancelled();
  const request = { taskId, newGenerationId: 'once', idempotencyKey: freshKey('resume') };
  const first = await resume(request);
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  await resume({ taskId });
  await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
  const used = await refusal(resume({ taskId, newGenerationId: 'once' }));
  expect(used).toMatchObject({ reason: 'MALFORMED', field: 'new_generation_id' });
  const again = await resume(request);
  expect(again).toMatchObject({ replayed: true, transitionId: first.transitionId });
});

it('hands its input to the next claim', async () => {
  const worker = await Worker.start(fixture.client);
  const { taskId } = await submitted(fixture.client, { queue: worker.queue });
  const claim = await worker.claim();
  const checkpoint = { case: 'checkpoint' as const, value: { checkpointJson: '{"page":2}' } };
  await worker.say(claim, [accepted, started, checkpoint, { case: 'suspended', value: { reason: 'needs a person' } }]);
  const { task } = await resume({ taskId, inputJson: '{"answer":42}' });
  expect(task?.reason?.code).toBe('run.resumed.input');
  expect(await worker.claim()).toMatchObject({
    taskId,
    epoch: 2n,
    attempt: 1,
    resumeInputJson: '{"answer":42}',
    checkpointJson: '{"page":2}',
  });
  const full = await fixture.client.unary(tasks.get, { taskId, view: TaskView.FULL });
  expect(full.task).toMatchObject({ resumeInputJson: '{"answer":42}', checkpointJson: '{"page":2}' });
  worker.stop();
});

it('says what stands in its way', async () => {
  const { taskId } = await submitted(fixture.client);
  expect(await refusal(resume({ taskId }))).toMatchObject({ code: 9, reason: 'INVALID_TRANSITION' });
  expect(await refusal(resume({ taskId, generationId: 'x' }))).toMatchObject({ reason: 'STALE_GENERATION' });
  expect(await refusal(resume({ taskId: 'nobody' }))).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
  expect(await refusal(resume({ taskId, idempotencyKey: '' }))).toMatchObject({ field: 'idempotency_key' });
  expect(await refusal(resume({ taskId, inputJson: '{' }))).toMatchObject({ field: 'input_json' });
  expect(await refusal(resume({ taskId, newGenerationId: '' }))).toMatchObject({ field: 'new_generation_id' });
  expect(await resume({ taskId, expectedRevision: 9n })).toMatchObject({ applied: false, conflict: Conflict.REVISION });
});
