import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import type { WorkerEvent } from '../../src/gen/reeve/v1/worker_service_pb.js';
import {
  CancelTask,
  type Claim,
  Completion,
  createWorker,
  type Handler,
  NonRetryable,
  OutOfTime,
  RetryLater,
  type Settled,
  Suspend,
  TaskFailure,
  type TaskWorker,
  type WorkerNotice,
} from '../../src/sdk/worker.js';
import { FakeServer } from './fake-server.js';
import { Incoming } from './incoming.js';
import { claimOf, ScriptedSession } from './scripted-session.js';

let server: FakeServer;
let worker: TaskWorker | undefined;
let notices: Incoming<WorkerNotice>;
let settled: Incoming<Settled>;

beforeEach(async () => {
  server = await FakeServer.start();
  notices = new Incoming();
  settled = new Incoming();
});

afterEach(async () => {
  await worker?.drain({ graceMs: 0, answerMs: 0 });
  await server.stop();
});

function start(agent: Handler): Promise<ScriptedSession> {
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    handlers: { agent },
    onNotice: (notice) => notices.push(notice),
    onSettled: (settlement) => settled.push(settlement),
  });
  void worker.start();
  return ScriptedSession.welcome(server);
}

/** Runs one claim and returns what it said last. */
async function lastWord(agent: Handler): Promise<WorkerEvent['event']> {
  const session = await start(agent);
  session.claim(claimOf('t1'));
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  const last = await session.event();
  expect(last).toMatchObject({ taskId: 't1', generation: 1, epoch: 1n, eventSeq: 3n });
  return last.event;
}

test('accepted, started and completed of quick handlers travel together', async () => {
  const session = await start(async (claim) => ({ twice: Number(claim.args['n']) * 2 }));
  session.claim(claimOf('t1'), claimOf('t2', { argsJson: '{"n":4}' }));
  const events: WorkerEvent[] = [];
  let frames = 0;
  for (; events.length < 6; frames++) events.push(...(await session.next('events')).events);
  // One as a rule; a loop that others keep from its turn may need a second.
  expect(frames).toBeLessThanOrEqual(2);
  const said = (task: string): string[] =>
    events.filter(({ taskId }) => taskId === task).map(({ eventSeq, event }) => `${eventSeq} ${event.case}`);
  expect(said('t1')).toEqual(['1 accepted', '2 started', '3 completed']);
  expect(said('t2')).toEqual(['1 accepted', '2 started', '3 completed']);
  expect(events.find(({ taskId, eventSeq }) => taskId === 't2' && eventSeq === 3n)?.event.value).toMatchObject({
    resultJson: '{"twice":8}',
  });
  expect(worker?.held).toBe(2);
  session.judge('t1', 3);
  expect(await settled.next()).toEqual({ taskId: 't1', generation: 1, epoch: 1, kind: 'agent', as: 'completed' });
  expect(worker?.held).toBe(1);
});

test('a handler that returns nothing completes without a result', async () => {
  expect(await lastWord(() => undefined)).toMatchObject({ case: 'completed', value: { resultJson: '' } });
});

test('a Completion carries more than a result', async () => {
  const word = await lastWord(() => new Completion({ resultRef: 's3://r', exitCode: 0, evidenceRefs: ['u:1'] }));
  expect(word).toMatchObject({
    case: 'completed',
    value: { resultJson: '', resultRef: 's3://r', detail: { exitCode: 0, evidenceRefs: ['u:1'] } },
  });
});

test('what a generator yields is output, what it returns is the result', async () => {
  const session = await start(async function* () {
    yield { page: 1 };
    yield { page: 2 };
    return 'done';
  });
  session.claim(claimOf('t1'));
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  const words = [await session.event(), await session.event(), await session.event()].map(({ event }) => event);
  expect(words).toMatchObject([
    { case: 'output', value: { content: { case: 'outputJson', value: '{"page":1}' } } },
    { case: 'output', value: { content: { value: '{"page":2}' } } },
    { case: 'completed', value: { resultJson: '"done"' } },
  ]);
});

const failing: readonly [string, unknown, object][] = [
  ['an Error', new RangeError('broken'), { error: { code: 'handler_error', message: 'broken', retryable: true } }],
  ['no Error at all', 'broken', { error: { code: 'handler_error', message: 'broken', retryable: true } }],
  [
    'a TaskFailure',
    new TaskFailure('down', { code: 'tool error', details: { a: 1 }, exitCode: 3 }),
    {
      error: { code: 'tool_error', message: 'down', detailsJson: '{"a":1}', retryable: true },
      detail: { exitCode: 3 },
    },
  ],
  ['NonRetryable', new NonRetryable('never'), { error: { message: 'never', retryable: false } }],
  [
    'RetryLater',
    new RetryLater(1_500),
    { error: { code: 'retry_later', retryable: true }, retryAfter: { seconds: 1n, nanos: 500_000_000 } },
  ],
];

