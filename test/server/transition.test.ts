// Transition through a real server: every intent, guards as answers, refusals in their order, keys, validate_only.

import { status as grpcStatus } from '@grpc/grpc-js';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { Conflict, IntentKind, type TransitionRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { completed, running, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

type Request = MessageInitShape<typeof TransitionRequestSchema>;
type Intent = Exclude<Request['intent'], undefined>;

const suspend: Intent = { case: 'suspend', value: {} };
const resume: Intent = { case: 'resume', value: {} };
const cancel: Intent = { case: 'requestCancellation', value: {} };
const skip: Intent = { case: 'skip', value: {} };
const complete: Intent = { case: 'settleCompletion', value: { resultJson: '[1]', resultRef: 'https://r' } };
const fail: Intent = { case: 'settleFailure', value: { error: { code: 'broken', message: 'it broke' } } };

const transition = (taskId: string, intent: Intent, more: Request = {}) =>
  fixture.client.unary(tasks.transition, { taskId, idempotencyKey: freshKey('intent'), intent, ...more });

const bySomeone = { reason: { code: 'run.skipped.operator' } };

describe('intents', () => {
  it('hold, release and skip what has not started', async () => {
    const { taskId } = await submitted(fixture.client);
    const held = await transition(taskId, suspend, { cause: { actor: { type: 3, id: 'ann' } } });
    expect(held).toMatchObject({
      applied: true,
      conflict: Conflict.NONE,
      previousStatus: TaskStatus.QUEUED,
      currentStatus: TaskStatus.SUSPENDED,
      transitionId: `${taskId}~r2`,
      event: { eventId: `${taskId}~e2`, eventNumber: 2n },
    });
    expect(await transition(taskId, resume)).toMatchObject({
      currentStatus: TaskStatus.QUEUED,
      task: { revision: 3n },
    });
    const skipped = await transition(taskId, skip, { cause: bySomeone });
    expect(skipped).toMatchObject({
      currentStatus: TaskStatus.SKIPPED,
      task: { reason: { code: 'run.skipped.operator' } },
    });
  });

  it('settle a running task for whoever holds its lease', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const lease = { epoch: claim.epoch, leaseToken: claim.leaseToken };
    const done = await transition(task.taskId, complete, { lease });
    expect(done).toMatchObject({ applied: true, currentStatus: TaskStatus.COMPLETED });
    const [event] = (await history(task.taskId)).slice(-1);
    expect(event).toMatchObject({ type: 'task.completed', actor: { type: 2, id: 'worker' } });
    expect(JSON.parse(event?.payloadJson ?? '')).toMatchObject({
      result: [1],
      result_ref: 'https://r',
      state: 'completed',
    });
    worker.stop();
  });

  it('fail, time out and cancel with what the caller says of it', async () => {
    const failing = await running(fixture.client, { policy: { retry: { maxAttempts: 1 } } });
    const lease = { epoch: failing.claim.epoch, leaseToken: failing.claim.leaseToken };
    const failed = await transition(failing.task.taskId, fail, { lease });
    expect(failed.task).toMatchObject({ status: TaskStatus.FAILED, error: { code: 'broken', retryable: true } });
    failing.worker.stop();
    const late = await running(fixture.client);
    const held = { epoch: late.claim.epoch, leaseToken: late.claim.leaseToken };
    const timedOut = await transition(late.task.taskId, { case: 'settleTimeout', value: {} }, { lease: held });
    expect(timedOut.task).toMatchObject({ status: TaskStatus.TIMED_OUT, error: { code: 'task_timeout' } });
    late.worker.stop();
    const asked = await running(fixture.client);
    const of = { epoch: asked.claim.epoch, leaseToken: asked.claim.leaseToken };
    const cancelled = await transition(asked.task.taskId, { case: 'settleCancellation', value: {} }, { lease: of });
    expect(cancelled.task).toMatchObject({ status: TaskStatus.CANCELLED });
    asked.worker.stop();
  });

  it('leave the time-out of what nobody runs to its deadlines', async () => {
    const { taskId } = await submitted(fixture.client);
    const timeOut = await refusal(transition(taskId, { case: 'settleTimeout', value: {} }));
    expect(timeOut).toMatchObject({ code: grpcStatus.FAILED_PRECONDITION, reason: 'INVALID_TRANSITION' });
    expect((await transition(taskId, fail)).task).toMatchObject({ status: TaskStatus.FAILED });
  });

  it('retry after the wait that the failure asks for', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const lease = { epoch: claim.epoch, leaseToken: claim.leaseToken };
    const wait: Intent = { case: 'settleFailure', value: { error: { code: 'busy' }, retryAfter: { seconds: 3_600n } } };
    const { task: waiting } = await transition(task.taskId, wait, { lease });
    expect(waiting).toMatchObject({ status: TaskStatus.RETRY_WAIT, phase: { blockedReason: 'retry' } });
    const waitMs = Number(waiting?.timers?.retryTime?.seconds ?? 0n) * 1_000 - Date.now();
    expect(waitMs).toBeGreaterThan(3_500_000);
    worker.stop();
  });
});

