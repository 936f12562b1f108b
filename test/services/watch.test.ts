// A watch between a commit and the news of it, and what it holds for a reader who is slower than one commit.

import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { WatchRequestSchema, WatchResponseSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { TaskFeed } from '../../src/services/task-feed.js';
import { MAX_UNREAD_BYTES, watchHandler } from '../../src/services/watch.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { CursorMint } from '../../src/wire/cursor.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { openWorker } from '../support/test-worker.js';
import { Signal, turns, until } from '../support/turns.js';
import { World } from '../support/world.js';
import { causeOf } from '../support/submissions.js';
import { FakeCall } from './fake-call.js';

/** Commits are durable at once, and while held nobody is told that they are. */
function holdAnswers(store: TaskStore): { store: TaskStore; hold: () => Signal; written: () => Promise<void> } {
  let held: Signal | null = null;
  let written = new Signal();
  const commit: TaskStore['commit'] = async (batch) => {
    const verdicts = await store.commit(batch);
    written.reach();
    await held?.reached;
    return verdicts;
  };
  return {
    store: new Proxy(store, {
      get: (target, name: keyof TaskStore) => (name === 'commit' ? commit : Reflect.get(target, name)),
    }),
    hold: () => {
      written = new Signal();
      held = new Signal();
      return held;
    },
    written: () => written.reached,
  };
}

function watch(world: World, taskId: string, cursor = '') {
  const call = new FakeCall(WatchResponseSchema);
  const { authority } = world;
  const onDefect = (error: unknown): void => void world.errors.push(error);
  const cursors = new CursorMint(new TokenMint('secret'), 'incarnation');
  const context = { authority, feed: new TaskFeed(authority), cursors, onDefect };
  const request = create(WatchRequestSchema, { scope: { case: 'taskId', value: taskId }, cursor });
  const listener = watchHandler(context)(request, call);
  const numbers = (): number[] =>
    call.messages.flatMap(({ item }) => (item.case === 'event' ? [Number(item.value.eventNumber)] : []));
  return { call, listener, numbers };
}

const suspend = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;
const cancel = { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') } as const;
const resume = {
  kind: 'resume',
  newGenerationId: null,
  spareGenerationId: 'g2',
  inputJson: null,
  cause: causeOf('operator'),
} as const;

it('tells a commit that readers see before its listeners hear of it, once, and goes on', async () => {
  const { store, hold, written } = holdAnswers(openMemoryStore());
  const world = await World.open({ real: store, dispatcher: null });
  const { taskId } = (await world.admit('task')).admission;
  const held = hold();
  const suspending = world.apply({ taskId, intent: suspend });
  await written();
  const early = watch(world, taskId);
  await turns();
  expect(early.call.ended).toBeNull();
  expect(early.numbers()).toEqual([1, 2]);
  // The cursor of what was told so early is as good as any.
  const cursor = early.call.messages.findLast(({ item }) => item.case === 'event')?.cursor;
  const again = watch(world, taskId, cursor);
  await turns();
  expect(again.call.ended).toBeNull();
  held.reach();
  await suspending;
  await world.apply({ taskId, intent: cancel });
  await turns();
  for (const { call, numbers } of [early, again]) {
    expect(call.ended).toBe('ok');
    expect(numbers()).toEqual([1, 2, 3, 4].slice(4 - numbers().length));
  }
  expect(early.numbers()).toHaveLength(4);
  expect(again.numbers()).toHaveLength(2);
  expect(world.errors).toEqual([]);
});

it('ends once a terminal event told so early is heard of', async () => {
  const { store, hold, written } = holdAnswers(openMemoryStore());
  const world = await World.open({ real: store, dispatcher: null });
  const { taskId } = (await world.admit('task')).admission;
  const held = hold();
  const cancelling = world.apply({ taskId, intent: cancel });
  await written();
  const { call, numbers } = watch(world, taskId);
  await turns();
  held.reach();
  await cancelling;
  await turns();
  expect(call.ended).toBe('ok');
  expect(numbers()).toEqual([1, 2, 3]);
});

it('follows a task over its end when it goes on in the commit that is not heard of yet', async () => {
  const { store, hold, written } = holdAnswers(openMemoryStore());
  const world = await World.open({ real: store, dispatcher: null });
  const { taskId } = (await world.admit('task')).admission;
  await world.apply({ taskId, intent: cancel });
  const held = hold();
  const resuming = world.apply({ taskId, intent: resume });
  await written();
  const { call, numbers } = watch(world, taskId);
  await turns();
  expect(numbers()).toEqual([1, 2, 3, 4]);
  expect(call.ended).toBeNull();
  held.reach();
  await resuming;
  await turns();
  expect(call.ended).toBeNull();
});

it('holds no more than its limit and one event of a commit that is larger, and loses none of it', async () => {
  const world = await World.open();
  const worker = await openWorker(world);
  const { taskId } = (await world.admit('task')).admission;
  await turns();
  await worker.say(taskId, 'accepted', 'started');
  const { call, listener, numbers } = watch(world, taskId);
  await turns();
  call.take(listener);
  const outputJson = JSON.stringify('x'.repeat(400_000));
  const output = { outputJson, binaryBase64: null, contentType: null, truncated: false };
  const said = Array.from({ length: 12 }, () => ({ kind: 'output', output }) as const);
  await worker.say(taskId, ...said);
  await turns();
  expect(call.pendingBytes).toBeGreaterThan(MAX_UNREAD_BYTES);
  expect(call.mostPendingBytes).toBeLessThan(MAX_UNREAD_BYTES + 2 * outputJson.length);
  expect(call.ended).toBeNull();
  await worker.say(taskId, 'completed');
  await until(() => {
    call.take(listener);
    return call.ended !== null;
  }, 'the end of the watch');
  expect(call.ended).toBe('ok');
  expect(call.mostPendingBytes).toBeLessThan(MAX_UNREAD_BYTES + 2 * outputJson.length);
  expect(numbers()).toEqual(Array.from({ length: 17 }, (_, index) => index + 1));
  expect(world.errors).toEqual([]);
});
