// Endings that cannot be said as they are: the task still ends, the worker goes on, and what was opened is closed.

import { status } from '@grpc/grpc-js';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ErrorReason } from '../../src/gen/reeve/v1/error_reason_pb.js';
import type { Failed } from '../../src/gen/reeve/v1/task_pb.js';
import {
  CancelTask,
  Completion,
  createWorker,
  type Handler,
  RetryLater,
  TaskFailure,
  type TaskWorker,
} from '../../src/sdk/worker.js';
import { FakeServer } from './fake-server.js';
import { claimOf, ScriptedSession } from './scripted-session.js';

let server: FakeServer;
let worker: TaskWorker | undefined;

beforeEach(async () => {
  server = await FakeServer.start();
});

afterEach(async () => {
  await worker?.drain({ graceMs: 0, answerMs: 0 });
  await server.stop();
});

function start(agent: Handler): Promise<ScriptedSession> {
  worker = createWorker({ address: server.address, renewal: 'main', handlers: { agent } });
  void worker.start();
  return ScriptedSession.welcome(server);
}

test.each<[string, Handler]>([
  ['a delay that is none', () => Promise.reject(new RetryLater(Number.NaN))],
  ['a throw without a prototype', () => Promise.reject(Object.create(null) as Error)],
  ['an exit code beyond 32 bits', () => Promise.resolve(new Completion({ exitCode: 3_221_225_477 }))],
  [
    'a result whose `then` throws',
    () => {
      const result = {};
      Object.defineProperty(result, 'then', {
        get: () => {
          throw new Error('no');
        },
      });
      return result;
    },
  ],
])('%s ends as a failure, and the worker goes on', async (_what, handler) => {
  const session = await start((claim) =>
    claim.taskId === 't1' ? handler(claim, undefined as never) : Promise.resolve({}),
  );
  session.claim(claimOf('t1'), claimOf('t2'));
  const last = new Map<string, string | undefined>();
  while (last.size < 2) {
    for (const { taskId, event } of (await session.next('events')).events) {
      if (event.case === 'failed' || event.case === 'completed') last.set(taskId, event.case);
    }
  }
  expect([...last].sort()).toEqual([
    ['t1', 'failed'],
    ['t2', 'completed'],
  ]);
});

/** What an ending says of `t1`. */
async function endingOf(session: ScriptedSession): Promise<{ case?: string | undefined; value?: unknown }> {
  session.claim(claimOf('t1'));
  for (;;) {
    const { event } = await session.event();
    if (event.case !== 'accepted' && event.case !== 'started' && event.case !== 'output') return event;
  }
}

function errorWith(fields: object): Error {
  return Object.assign(new Error('no'), fields);
}

test.each<[string, () => Error, object]>([
  [
    'a code of more bytes than letters',
    () => new TaskFailure('no', { code: 'é'.repeat(100) }),
    { code: 'é'.repeat(64) },
  ],
  ['a code that is no text', () => new TaskFailure('no', { code: 7 as never }), { code: '7', message: 'no' }],
  ['a wait below nothing', () => new RetryLater(-1, 'no'), { code: 'retry_later', message: 'no' }],
  ['a wait beyond all bounds', () => new RetryLater(1e300, 'no'), { code: 'retry_later', message: 'no' }],
  ['an exit code beyond 32 bits', () => new TaskFailure('no', { exitCode: 2 ** 40 }), { message: 'no' }],
  ['a message that is no text', () => errorWith({ message: { toString: () => 'no' } }), { message: 'no' }],
  ['a stack that is no text', () => errorWith({ stack: Symbol('here') }), { message: 'no' }],
  ['a throw without a text', () => Object.create(null) as Error, { message: 'what was thrown has no text' }],
  ['a detail of 5 MB', () => new TaskFailure('no', { errorDetail: 'x'.repeat(5_000_000) }), { message: 'no' }],
])('%s does not keep a failure from being tried again', async (_what, thrown, error) => {
  const session = await start(() => Promise.reject(thrown()));
  const ending = await endingOf(session);
  expect(ending).toMatchObject({
    case: 'failed',
    value: { error: { code: 'handler_error', retryable: true, ...error } },
  });
  const { seconds = 0n, nanos = 0 } = (ending.value as Failed).retryAfter ?? {};
  expect(seconds >= 0n && seconds <= 315_360_000n && nanos >= 0).toBe(true);
});