describe('guards', () => {
  it('that do not hold are answers with what was found', async () => {
    const { taskId } = await submitted(fixture.client);
    const wrongStatus = await transition(taskId, suspend, { fromStatus: TaskStatus.RUNNING });
    expect(wrongStatus).toMatchObject({
      applied: false,
      conflict: Conflict.FROM_STATUS,
      currentStatus: TaskStatus.QUEUED,
    });
    expect([wrongStatus.transitionId, wrongStatus.event]).toEqual(['', undefined]);
    const wrongRevision = await transition(taskId, suspend, { expectedRevision: 7n });
    expect(wrongRevision).toMatchObject({ applied: false, conflict: Conflict.REVISION, task: { revision: 1n } });
    const wrongLease = await transition(taskId, suspend, { lease: { epoch: 1n, leaseToken: 'guess' } });
    expect(wrongLease).toMatchObject({ applied: false, conflict: Conflict.LEASE });
    const right = { fromStatus: TaskStatus.QUEUED, expectedRevision: 1n };
    expect(await transition(taskId, suspend, right)).toMatchObject({ applied: true });
  });

  it('are of any intent: a lease that is not held keeps a cancel from being asked for', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const lease = { epoch: claim.epoch, leaseToken: 'x'.repeat(22) };
    expect(await transition(task.taskId, cancel, { lease })).toMatchObject({ conflict: Conflict.LEASE });
    worker.stop();
  });
});

