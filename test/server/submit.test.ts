// Submit and SubmitBatch through a real server: outcomes, every documented refusal, presence and exactness.

import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExecutionTarget, TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { SubmitOutcome, type SubmitRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { Fields } from '../../src/wire/message-fields.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

type Submission = Fields<typeof SubmitRequestSchema>;

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

function submission(more: Submission = {}): Submission {
  return {
    idempotencyKey: freshKey(),
    actionKind: 'agent',
    executionTarget: ExecutionTarget.HOST,
    argsForm: { case: 'argsJson', value: '{"prompt":"hello"}' },
    ...more,
  };
}

const submit = (request: Submission) => fixture.client.unary(tasks.submit, request);

describe('Submit', () => {
  it('admits once, and answers a repeat with the first task and the policy it ignored', async () => {
    const request = submission({ policy: { priority: 1 } });
    const first = await submit(request);
    expect(first).toMatchObject({ outcome: SubmitOutcome.CREATED, transitionId: `${first.task?.taskId}~r1` });
    expect(first.event).toMatchObject({ eventId: `${first.task?.taskId}~e1`, eventNumber: 1n });
    expect(first.task).toMatchObject({
      status: TaskStatus.QUEUED,
      revision: 1n,
      queue: 'default',
      namespace: 'default',
    });
    const again = await submit({ ...request, policy: { priority: 2, labels: { team: 'a' } } });
    expect(again).toMatchObject({ outcome: SubmitOutcome.REPLAYED, ignoredPolicyFields: ['priority', 'labels'] });
    expect(again.task?.taskId).toBe(first.task?.taskId);
    expect(again.event).toEqual(first.event);
  });

  it('lets concurrent submissions of one key converge on one task', async () => {
    const request = submission();
    const answers = await Promise.all(Array.from({ length: 50 }, () => submit(request)));
    expect(new Set(answers.map((answer) => answer.task?.taskId)).size).toBe(1);
    expect(answers.filter((answer) => answer.outcome === SubmitOutcome.CREATED)).toHaveLength(1);
  });

  it('names what differs when a key is used for another application', async () => {
    const request = submission();
    const { task } = await submit(request);
    const other = await refusal(submit({ ...request, argsForm: { case: 'argsJson', value: '{"prompt":"bye"}' } }));
    expect(other).toMatchObject({
      code: grpc.status.ALREADY_EXISTS,
      reason: 'IDEMPOTENCY_CONFLICT',
      domain: 'reeve.dev',
    });
    expect(other.metadata).toMatchObject({ task_id: task?.taskId, pointers: '["/args/prompt"]' });
    expect(other.metadata).not.toHaveProperty('truncated');
  });

  it('keeps a task id for the key that took it', async () => {
    const taskId = freshKey('task');
    await submit(submission({ taskId }));
    const taken = await refusal(submit(submission({ taskId })));
    expect(taken).toMatchObject({ code: grpc.status.ALREADY_EXISTS, reason: 'TASK_ID_TAKEN' });
    expect(taken.metadata['task_id']).toBe(taskId);
  });

  it('refuses a kind that the deployment does not know', async () => {
    const unknown = await refusal(submit(submission({ actionKind: 'teleport' })));
    expect(unknown).toMatchObject({ code: grpc.status.FAILED_PRECONDITION, reason: 'ACTION_KIND_UNREGISTERED' });
    expect(unknown).toMatchObject({ metadata: { action_kind: 'teleport' }, violation: 'ACTION_KIND_UNREGISTERED' });
  });

  it('takes a Struct that is exact, as the same application as its text', async () => {
    const request = submission({ argsForm: { case: 'args', value: { n: 1.5, deep: { list: [null, true, 'x'] } } } });
    const first = await submit(request);
    const argsForm = { case: 'argsJson' as const, value: '{"deep":{"list":[null,true,"x"]},"n":1.5}' };
    const again = await submit({ ...request, argsForm, view: TaskView.FULL });
    expect(again.task?.taskId).toBe(first.task?.taskId);
    expect(again.task?.application?.argsJson).toBe(argsForm.value);
  });

  it('shows as much of the task as was asked for', async () => {
    const name = await submit(submission({ view: TaskView.NAME }));
    expect(name.task).toMatchObject({ status: TaskStatus.QUEUED, lastEventNumber: 1n, queue: '' });
    const basic = await submit(submission());
    expect(basic.task?.application).toMatchObject({ actionKind: 'agent', argsJson: '' });
    const full = await submit(submission({ view: TaskView.FULL, policy: { notBefore: { seconds: 4_000_000_000n } } }));
    expect(full.task?.application?.argsJson).toBe('{"prompt":"hello"}');
    expect(full.task?.timers?.notBefore).toMatchObject({ seconds: 4_000_000_000n });
  });

  it('keeps what the call says of its trace and its door', async () => {
    const metadata = new grpc.Metadata();
    metadata.set('reeve-source', 'cli');
    const { task } = await fixture.client.unary(tasks.submit, submission(), {}, metadata);
    expect(task?.admission).toMatchObject({ source: 3, principal: 'anonymous' });
  });
});

const long = (length: number): string => 'x'.repeat(length);
const json = (value: string): Submission => ({ argsForm: { case: 'argsJson', value } });

/** What is wrong, and the field that must be named. */
const malformed: readonly (readonly [string, Submission, string])[] = [
  ['no key', { idempotencyKey: '' }, 'idempotency_key'],
  ['a key of 256 bytes', { idempotencyKey: long(256) }, 'idempotency_key'],
  ['a key with a control character', { idempotencyKey: 'a\nb' }, 'idempotency_key'],
  ['a key that ends in a space', { idempotencyKey: 'a ' }, 'idempotency_key'],
  ['a reserved key', { idempotencyKey: 'schedule:x:1' }, 'idempotency_key'],
  ['a reserved key of AEP', { idempotencyKey: 'aep:x' }, 'idempotency_key'],
  ['no kind', { actionKind: '' }, 'action_kind'],
  ['a kind that is no name', { actionKind: 'a b' }, 'action_kind'],
  ['no target', { executionTarget: 0 }, 'execution_target'],
  ['an unknown target', { executionTarget: 99 as ExecutionTarget }, 'execution_target'],
  ['an unknown view', { view: 42 as TaskView }, 'view'],
  ['a namespace in capitals', { namespace: 'A' }, 'namespace'],
  ['a queue with a space', { queue: 'a b' }, 'queue'],
  ['a task id with ~', { taskId: 'a~1' }, 'task_id'],
  ['a task id of 129', { taskId: long(129) }, 'task_id'],
  ['a capability with a space', { requiredCapabilities: ['a b'] }, 'required_capabilities[0]'],
  ['65 capabilities', { requiredCapabilities: Array.from({ length: 65 }, (_, i) => `c${i}`) }, 'required_capabilities'],
  ['a workflow without its ref', { actionKind: 'workflow' }, 'library_ref'],
  ['a content hash in capitals', { libraryContentHash: `sha256:${'A'.repeat(64)}` }, 'library_content_hash'],
  ['an actor that is the authority', { actor: { type: 5 } }, 'actor.type'],
  ['an unknown actor', { actor: { type: 77 as 1 } }, 'actor.type'],
  ['an actor id of 256', { actor: { type: 1, id: long(256) } }, 'actor.id'],
  ['a causation of 256', { causationId: long(256) }, 'causation_id'],
  ['another trace header', { traceContext: { baggage: 'x' } }, 'trace_context'],
  ['args that are no object', json('[]'), 'args_json'],
  ['args that are no JSON', json('{'), 'args_json'],
  ['a repeated member', json('{"a":1,"a":2}'), 'args_json'],
  ['a number that is not exact', json('{"a":0.1000000000000000055}'), 'args_json'],
  ['an integer beyond 2^53', json('{"a":1e21}'), 'args_json'],
  ['a lone surrogate', json('{"a":"\\ud800"}'), 'args_json'],
  ['args 33 levels deep', json(`{"a":${'['.repeat(32)}${']'.repeat(32)}}`), 'args_json'],
  ['args of 10,001 elements', json(`{"a":[${'0,'.repeat(9_999)}0]}`), 'args_json'],
  ['args above 1 MiB', json(`{"a":"${long(1_048_576)}"}`), 'args_json'],
  ['a Struct with NaN', { argsForm: { case: 'args', value: { a: Number.NaN } } }, 'args'],
  ['a Struct with 2^53', { argsForm: { case: 'args', value: { a: 2 ** 53 } } }, 'args'],
  ['a priority of 101', { policy: { priority: 101 } }, 'policy.priority'],
  [
    '65 labels',
    { policy: { labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, ''])) } },
    'policy.labels',
  ],
  ['a label value with a control', { policy: { labels: { a: '\u0001' } } }, 'policy.labels["a"]'],
  ['a description above 4 KiB', { policy: { description: long(4_097) } }, 'policy.description'],
  ['no time at all', { policy: { timeout: { seconds: 0n } } }, 'policy.timeout'],
  ['less than a millisecond', { policy: { timeout: { nanos: 999_999 } } }, 'policy.timeout'],
  ['a negative span', { policy: { startBy: { seconds: -1n } } }, 'policy.start_by'],
  ['a negative fraction', { policy: { attemptTimeout: { nanos: -1 } } }, 'policy.attempt_timeout'],
  ['signs that differ', { policy: { attemptTimeout: { seconds: 1n, nanos: -1 } } }, 'policy.attempt_timeout'],
  ['nanos of a second and more', { policy: { progressTimeout: { nanos: 1_000_000_000 } } }, 'policy.progress_timeout'],
  ['seconds beyond a Duration', { policy: { timeout: { seconds: 400_000_000_000n } } }, 'policy.timeout'],
  ['more than 10 years', { policy: { timeout: { seconds: 315_360_001n } } }, 'policy.timeout'],
  ['a time beyond year 9999', { policy: { notBefore: { seconds: 253_402_300_800n } } }, 'policy.not_before'],
  ['a time with negative nanos', { policy: { notBefore: { nanos: -1 } } }, 'policy.not_before'],
  ['an unknown cancellation policy', { policy: { cancellationPolicy: 9 as 1 } }, 'policy.cancellation_policy'],
  ['no attempts', { policy: { retry: { maxAttempts: 0 } } }, 'policy.retry.max_attempts'],
  ['a multiplier below 1', { policy: { retry: { multiplier: 0.5 } } }, 'policy.retry.multiplier'],
  ['jitter of NaN', { policy: { retry: { jitter: Number.NaN } } }, 'policy.retry.jitter'],
  [
    'a maximum below the initial',
    { policy: { retry: { initial: { seconds: 2n }, maximum: { seconds: 1n } } } },
    'policy.retry.maximum',
  ],
  ['an initial span that is none', { policy: { retry: { initial: { nanos: -5 } } } }, 'policy.retry.initial'],
  ['a code with a space', { policy: { retry: { nonRetryableCodes: ['a b'] } } }, 'policy.retry.non_retryable_codes[0]'],
];