test.each(failing)('%s fails the attempt', async (_, thrown, value) => {
  expect(
    await lastWord(() => {
      throw thrown;
    }),
  ).toMatchObject({ case: 'failed', value });
});

test.each([
  ['Suspend', new Suspend('approval'), { case: 'suspended', value: { reason: 'approval' } }],
  ['CancelTask', new CancelTask('moot'), { case: 'cancelled', value: { reason: 'moot' } }],
  [
    'OutOfTime',
    new OutOfTime('slow'),
    { case: 'timedOut', value: { error: { code: 'task_timeout', message: 'slow' } } },
  ],
])('%s settles in its own way', async (_, thrown, word) => {
  expect(await lastWord(() => Promise.reject(thrown))).toMatchObject(word);
});

test('what a handler says is numbered in the order of saying', async () => {
  const session = await start(async (_claim, { progress, output, binary, blocked, unblocked, checkpoint }) => {
    await progress(0.5, 'half');
    await output([1]);
    await binary(Buffer.from('png'), 'image/png');
    await blocked('a lock');
    await checkpoint({ next: 2 });
    await unblocked();
    await blocked('a person');
    return null;
  });
  session.claim(claimOf('t1'));
  expect(await session.events(11)).toEqual([
    '1 accepted',
    '2 started',
    '3 progress',
    '4 output',
    '5 output',
    '6 blocked',
    '7 checkpoint',
    '8 started',
    '9 blocked',
    // AEP lets no completion follow a block.
    '10 started',
    '11 completed',
  ]);
});

test('a kind without a handler fails with a typed error and runs nothing', async () => {
  const session = await start(() => {
    throw new Error('not this one');
  });
  session.claim(claimOf('t1', { actionKind: 'constructor' }));
  expect(await session.events(1)).toEqual(['1 accepted']);
  expect(await session.event()).toMatchObject({
    eventSeq: 2n,
    event: { case: 'failed', value: { error: { code: 'no_handler', retryable: true } } },
  });
});

test('`*` serves every kind, and arguments may be typed on the claim', async () => {
  const kinds = new Incoming<string>();
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    handlers: {
      '*': (claim) => kinds.push(claim.kind),
      agent: (claim: Claim<{ n: number }>) => kinds.push(`agent ${claim.args.n + 1}`),
    },
  });
  void worker.start();
  const session = await ScriptedSession.welcome(server);
  expect(session.hello.actionKinds).toEqual(['*']);
  session.claim(claimOf('t1'), claimOf('t2', { actionKind: 'other' }));
  expect([await kinds.next(), await kinds.next()]).toEqual(['agent 2', 'other']);
});

test('what is larger than the server takes is refused before it is sent', async () => {
  const refusals = new Incoming<unknown>();
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    handlers: {
      agent: async (_claim: Claim, { output, progress }) => {
        await output('x'.repeat(100)).catch((error: unknown) => refusals.push(error));
        await progress(1.5).catch((error: unknown) => refusals.push(error));
        return 'y'.repeat(100);
      },
    },
  });
  void worker.start();
  const session = await ScriptedSession.welcome(server, { limits: { maxEventBytes: 50, maxResultBytes: 50 } });
  session.claim(claimOf('t1'));
  expect(await refusals.next()).toMatchObject({ reason: 'MALFORMED', metadata: { field: 'output' } });
  expect(await refusals.next()).toMatchObject({ metadata: { field: 'fraction' } });
  expect(await session.events(2)).toEqual(['1 accepted', '2 started']);
  expect(await session.event()).toMatchObject({
    eventSeq: 3n,
    event: { case: 'failed', value: { error: { code: 'result_too_large', retryable: false } } },
  });
});

test('a result that is no JSON fails for good', async () => {
  expect(await lastWord(() => ({ n: 1n }))).toMatchObject({
    case: 'failed',
    value: { error: { code: 'result_not_json', retryable: false } },
  });
});

test('outputs beyond the number kept are sent once and then dropped', async () => {
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    onNotice: (notice) => notices.push(notice),
    handlers: {
      agent: async (_claim: Claim, { output }) => {
        for (let index = 0; index < 5; index += 1) await output(index);
      },
    },
  });
  void worker.start();
  const session = await ScriptedSession.welcome(server, { limits: { maxOutputsPerAttempt: 2 } });
  session.claim(claimOf('t1'));
  expect((await session.events(6)).slice(2)).toEqual(['3 output', '4 output', '5 output', '6 completed']);
  expect(await notices.find(({ type }) => type === 'outputs_dropped')).toMatchObject({ taskId: 't1' });
});

