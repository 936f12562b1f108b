// Endings that cannot be said as they are: the task still ends, the worker goes on, and what was opened is closed.

import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Completion, createWorker, type Handler, RetryLater, type TaskWorker } from '../../src/sdk/worker.js';
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
