import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { SubmitOutcome } from '../../src/gen/reeve/v1/task_service_pb.js';
import { connect, isReeveError, type ReeveClient, type Submission } from '../../src/sdk/client.js';
import { FakeServer, type SubmitPeer } from './fake-server.js';

let server: FakeServer;
let client: ReeveClient;

beforeEach(async () => {
  server = await FakeServer.start();
  client = connect(server.address);
});

afterEach(async () => {
  // A test that failed half-way has submissions that nobody will answer.
  void client.close();
  await server.stop();
});

const submission = (key: string, more: Partial<Submission> = {}): Submission => ({ kind: 'agent', key, ...more });

function accepted(key: string, outcome = SubmitOutcome.CREATED, namespace = '') {
  const task = { taskId: `task-${key}`, idempotencyKey: key, status: TaskStatus.QUEUED, revision: 1n };
  return { idempotencyKey: key, namespace, verdict: { case: 'accepted' as const, value: { task, outcome } } };
}

function refused(key: string, reason: ErrorReason, grpcCode: status, metadata: Record<string, string> = {}) {
  const refusal = { reason, grpcCode, message: 'no', metadata };
  return { idempotencyKey: key, verdict: { case: 'refused' as const, value: refusal } };
}

/** Answers everything that comes on a stream, frame by frame. */
async function acceptAll(peer: SubmitPeer): Promise<void> {
  for (;;) {
    const { submissions } = await peer.frames.next();
    peer.send({ verdicts: submissions.map(({ idempotencyKey, namespace }) => accepted(idempotencyKey, 1, namespace)) });
  }
}

test('the callers of one turn share a frame, and each gets its own verdict', async () => {
  const submitted = ['a', 'b', 'c'].map((key) => client.submit(submission(key, { args: { key } })));
  const peer = await server.submits.next();
  const frame = await peer.frames.next();
  expect(frame.submissions.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['a', 'b', 'c']);
  expect(frame.submissions[1]).toMatchObject({
    actionKind: 'agent',
    executionTarget: 1,
    argsForm: { case: 'argsJson', value: '{"key":"b"}' },
  });
  peer.send({ verdicts: [accepted('c'), accepted('a'), accepted('b', SubmitOutcome.REPLAYED)] });
  const answers = await Promise.all(submitted);
  expect(answers.map(({ task, created }) => [task.id, created])).toEqual([
    ['task-a', true],
    ['task-b', false],
    ['task-c', true],
  ]);
});

test('submissions of one name are never in flight together, those of two namespaces are', async () => {
  const first = client.submit(submission('k', { args: { n: 1 } }));
  const second = client.submit(submission('k', { args: { n: 2 } }));
  const elsewhere = client.submit(submission('k', { namespace: 'other' }));
  const peer = await server.submits.next();
  const frame = await peer.frames.next();
  expect(frame.submissions.map(({ namespace }) => namespace)).toEqual(['', 'other']);
  peer.send({ verdicts: [accepted('k', SubmitOutcome.CREATED, 'other'), accepted('k')] });
  expect((await first).created).toBe(true);
  expect((await elsewhere).created).toBe(true);
  const next = await peer.frames.next();
  expect(next.submissions.map(({ argsForm }) => argsForm.value)).toEqual(['{"n":2}']);
  peer.send({
    verdicts: [refused('k', ErrorReason.IDEMPOTENCY_CONFLICT, status.ALREADY_EXISTS, { task_id: 'task-k' })],
  });
  await expect(second).rejects.toMatchObject({
    name: 'ReeveError',
    reason: 'IDEMPOTENCY_CONFLICT',
    code: status.ALREADY_EXISTS,
    metadata: { task_id: 'task-k' },
    retryable: false,
  });
});

test('what a broken stream left unanswered is sent again, in order, and nothing else', async () => {
  const answers = ['a', 'b', 'c'].map((key) => client.submit(submission(key)));
  const broken = await server.submits.next();
  await broken.frames.next();
  broken.send({ verdicts: [accepted('b')] });
  await answers[1];
  server.cut();
  const peer = await server.submits.next();
  const frame = await peer.frames.next();
  expect(frame.submissions.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['a', 'c']);
  peer.send({ verdicts: [accepted('a', SubmitOutcome.REPLAYED), accepted('c')] });
  expect((await Promise.all(answers)).map(({ created }) => created)).toEqual([false, true, true]);
});