test('committed waits for the verdict and throws what was refused', async () => {
  const steps = new Incoming<string>();
  const session = await start(async (_claim, { progress, committed }) => {
    await progress(0.1);
    await committed();
    steps.push('first');
    await progress(0.2);
    await committed().catch((error: Error) => steps.push(error.message));
  });
  session.claim(claimOf('t1'));
  await session.events(3);
  expect(steps.all).toEqual([]);
  session.judge('t1', 3);
  expect(await steps.next()).toBe('first');
  await session.events(1);
  const refusal = { reason: ErrorReason.ILLEGAL_EVENT, grpcCode: status.FAILED_PRECONDITION, message: 'not now' };
  session.judge('t1', 4, [{ eventSeq: 4n, refusal }]);
  expect(await steps.next()).toBe('not now');
  expect(await notices.find(({ type }) => type === 'event_refused')).toMatchObject({ taskId: 't1', eventSeq: 4 });
});

test('a settlement that is fenced becomes a cancellation, another refusal a failure, and then it is given up', async () => {
  const session = await start(() => 1);
  const refuse = (taskId: string, seq: number, reason: ErrorReason) =>
    session.judge(taskId, seq, [
      { eventSeq: BigInt(seq), refusal: { reason, grpcCode: status.FAILED_PRECONDITION, message: 'no' } },
    ]);
  session.claim(claimOf('t1'));
  await session.events(3);
  refuse('t1', 3, ErrorReason.CANCELLATION_FENCED);
  expect(await session.events(1)).toEqual(['4 cancelled']);
  session.judge('t1', 4);
  expect(await settled.next()).toMatchObject({ taskId: 't1', as: 'cancelled' });
  session.claim(claimOf('t2'));
  await session.events(3);
  refuse('t2', 3, ErrorReason.MALFORMED);
  expect(await session.event()).toMatchObject({
    eventSeq: 4n,
    event: { case: 'failed', value: { error: { code: 'settlement_refused', retryable: false } } },
  });
  refuse('t2', 4, ErrorReason.MALFORMED);
  expect(await notices.find(({ type }) => type === 'settlement_abandoned')).toMatchObject({ taskId: 't2' });
  expect(worker?.held).toBe(0);
});

test('a parent whose children are live asks again until they are not', async () => {
  const session = await start(() => 'parent');
  session.claim(claimOf('t1'));
  await session.events(3);
  const refusal = { reason: ErrorReason.CHILDREN_ACTIVE, grpcCode: status.FAILED_PRECONDITION };
  session.judge('t1', 3, [{ eventSeq: 3n, refusal }]);
  expect(await session.events(1)).toEqual(['4 completed']);
  session.judge('t1', 4);
  expect(await settled.next()).toMatchObject({ as: 'completed' });
});

test('listeners that throw break nothing', async () => {
  const settlements = new Incoming<Settled>();
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    onNotice: () => {
      throw new Error('a broken log');
    },
    onSettled: (settlement) => {
      settlements.push(settlement);
      throw new Error('a broken count');
    },
    handlers: { agent: () => 'done' },
  });
  void worker.start();
  const session = await ScriptedSession.welcome(server);
  session.claim(claimOf('t1'));
  await session.events(3);
  session.judge('t1', 3);
  await settlements.next();
  session.claim(claimOf('t2'));
  expect(await session.events(3)).toEqual(['1 accepted', '2 started', '3 completed']);
});

test('much unanswered makes handlers wait, and an answer lets them go on', async () => {
  const said = new Incoming<number>();
  worker = createWorker({
    address: server.address,
    renewal: 'main',
    maxUnansweredEvents: 5,
    handlers: {
      agent: async (_claim: Claim, { output }) => {
        for (let index = 1; index <= 20; index += 1) {
          await output(index);
          said.push(index);
        }
      },
    },
  });
  void worker.start();
  const session = await ScriptedSession.welcome(server);
  session.claim(claimOf('t1'));
  expect(await session.events(5)).toEqual(['1 accepted', '2 started', '3 output', '4 output', '5 output']);
  expect(said.all).toEqual([1, 2]);
  session.judge('t1', 5);
  expect(await session.events(5)).toEqual(['6 output', '7 output', '8 output', '9 output', '10 output']);
  session.judge('t1', 10);
  expect(await session.events(5)).toHaveLength(5);
});
