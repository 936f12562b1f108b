// Stopping a server: workers are told first, nothing acknowledged is lost, everything is closed in order.

import { describe, expect, it } from 'vitest';
import { ExecutionTarget } from '../../src/gen/reeve/v1/task_pb.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { Log } from '../../src/server/log.js';
import { StopError } from '../../src/server/shutdown.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { Signal } from '../support/turns.js';
import { Worker, completed, running, submitted } from './lifecycle-driver.js';
import { refusedOf, tasks } from './reeve-client.js';
import { freshKey, startFixture } from './server-fixture.js';

it('tells the workers, lets them finish within the grace, and claims nothing more', async () => {
  const { server, client } = await startFixture();
  const { task, claim, worker } = await running(client);
  const stopping = server.stop(10_000);
  const drain = await worker.frame('drain');
  expect(drain.grace).toMatchObject({ seconds: 10n });
  expect(Number(drain.reconnectAfter?.seconds)).toBeGreaterThanOrEqual(1);
  await submitted(client, { queue: worker.queue });
  expect(await worker.say(claim, [completed], 3)).toMatchObject({ judgedThrough: 3n });
  expect(await client.unary(tasks.get, { taskId: task.taskId })).toMatchObject({ task: { status: 6 } });
  worker.stop();
  expect(await worker.stream.ended).toBeNull();
  await stopping;
  expect(worker.stream.messages.filter(({ frame }) => frame.case === 'claims')).toHaveLength(1);
  client.close();
});

it('ends the streams of workers who stay, once the grace is over', async () => {
  const { server, client } = await startFixture();
  const worker = await Worker.start(client);
  await server.stop(100);
  expect(refusedOf(await worker.stream.ended)).toMatchObject({ code: 14, reason: 'DRAINING' });
  await server.stop(100);
  client.close();
});

it('answers everything that it accepted, and has it in its store', async () => {
  // Closed by the server, and still there to be looked into.
  const { server, client, store } = await startFixture({}, { wrap: (store) => overridden(store, { close: done }) });
  const stream = client.bidi(tasks.submitStream);
  const total = 3_000;
  for (let sent = 0; sent < total; sent += 500) {
    const submissions = Array.from({ length: 500 }, () => ({
      idempotencyKey: freshKey(),
      actionKind: 'agent',
      executionTarget: ExecutionTarget.HOST,
    }));
    stream.send({ submissions });
  }
  stream.half();
  await stream.next();
  await server.stop(0);
  await stream.ended;
  const verdicts = stream.messages.flatMap((message) => message.verdicts);
  expect(verdicts).toHaveLength(total);
  let accepted = 0;
  for (const { idempotencyKey, verdict } of verdicts) {
    const stored = await store.findTaskId('default', idempotencyKey);
    if (verdict.case === 'accepted') {
      accepted += 1;
      expect(stored).toBe(verdict.value.task?.taskId);
    } else {
      expect(verdict.case === 'refused' && verdict.value.grpcCode).toBe(14);
      expect(stored).toBeNull();
    }
  }
  expect(accepted).toBeGreaterThan(0);
  client.close();
});

describe('a stop in which something goes wrong', () => {
  it('takes every other step, closes the store last, and says what failed', async () => {
    const seen: string[] = [];
    const close = (inner: TaskStore) => () => {
      seen.push('close');
      return inner.close();
    };
    const failing: Clock = {
      ...systemClock,
      after: (delayMs, task) => {
        if (seen.at(-1) === 'stopping') throw new Error('the clock is broken');
        return systemClock.after(delayMs, task);
      },
    };
    const { server, client } = await startFixture(
      {},
      { wrap: (store) => overridden(store, { close: close(store) }), clock: failing, log: logInto(seen) },
    );
    const worker = await Worker.start(client);
    const failure = await server.stop(10_000).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StopError);
    expect(String(failure)).toContain('the clock is broken');
    expect(seen).toContain('wait for the workers');
    expect(seen).toContain('close');
    worker.stream.cancel();
    client.close();
  });

  it('of the store ends with its error', async () => {
    const seen: string[] = [];
    const close = () => Promise.reject(new Error('the file went away'));
    const { server, client } = await startFixture(
      {},
      { wrap: (store) => overridden(store, { close }), log: logInto(seen) },
    );
    await expect(server.stop(0)).rejects.toThrow('the file went away');
    expect(seen).toContain('close the store');
    expect(seen).not.toContain('stopped');
    client.close();
  });

  it('is over in its time when a commit never answers', async () => {
    const seen: string[] = [];
    const reached = new Signal();
    const script: Partial<TaskStore> = {
      commit: () => {
        reached.reach();
        return new Promise(() => undefined);
      },
      close: () => new Promise(() => undefined),
    };
    // Ten times as fast as the wall.
    const fast: Clock = { ...systemClock, after: (delayMs, task) => systemClock.after(delayMs / 10, task) };
    const { server, client } = await startFixture(
      {},
      { wrap: (store) => overridden(store, script), clock: fast, log: logInto(seen) },
    );
    const call = client.unary(tasks.submit, {
      idempotencyKey: freshKey(),
      actionKind: 'agent',
      executionTarget: ExecutionTarget.HOST,
    });
    const answer = call.catch((error: unknown) => refusedOf(error));
    await reached.reached;
    await expect(server.stop(0)).rejects.toThrow(/"commit what was accepted" did not end within 1000 ms/);
    // Nobody is left waiting: the connections are ended by force.
    expect(await answer).toMatchObject({ reason: '' });
    expect(seen).toEqual(expect.arrayContaining(['commit what was accepted', 'close the store']));
    client.close();
  });
});

// That a step which ends is waited for: test/deployment/engine-stop.test.ts.
it('a step of the purges that never ends is not waited for beyond its time', async () => {
  const fast: Clock = { ...systemClock, after: (delayMs, task) => systemClock.after(delayMs / 10, task) };
  const scanning = new Signal();
  const closed = new Signal();
  const script = (inner: TaskStore): Partial<TaskStore> => ({
    purgeable: () => {
      scanning.reach();
      return new Promise(() => undefined);
    },
    close: () => {
      closed.reach();
      return inner.close();
    },
  });
  const { server, client } = await startFixture({}, { wrap: (store) => overridden(store, script(store)), clock: fast });
  await scanning.reached;
  await expect(server.stop(0)).rejects.toThrow('"commit what was accepted" did not end within 1000 ms');
  await closed.reached;
  client.close();
});

const done = (): Promise<void> => Promise.resolve();

function overridden(store: TaskStore, methods: Partial<TaskStore>): TaskStore {
  return new Proxy(store, {
    get: (target, name: keyof TaskStore) => Reflect.get(name in methods ? methods : target, name),
  });
}

/** A log that keeps its messages and the names of the steps that failed. */
function logInto(seen: string[]): Log {
  const line = (fields: unknown, message?: string): void => {
    seen.push(message ?? '');
    if (typeof fields === 'object' && fields !== null && 'step' in fields) seen.push(String(fields.step));
  };
  return { debug: line, info: line, warn: line, error: line, fatal: line };
}