test('a stream that the server ends or refuses for now is opened again', async () => {
  const answer = client.submit(submission('a'));
  const first = await server.submits.next();
  await first.frames.next();
  first.end();
  const second = await server.submits.next();
  await second.frames.next();
  second.fail({ code: status.UNAVAILABLE, reason: 'DRAINING', retryAfterMs: 1 });
  const third = await server.submits.next();
  await third.frames.next();
  third.send({ verdicts: [accepted('a')] });
  await expect(answer).resolves.toMatchObject({ created: true });
});

test('a stream that is refused for good refuses what it carried', async () => {
  const answers = [client.submit(submission('a')), client.submit(submission('a'))];
  const peer = await server.submits.next();
  peer.fail({ code: status.UNAUTHENTICATED, reason: 'UNAUTHENTICATED' });
  for (const answer of answers) await expect(answer).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });
});

test('a refusal for now is tried again with the same key, a refusal for good is told', async () => {
  const late = client.submit(submission('late'));
  const bad = client.submit(submission('bad'));
  const peer = await server.submits.next();
  await peer.frames.next();
  peer.send({
    verdicts: [
      refused('late', ErrorReason.CONTENTION, status.ABORTED),
      refused('bad', ErrorReason.MALFORMED, status.INVALID_ARGUMENT, { field: 'queue' }),
    ],
  });
  await expect(bad).rejects.toMatchObject({ reason: 'MALFORMED', metadata: { field: 'queue' } });
  const again = await peer.frames.next();
  expect(again.submissions.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['late']);
  peer.send({ verdicts: [accepted('late')] });
  await expect(late).resolves.toMatchObject({ task: { id: 'task-late' } });
});

test('no more is in flight than allowed, and what waits goes when there is room', async () => {
  void client.close();
  client = connect(server.address, { submitStream: { maxInFlight: 2 } });
  const answers = ['a', 'b', 'c', 'd', 'e'].map((key) => client.submit(submission(key)));
  const peer = await server.submits.next();
  expect((await peer.frames.next()).submissions).toHaveLength(2);
  peer.send({ verdicts: [accepted('a')] });
  await answers[0];
  expect((await peer.frames.next()).submissions.map(({ idempotencyKey }) => idempotencyKey)).toEqual(['c']);
  expect(peer.frames.pending).toHaveLength(0);
  void acceptAll(peer);
  peer.send({ verdicts: [accepted('b'), accepted('c')] });
  await Promise.all(answers);
});

test('frames stay below 1.5 MiB and 1,000 submissions, and what fits into none is refused unsent', async () => {
  const blob = 'x'.repeat(900 * 1024);
  const large = ['a', 'b'].map((key) => client.submit(submission(key, { args: { blob } })));
  const tooLarge = client.submit(
    submission('c', { argsJson: JSON.stringify({ blob: 'x'.repeat(1.6 * 1024 * 1024) }) }),
  );
  await expect(tooLarge).rejects.toMatchObject({ reason: 'MALFORMED', metadata: { field: 'submission' } });
  const peer = await server.submits.next();
  for (const key of ['a', 'b']) {
    const { submissions } = await peer.frames.next();
    expect(submissions.map(({ idempotencyKey }) => idempotencyKey)).toEqual([key]);
    peer.send({ verdicts: [accepted(key)] });
  }
  await Promise.all(large);
  const many = Array.from({ length: 1_500 }, (_, index) => client.submit(submission(`n${index}`)));
  const sizes: number[] = [];
  while (sizes.reduce((sum, size) => sum + size, 0) < many.length) {
    const { submissions } = await peer.frames.next();
    sizes.push(submissions.length);
    peer.send({ verdicts: submissions.map(({ idempotencyKey }) => accepted(idempotencyKey)) });
  }
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
  await Promise.all(many);
});