describe('malformed submissions', () => {
  it.each(malformed)('%s', async (_, wrong, field) => {
    const refused = await refusal(submit(submission(wrong)));
    expect(refused).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: 'MALFORMED', domain: 'reeve.dev' });
    expect(refused.metadata['field']).toBe(field);
    expect(refused.field).toBe(field);
  });

  it('names the place inside JSON', async () => {
    const refused = await refusal(submit(submission(json('{"list":[1,{"n":1e400}]}'))));
    expect(refused.metadata).toMatchObject({ field: 'args_json', pointer: '/list/1/n', offset: '16' });
  });

  it('is what a message is that cannot be decoded', async () => {
    const refused = await refusal(fixture.client.unaryBytes(tasks.submit, new Uint8Array([0x0a, 0xff])));
    expect(refused).toMatchObject({ code: grpc.status.INVALID_ARGUMENT, reason: 'MALFORMED' });
  });
});

describe('SubmitBatch', () => {
  it('judges each alone, in the order of the request', async () => {
    const key = freshKey();
    const { verdicts } = await fixture.client.unary(tasks.submitBatch, {
      submissions: [
        submission({ idempotencyKey: key, namespace: 'batch' }),
        submission({ actionKind: '' }),
        submission({ idempotencyKey: key, namespace: 'batch', view: TaskView.NAME }),
        submission({ idempotencyKey: key, namespace: 'batch', actionKind: 'flow' }),
        submission({ view: 9 as TaskView }),
      ],
      view: TaskView.BASIC,
    });
    expect(verdicts.map(({ verdict }) => verdict.case)).toEqual([
      'accepted',
      'refused',
      'accepted',
      'refused',
      'refused',
    ]);
    expect(verdicts[0]).toMatchObject({ idempotencyKey: key, namespace: 'batch' });
    expect(verdicts[0]?.verdict.value).toMatchObject({ outcome: SubmitOutcome.CREATED, task: { queue: 'default' } });
    expect(verdicts[2]?.verdict.value).toMatchObject({ outcome: SubmitOutcome.REPLAYED, task: { queue: '' } });
    const conflict = { grpcCode: grpc.status.ALREADY_EXISTS, metadata: { pointers: '["/action_kind"]' } };
    expect(verdicts[3]?.verdict.value).toMatchObject(conflict);
    expect(verdicts[4]?.verdict.value).toMatchObject({ grpcCode: 3, metadata: { field: 'view' } });
  });

  it('refuses an empty batch and one above 1,000', async () => {
    const empty = await refusal(fixture.client.unary(tasks.submitBatch, {}));
    expect(empty).toMatchObject({ reason: 'MALFORMED', metadata: { field: 'submissions' } });
    const submissions = Array.from({ length: 1_001 }, () => submission());
    const long = await refusal(fixture.client.unary(tasks.submitBatch, { submissions }));
    expect(long).toMatchObject({ reason: 'MALFORMED', metadata: { field: 'submissions' } });
  });

  it('answers a full batch of large tasks within what a client receives', async () => {
    const labels = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`label-${i}`, long(200)]));
    const one = submission({ policy: { labels } });
    await fixture.client.unary(tasks.submit, one);
    const submissions = Array.from({ length: 1_000 }, () => ({ ...one, policy: {} }));
    const { verdicts } = await fixture.client.unary(tasks.submitBatch, { submissions, view: TaskView.FULL });
    expect(verdicts).toHaveLength(1_000);
    expect(verdicts[999]?.verdict.value).toMatchObject({ task: { queue: '' } });
  });
});
