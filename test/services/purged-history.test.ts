// A task's history is told whole or not at all, also when its task is purged between two reads of one answer.

import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  ListEventsRequestSchema,
  WatchRequestSchema,
  WatchResponseSchema,
} from '../../src/gen/reeve/v1/task_service_pb.js';
import { EventLists } from '../../src/services/list-events.js';
import { TaskFeed } from '../../src/services/task-feed.js';
import { watchHandler } from '../../src/services/watch.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { CursorMint } from '../../src/wire/cursor.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';
import { FakeCall } from './fake-call.js';

/** A world with a finished task, which is purged before so many histories were read. */
async function purgedBeforeRead(read: number): Promise<{ world: World; taskId: string }> {
  const inner = openMemoryStore();
  let reads = 0;
  let purge: () => Promise<unknown> = () => Promise.resolve();
  const readHistory: TaskStore['readHistory'] = async (...args) => {
    reads += 1;
    if (reads === read) await purge();
    return inner.readHistory(...args);
  };
  const real = new Proxy(inner, {
    get: (target, name: keyof TaskStore) => (name === 'readHistory' ? readHistory : Reflect.get(target, name)),
  });
  const world = await World.open({ real, dispatcher: null });
  const { taskId } = (await world.admit('task')).admission;
  await world.cancel(taskId);
  const { lastEvent: version } = await world.stored(taskId);
  purge = () => world.authority.upkeep.purge({ taskId, version });
  return { world, taskId };
}

const PURGED = { reason: 'TASK_NOT_FOUND', metadata: { purged: 'true' } };

it.each([1, 2])('ListEvents says that it was purged, never that it is shorter (read %i)', async (read) => {
  const { world, taskId } = await purgedBeforeRead(read);
  const lists = new EventLists(world.authority);
  const page = (after: number) =>
    lists.listEvents(create(ListEventsRequestSchema, { taskId, afterEventNumber: BigInt(after), pageSize: 1 }));
  if (read === 2) expect(await page(0)).toMatchObject({ hasMore: true, events: [{ eventNumber: 1n }] });
  await expect(page(read - 1)).rejects.toMatchObject({ refusal: PURGED });
});

it.each([1, 2])('a watch says so too, unless all of it was told (read %i)', async (read) => {
  const { world, taskId } = await purgedBeforeRead(read);
  const call = new FakeCall(WatchResponseSchema);
  const { authority } = world;
  const cursors = new CursorMint(new TokenMint('secret'), 'life');
  const onDefect = (error: unknown): void => void world.errors.push(error);
  const request = create(WatchRequestSchema, { scope: { case: 'taskId', value: taskId } });
  watchHandler({ authority, feed: new TaskFeed(authority), cursors, onDefect })(request, call);
  await turns();
  if (read === 1) expect(call.ended).toMatchObject(PURGED);
  else expect(call.ended).toBe('ok');
  expect(call.messages).toHaveLength(read === 1 ? 0 : 3);
  expect(world.errors).toEqual([]);
});