describe('refusals', () => {
  it.each<[string, Request, string]>([
    ['no task', { taskId: '' }, 'task_id'],
    ['no key', { idempotencyKey: '' }, 'idempotency_key'],
    ['a key of 256 bytes', { idempotencyKey: 'x'.repeat(256) }, 'idempotency_key'],
    ['no intent', { intent: { case: undefined } }, 'intent'],
    ['an empty generation', { generationId: '' }, 'generation_id'],
    ['no status to guard with', { fromStatus: 0 }, 'from_status'],
    ['an unknown status', { fromStatus: 55 as 1 }, 'from_status'],
    ['a negative revision', { expectedRevision: -1n }, 'expected_revision'],
    ['a lease without a token', { lease: { epoch: 1n } }, 'lease.lease_token'],
    ['a lease without an epoch', { lease: { leaseToken: 'x' } }, 'lease.epoch'],
    ['an actor of the authority', { cause: { actor: { type: 10 } } }, 'cause.actor.type'],
    ['a reason of the authority', { cause: { reason: { code: 'run.completed.worker' } } }, 'cause.reason.code'],
    ['a reason of nobody', { cause: { reason: { code: 'whim' } } }, 'cause.reason.code'],
    [
      '33 references',
      { cause: { reason: { code: 'app.a.b', evidenceRefs: Array<string>(33).fill('r') } } },
      'cause.reason.evidence_refs',
    ],
    ['a source of 129 bytes', { cause: { source: 'x'.repeat(129) } }, 'cause.source'],
    ['an unknown view', { view: 9 as 1 }, 'view'],
    ['a failure without its error', { intent: { case: 'settleFailure', value: {} } }, 'settle_failure.error'],
    [
      'an error without its code',
      { intent: { case: 'settleFailure', value: { error: { message: 'm' } } } },
      'settle_failure.error.code',
    ],
    [
      'a result that is no JSON',
      { intent: { case: 'settleCompletion', value: { resultJson: '{' } } },
      'settle_completion.result_json',
    ],
    [
      'a result above 1 MiB',
      { intent: { case: 'settleCompletion', value: { resultJson: `"${'x'.repeat(1_048_576)}"` } } },
      'settle_completion.result_json',
    ],
    ['an input that is no JSON', { intent: { case: 'resume', value: { inputJson: 'x' } } }, 'resume.input_json'],
    [
      'a generation id with ~',
      { intent: { case: 'resume', value: { newGenerationId: 'a~2' } } },
      'resume.new_generation_id',
    ],
    [
      'a negative grace',
      { intent: { case: 'requestCancellation', value: { grace: { seconds: -1n } } } },
      'request_cancellation.grace',
    ],
    ['a skip without a reason', { intent: skip }, 'cause.reason'],
  ])('MALFORMED: %s', async (_, more, field) => {
    const { taskId } = await submitted(fixture.client);
    const refused = await refusal(transition(taskId, suspend, more));
    expect(refused).toMatchObject({ code: grpcStatus.INVALID_ARGUMENT, reason: 'MALFORMED', field });
  });

  it('TASK_NOT_FOUND, STALE_GENERATION, INVALID_TRANSITION, TERMINAL_GENERATION', async () => {
    const unknown = await refusal(transition('no-such-task', suspend));
    expect(unknown).toMatchObject({ code: grpcStatus.NOT_FOUND, reason: 'TASK_NOT_FOUND' });
    const { taskId } = await submitted(fixture.client);
    const stale = await refusal(transition(taskId, suspend, { generationId: 'other' }));
    expect(stale).toMatchObject({ code: grpcStatus.FAILED_PRECONDITION, reason: 'STALE_GENERATION' });
    expect(stale.metadata).toMatchObject({ current_generation: '1' });
    const illegal = await refusal(transition(taskId, complete));
    expect(illegal).toMatchObject({ reason: 'INVALID_TRANSITION', violation: 'INVALID_TRANSITION' });
    expect(illegal.metadata).toMatchObject({ from_status: 'queued', to_status: 'completed' });
    await transition(taskId, skip, { cause: bySomeone });
    const over = await refusal(transition(taskId, suspend));
    expect(over).toMatchObject({ reason: 'TERMINAL_GENERATION', metadata: { status: 'skipped', generation: '1' } });
  });

  it('LEASE_REQUIRED, CANCELLATION_NOT_REQUESTED, CANCELLATION_FENCED', async () => {
    const { task, worker } = await running(fixture.client, { policy: { cancellationPolicy: 2 } });
    const { taskId } = task;
    expect(await refusal(transition(taskId, complete))).toMatchObject({ code: 9, reason: 'LEASE_REQUIRED' });
    const queued = await submitted(fixture.client);
    const unasked = await refusal(transition(queued.taskId, { case: 'settleCancellation', value: {} }));
    expect(unasked).toMatchObject({ code: 9, reason: 'CANCELLATION_NOT_REQUESTED' });
    const requested = await transition(taskId, cancel);
    const fenced = await refusal(transition(taskId, suspend));
    expect(fenced).toMatchObject({
      reason: 'CANCELLATION_FENCED',
      metadata: { requested_event: requested.event?.eventId },
    });
    worker.stop();
  });

  it('IDEMPOTENCY_CONFLICT names the task; the same content is a replay', async () => {
    const { taskId } = await submitted(fixture.client);
    const idempotencyKey = freshKey('intent');
    const first = await transition(taskId, suspend, { idempotencyKey });
    await transition(taskId, resume);
    const again = await transition(taskId, suspend, { idempotencyKey });
    expect(again).toMatchObject({
      applied: true,
      replayed: true,
      previousStatus: TaskStatus.QUEUED,
      currentStatus: TaskStatus.SUSPENDED,
      transitionId: first.transitionId,
      event: first.event,
      task: { status: TaskStatus.QUEUED },
    });
    const conflict = await refusal(transition(taskId, resume, { idempotencyKey }));
    expect(conflict).toMatchObject({ code: 6, reason: 'IDEMPOTENCY_CONFLICT', metadata: { task_id: taskId } });
  });

  it('a settlement is replayed for its worker though the lease is gone', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const request = { lease: { epoch: claim.epoch, leaseToken: claim.leaseToken }, idempotencyKey: freshKey('intent') };
    const first = await transition(task.taskId, complete, request);
    const again = await transition(task.taskId, complete, request);
    expect(again).toMatchObject({ replayed: true, applied: true, transitionId: first.transitionId });
    worker.stop();
  });
});