test('a cancellation with a detail of 5 MB is one, with the end of that', async () => {
  const session = await start(() => Promise.reject(new CancelTask('enough', { errorDetail: `${'x'.repeat(5e6)}end` })));
  const { case: as, value } = await endingOf(session);
  expect(as).toBe('cancelled');
  expect(value).toMatchObject({
    reason: 'enough',
    detail: { errorDetail: expect.stringMatching(/^x{65533}end$/) as string },
  });
});

test.each([
  [
    'a failure stays one that is tried again',
    new TaskFailure('no'),
    { case: 'failed', value: { error: { retryable: true } } },
  ],
  [
    'one that is final stays final',
    new TaskFailure('no', { retryable: false }),
    { value: { error: { retryable: false } } },
  ],
  [
    'a cancellation stays one',
    new CancelTask('enough', { invocationId: 'x' }),
    { case: 'cancelled', value: { reason: 'enough' } },
  ],
])('whatever the server does not take of it, %s', async (_what, thrown, expected) => {
  const session = await start(() => Promise.reject(thrown));
  await endingOf(session);
  const refusal = { reason: ErrorReason.MALFORMED, grpcCode: status.INVALID_ARGUMENT, message: 'no' };
  session.judge('t1', 3, [{ eventSeq: 3n, refusal }]);
  expect((await session.event()).event).toMatchObject(expected);
});

test('what a plain generator yields is output, and what it returns the result', async () => {
  const session = await start(function* (): Generator<unknown> {
    yield 'a';
    yield Promise.resolve('b');
    return { done: true };
  });
  session.claim(claimOf('t1'));
  expect(await session.events(4)).toEqual(['1 accepted', '2 started', '3 output', '4 output']);
  expect((await session.event()).event).toMatchObject({ case: 'completed', value: { resultJson: '{"done":true}' } });
});

test('an array is a result, and its iterator is not gone through', async () => {
  const session = await start(() => ['a', 'b']);
  expect(await endingOf(session)).toMatchObject({ case: 'completed', value: { resultJson: '["a","b"]' } });
});

test('what a generator opened is closed when an output cannot be said', async () => {
  let cleaned = false;
  const session = await start(async function* () {
    try {
      yield 1n;
    } finally {
      cleaned = true;
    }
  });
  session.claim(claimOf('t1'));
  const said: (string | undefined)[] = [];
  while (said.at(-1) !== 'failed') said.push(...(await session.next('events')).events.map(({ event }) => event.case));
  expect(cleaned).toBe(true);
});

test('an async iterable that is no generator is output too', async () => {
  const session = await start(() => Readable.from(['a', 'b']));
  session.claim(claimOf('t1'));
  const said: (string | undefined)[] = [];
  while (said.at(-1) !== 'completed')
    said.push(...(await session.next('events')).events.map(({ event }) => event.case));
  expect(said).toEqual(['accepted', 'started', 'output', 'output', 'completed']);
});

test('a Completion without anything completes without a result; one of what is no object says so', async () => {
  const session = await start(({ taskId }) => new Completion(...(taskId === 't1' ? [] : ['done' as never])));
  session.claim(claimOf('t1'), claimOf('t2'));
  const endings = new Map<string, unknown>();
  while (endings.size < 2) {
    for (const { taskId, event } of (await session.next('events')).events) {
      if (event.case === 'completed') endings.set(taskId, event.value.resultJson);
      if (event.case === 'failed') endings.set(taskId, event.value.error?.message);
    }
  }
  expect(endings.get('t1')).toBe('');
  expect(endings.get('t2')).toMatch(/^Completion takes an object/);
});
