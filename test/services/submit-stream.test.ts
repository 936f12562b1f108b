// What a SubmitStream holds for a client that sends and does not read.

import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ExecutionTarget, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import {
  SubmitOutcome,
  SubmitStreamRequestSchema,
  SubmitStreamResponseSchema,
} from '../../src/gen/reeve/v1/task_service_pb.js';
import { buildActionKindRegistry } from '../../src/kernel/admission/action-kinds.js';
import { MAX_IN_FLIGHT, submitStreamHandler } from '../../src/services/submit-stream.js';
import { Submissions } from '../../src/services/submit.js';
import { TaskViews } from '../../src/services/task-views.js';
import { MAX_ENCODED_BYTES } from '../../src/services/verdict-outbox.js';
import { openWorker } from '../support/test-worker.js';
import { turns, until } from '../support/turns.js';
import { World } from '../support/world.js';
import { FakeCall } from './fake-call.js';

const RESULT_BYTES = 1_000_000;

async function openStream(world: World) {
  const kinds = buildActionKindRegistry([]);
  if (!kinds.ok) throw new Error('no kinds');
  const { authority } = world;
  const submissions = new Submissions(authority, kinds.value, new TaskViews(authority));
  const onDefect = (error: unknown): void => void world.errors.push(error);
  const call = new FakeCall(SubmitStreamResponseSchema);
  const stream = submitStreamHandler({ authority, kinds: kinds.value, submissions, onDefect })(call);
  return { call, stream };
}

it('reads and encodes no more than its budget, and the rest as the client reads', async () => {
  const world = await World.open();
  const worker = await openWorker(world);
  const { admission } = await world.admit('large');
  await turns();
  const resultJson = JSON.stringify('x'.repeat(RESULT_BYTES));
  await worker.say(admission.taskId, 'accepted', 'started', { kind: 'completed', resultJson, ending: null });
  const { call, stream } = await openStream(world);
  const reads = (): number => world.probe.calls.get('readEvent') ?? 0;
  const before = reads();

  const one = { idempotencyKey: 'large', actionKind: 'agent', executionTarget: ExecutionTarget.HOST };
  const total = 600;
  const submissions = Array.from({ length: total }, () => one);
  stream.received(create(SubmitStreamRequestSchema, { view: TaskView.FULL, submissions }));
  stream.halfClosed();
  await turns(100);
  // Of each that is shown its first event is read and its result.
  const shown = (reads() - before) / 2;
  expect(shown).toBeGreaterThan(0);
  expect(shown * RESULT_BYTES).toBeLessThan(MAX_ENCODED_BYTES + 2 * RESULT_BYTES);
  expect(call.mostPendingBytes).toBeLessThan(3 * RESULT_BYTES);
  expect(call.ended).toBeNull();

  await until(() => {
    call.take(stream);
    return call.ended !== null;
  }, 'the end of the stream');
  expect(call.ended).toBe('ok');
  const verdicts = call.messages.flatMap((message) => message.verdicts);
  expect(verdicts).toHaveLength(total);
  for (const { verdict } of verdicts) {
    if (verdict.case !== 'accepted') throw new Error('a replay was refused');
    expect(verdict.value.outcome).toBe(SubmitOutcome.REPLAYED);
    expect(verdict.value.task?.resultJson).toHaveLength(resultJson.length);
  }
  expect(world.errors).toEqual([]);
});

it('counts what a Struct holds into the window, as it counts text', async () => {
  const world = await World.open();
  const { call, stream } = await openStream(world);
  call.pendingBytes = Number.MAX_SAFE_INTEGER;
  const args = { text: 'x'.repeat(900_000) };
  const submissions = Array.from({ length: 20 }, (_, index) => ({
    idempotencyKey: `struct-${index}`,
    actionKind: 'agent',
    executionTarget: ExecutionTarget.HOST,
    argsForm: { case: 'args' as const, value: args },
  }));
  stream.received(create(SubmitStreamRequestSchema, { submissions }));
  expect(call.paused).toBe(true);
});

it('stops reading once its window is full, and reads on when half of it was taken', async () => {
  const world = await World.open();
  const { call, stream } = await openStream(world);
  call.pendingBytes = Number.MAX_SAFE_INTEGER;
  let sent = 0;
  const send = (): void => {
    const submissions = Array.from({ length: 500 }, () => ({
      idempotencyKey: `window-${(sent += 1)}`,
      actionKind: 'agent',
      executionTarget: ExecutionTarget.HOST,
    }));
    stream.received(create(SubmitStreamRequestSchema, { submissions }));
  };
  while (!call.paused) send();
  expect(sent).toBeGreaterThanOrEqual(MAX_IN_FLIGHT);
  expect(sent).toBeLessThan(MAX_IN_FLIGHT + 500);
  await turns(100);
  // All are judged, and none was taken.
  expect(world.published).toHaveLength(sent);
  expect(call.paused).toBe(true);
  expect(call.messages).toHaveLength(0);
  await until(() => {
    call.take(stream);
    return !call.paused;
  }, 'the end of the pause');
  stream.halfClosed();
  await until(() => {
    call.take(stream);
    return call.ended !== null;
  }, 'the end of the stream');
  expect(call.messages.flatMap((message) => message.verdicts)).toHaveLength(sent);
});