describe('proof under FENCED', () => {
  it('completes with an event from before the request, and not with a later one', async () => {
    const { task, claim, worker } = await running(fixture.client, { policy: { cancellationPolicy: 2 } });
    const { taskId } = task;
    await transition(taskId, cancel);
    const lease = { epoch: claim.epoch, leaseToken: claim.leaseToken };
    const late = { lease, cause: { authoritativeEventId: `${taskId}~e5` } };
    expect(await refusal(transition(taskId, complete, late))).toMatchObject({ reason: 'CANCELLATION_FENCED' });
    const proved = await transition(taskId, complete, { lease, cause: { authoritativeEventId: `${taskId}~e4` } });
    expect(proved).toMatchObject({ currentStatus: TaskStatus.COMPLETED });
    const events = await history(taskId);
    expect(events.at(-1)?.authoritativeAt).toEqual(events[3]?.time);
    worker.stop();
  });
});

describe('validate_only', () => {
  it('judges, tells and commits nothing', async () => {
    const { taskId } = await submitted(fixture.client);
    const dry = await transition(taskId, suspend, { validateOnly: true, idempotencyKey: '' });
    expect(dry).toMatchObject({ applied: false, conflict: Conflict.NONE, currentStatus: TaskStatus.SUSPENDED });
    expect(dry.task).toMatchObject({ status: TaskStatus.QUEUED, revision: 1n });
    const wrong = await transition(taskId, suspend, { validateOnly: true, expectedRevision: 4n });
    expect(wrong).toMatchObject({ applied: false, conflict: Conflict.REVISION });
    const illegal = await refusal(transition(taskId, complete, { validateOnly: true }));
    expect(illegal.reason).toBe('INVALID_TRANSITION');
    expect(await history(taskId)).toHaveLength(1);
  });
});

describe('allowed', () => {
  it('lists every intent and why it is not', async () => {
    const { taskId } = await submitted(fixture.client);
    const { allowed } = await transition(taskId, suspend, { validateOnly: true });
    const verdicts = new Map(allowed.map((one) => [one.intent, one]));
    expect(verdicts.size).toBe(9);
    for (const intent of [IntentKind.CLAIM, IntentKind.SUSPEND, IntentKind.SKIP, IntentKind.REQUEST_CANCELLATION]) {
      expect(verdicts.get(intent)).toMatchObject({ allowed: true });
    }
    expect(verdicts.get(IntentKind.RESUME)).toMatchObject({ allowed: false, refusal: { grpcCode: 9 } });
    expect(verdicts.get(IntentKind.SETTLE_COMPLETION)?.allowed).toBe(false);
  });

  it('is judged with the lease that was stated', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const lease = { epoch: claim.epoch, leaseToken: claim.leaseToken };
    const { allowed } = await transition(task.taskId, suspend, { validateOnly: true, lease });
    expect(allowed.find((one) => one.intent === IntentKind.SETTLE_COMPLETION)?.allowed).toBe(true);
    const without = await transition(task.taskId, suspend, { validateOnly: true });
    expect(without.allowed.find((one) => one.intent === IntentKind.SETTLE_COMPLETION)?.allowed).toBe(false);
    await worker.say(claim, [completed], 3);
    worker.stop();
  });
});

async function history(taskId: string) {
  return (await fixture.client.unary(tasks.listEvents, { taskId })).events;
}