test('text that UTF-8 cannot carry, or JSON cannot say, is refused unsent', async () => {
  await expect(client.submit(submission('\ud800'))).rejects.toMatchObject({ metadata: { field: 'idempotency_key' } });
  await expect(client.submit(submission('k', { args: { n: 1n } }))).rejects.toMatchObject({
    metadata: { field: 'args' },
  });
  expect(server.submits.all).toHaveLength(0);
});

test('a verdict that comes after its caller gave up is not taken for the next submission of that name', async () => {
  const gaveUp = client.submit(submission('k'), { timeoutMs: 1 });
  const peer = await server.submits.next();
  await peer.frames.next();
  await expect(gaveUp).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
  const next = client.submit(submission('k'));
  peer.send({ verdicts: [accepted('k')] });
  await peer.frames.next();
  peer.send({ verdicts: [accepted('k', SubmitOutcome.REPLAYED)] });
  expect((await next).created).toBe(false);
});

test('policy travels as given', async () => {
  const notBefore = new Date('2030-01-01T00:00:00.250Z');
  const answer = client.submit(
    submission('p', {
      priority: -5,
      labels: { team: 'a' },
      timeoutMs: 90_500,
      notBefore,
      retry: { maxAttempts: 1, initialMs: 0 },
      dependsOn: ['one', { taskId: 'two', condition: 'terminal' }],
      parent: { taskId: 'p1', generationId: 'g', attachment: 'attached' },
      cancellationPolicy: 'fenced',
    }),
  );
  const peer = await server.submits.next();
  const [request] = (await peer.frames.next()).submissions;
  expect(request?.policy).toMatchObject({
    priority: -5,
    labels: { team: 'a' },
    timeout: { seconds: 90n, nanos: 500_000_000 },
    notBefore: { seconds: BigInt(Math.floor(notBefore.getTime() / 1000)), nanos: 250_000_000 },
    retry: { maxAttempts: 1, initial: { seconds: 0n, nanos: 0 } },
    dependsOn: [
      { taskId: 'one', condition: 0 },
      { taskId: 'two', condition: 2 },
    ],
    parent: { taskId: 'p1', generationId: 'g', attachment: 1 },
    cancellationPolicy: 2,
  });
  expect(request?.policy?.onUnsatisfied).toBeUndefined();
  peer.send({ verdicts: [accepted('p')] });
  await answer;
});

test('submitAll reads no more from its source than may be in flight', async () => {
  let read = 0;
  function* source() {
    for (let index = 0; index < 50; index += 1) {
      read += 1;
      yield submission(`s${index}`);
    }
  }
  const verdicts = client.submitAll(source(), { concurrency: 4 });
  const first = verdicts.next();
  const peer = await server.submits.next();
  const frame = await peer.frames.next();
  expect(frame.submissions.length).toBeLessThanOrEqual(4);
  expect(read).toBe(4);
  peer.send({ verdicts: frame.submissions.map(({ idempotencyKey }) => accepted(idempotencyKey)) });
  void acceptAll(peer);
  const keys = new Set([(await first).value?.key]);
  for await (const { key, accepted: answer } of verdicts) {
    expect(answer?.task.id).toBe(`task-${key}`);
    keys.add(key);
  }
  expect(keys.size).toBe(50);
});

test('close answers what is outstanding, ends the stream and refuses what comes later', async () => {
  const answer = client.submit(submission('a'));
  const peer = await server.submits.next();
  await peer.frames.next();
  const closed = client.close();
  peer.send({ verdicts: [accepted('a')] });
  await expect(answer).resolves.toMatchObject({ created: true });
  await peer.ended;
  peer.end();
  await closed;
  const late = await client.submit(submission('b')).catch((error: unknown) => error);
  expect(isReeveError(late, 'CANCELLED')).toBe(true);
});

test('an idle stream is ended, and the next submission opens another', async () => {
  const first = client.submit(submission('a'));
  const idle = await server.submits.next();
  await idle.frames.next();
  idle.send({ verdicts: [accepted('a')] });
  await first;
  await idle.ended;
  const second = client.submit(submission('b'));
  const peer = await server.submits.next();
  expect((await peer.frames.next()).submissions).toHaveLength(1);
  peer.send({ verdicts: [accepted('b')] });
  expect((await second).created).toBe(true);
});
