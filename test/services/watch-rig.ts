// Watches of many tasks without a server: a world, a call that is read when the test says so, short pages.

import { create } from '@bufbuild/protobuf';
import { WatchRequestSchema, WatchResponseSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { TaskFeed } from '../../src/services/task-feed.js';
import { watchHandler } from '../../src/services/watch.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { CursorMint } from '../../src/wire/cursor.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import type { Given } from '../support/submissions.js';
import { turns, until } from '../support/turns.js';
import type { World } from '../support/world.js';
import { FakeCall } from './fake-call.js';

export type Scope = { namespace: string } | { queue: string } | { subtreeOf: string };

export interface WatchOptions {
  readonly cursor?: string;
  readonly fromStart?: boolean;
  readonly incarnation?: string;
}

export function watch(world: World, scope: Scope, { cursor = '', fromStart, incarnation = 'life' }: WatchOptions = {}) {
  const call = new FakeCall(WatchResponseSchema);
  const { authority } = world;
  const onDefect = (error: unknown): void => void world.errors.push(error);
  const cursors = new CursorMint(new TokenMint('secret'), incarnation);
  const context = { authority, feed: new TaskFeed(authority), cursors, onDefect };
  const request = create(WatchRequestSchema, {
    scope:
      'namespace' in scope
        ? { case: 'namespace', value: scope.namespace }
        : 'queue' in scope
          ? { case: 'queue', value: { queue: scope.queue } }
          : { case: 'subtreeOf', value: scope.subtreeOf },
    cursor,
    ...(fromStart === undefined ? {} : { fromStart }),
  });
  const listener = watchHandler(context)(request, call);
  const events = () => call.messages.flatMap(({ item }) => (item.case === 'event' ? [item.value] : []));
  return {
    call,
    listener,
    sequences: () => events().map(({ sequence }) => Number(sequence)),
    taskIds: () => events().map(({ taskId }) => taskId),
    /** By task, the numbers of what was told. */
    told: () => {
      const byTask = new Map<string, number[]>();
      for (const { taskId, eventNumber } of events()) {
        byTask.set(taskId, [...(byTask.get(taskId) ?? []), Number(eventNumber)]);
      }
      return byTask;
    },
    bookmarks: () =>
      call.messages.flatMap(({ item }) => (item.case === 'bookmark' ? [Number(item.value.sequence)] : [])),
    /** Takes what is sent until the watch has caught up or is over; a store in threads needs answers of its own. */
    caughtUp: async (store?: TaskStore) => {
      const isThere = (): boolean => {
        call.take(listener);
        return call.ended !== null || call.messages.some(({ item }) => item.case === 'bookmark');
      };
      if (store === undefined) return until(isThere, 'the end of the replay');
      for (let round = 0; !isThere(); round++) {
        if (round > 5_000) throw new Error('the end of the replay never came');
        // An answer of each thread: what they were asked before is done by then.
        await Promise.all([store.eventBounds(), store.findOperation('')]);
        await turns(1);
      }
    },
  };
}

export async function ended(world: World, key: string, given: Given = {}): Promise<TaskRecord> {
  const { taskId } = (await world.admit(key, given)).admission;
  await world.cancel(taskId);
  return world.stored(taskId);
}

export const purge = ({ authority }: World, { admission, lastEvent: version }: TaskRecord) =>
  authority.upkeep.purge({ taskId: admission.taskId, version });

export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);

/** A store whose pages of events are short, so that there is something between them. */
export function shortPages(
  store: TaskStore,
  events: number,
  between: () => Promise<void> = () => Promise.resolve(),
): TaskStore {
  const readEvents: TaskStore['readEvents'] = async (scope, after, _limit, maxBytes) => {
    await between();
    return store.readEvents(scope, after, events, maxBytes);
  };
  return new Proxy(store, {
    get: (target, name: keyof TaskStore) => (name === 'readEvents' ? readEvents : Reflect.get(target, name)),
  });
}
