// Watching many tasks: which events belong to a scope, the seam between replay and live, pages between which purges run,
// subtrees whose members are met while they are watched, slow readers, cursors of another life of the store.

import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WatchRequestSchema, WatchResponseSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { TaskFeed } from '../../src/services/task-feed.js';
import { BOOKMARK_PERIOD_MS, MAX_UNREAD_BYTES, watchHandler } from '../../src/services/watch.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { CursorMint } from '../../src/wire/cursor.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { sqliteEngine } from '../contract/engines.js';
import { type Given, causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { turns, until } from '../support/turns.js';
import { World } from '../support/world.js';
import { FakeCall } from './fake-call.js';

type Scope = { namespace: string } | { queue: string } | { subtreeOf: string };

interface WatchOptions {
  readonly cursor?: string;
  readonly fromStart?: boolean;
  readonly incarnation?: string;
}

function watch(world: World, scope: Scope, { cursor = '', fromStart, incarnation = 'life' }: WatchOptions = {}) {
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

const suspend = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;

async function ended(world: World, key: string, given: Given = {}): Promise<TaskRecord> {
  const { taskId } = (await world.admit(key, given)).admission;
  await world.cancel(taskId);
  return world.stored(taskId);
}

const purge = ({ authority }: World, { admission, lastEvent: version }: TaskRecord) =>
  authority.purge({ taskId: admission.taskId, version });

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, at) => from + at);

/** A store whose pages of events are short, so that there is something between them. */
function shortPages(
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

describe('a scope', () => {
  it('of a namespace or a queue has the events of its tasks, replayed and live, each once and in order', async () => {
    const world = await World.open({ real: shortPages(openMemoryStore(), 2), dispatcher: null });
    const one = await world.admit('one');
    await world.admit('far', { namespace: 'far' });
    await world.admit('other', { queue: 'other' });
    const all = watch(world, { namespace: '' });
    const queue = watch(world, { queue: 'other' });
    const now = watch(world, { namespace: '' }, { fromStart: false });
    await all.caughtUp();
    await turns();
    await world.apply({ taskId: one.admission.taskId, intent: suspend });
    await world.admit('far too', { namespace: 'far' });
    await world.admit('other too', { queue: 'other' });
    await turns();
    expect(all.sequences()).toEqual([1, 3, 4, 6]);
    expect(queue.sequences()).toEqual([3, 6]);
    expect(now.sequences()).toEqual([4, 6]);
    expect(all.bookmarks()).toEqual([3]);
    expect([all, queue, now].map(({ call }) => call.ended)).toEqual([null, null, null]);
  });

  it('goes on from every cursor, of events and of bookmarks, with exactly what follows', async () => {
    const world = await World.open({ real: shortPages(openMemoryStore(), 3), dispatcher: null });
    const whole = watch(world, { namespace: '' });
    await whole.caughtUp();
    for (let at = 0; at < 8; at++) await ended(world, `k${String(at)}`, at % 2 === 0 ? {} : { namespace: 'far' });
    await turns();
    whole.call.take(whole.listener);
    await world.clock.advance(BOOKMARK_PERIOD_MS);
    expect(whole.bookmarks()).toEqual([0, 24]);
    for (const [at, { cursor }] of whole.call.messages.entries()) {
      const rest = watch(world, { namespace: '' }, { cursor });
      await rest.caughtUp();
      const following = whole.call.messages.slice(at + 1);
      const sequences = following.flatMap(({ item }) => (item.case === 'event' ? [Number(item.value.sequence)] : []));
      expect(rest.sequences()).toEqual(sequences);
    }
  });

  it('that is watched while commits of others fill the store still says where it stands', async () => {
    const world = await World.open({ dispatcher: null });
    const { call, listener, bookmarks } = watch(world, { queue: 'quiet' });
    await turns();
    for (let at = 0; at < 5; at++) await world.admit(`noise ${String(at)}`);
    call.take(listener);
    await world.clock.advance(BOOKMARK_PERIOD_MS);
    expect(bookmarks()).toEqual([0, 5]);
  });

  it('of a subtree has its members as they are admitted, at any depth, and none of another family', async () => {
    const world = await World.open({ dispatcher: null });
    const child = async (key: string, parentId: string, attached: boolean): Promise<string> => {
      const { generationId } = await world.stored(parentId);
      const policy = { parent: { taskId: parentId, generationId, attached } };
      return (await world.admit(key, { policy })).admission.taskId;
    };
    const root = (await world.admit('root')).admission.taskId;
    const stranger = (await world.admit('stranger')).admission.taskId;
    const early = await child('early', root, false);
    const foreign = await child('foreign', stranger, true);
    const late = watch(world, { subtreeOf: root }, { fromStart: false });
    const all = watch(world, { subtreeOf: root });
    await turns();
    const leaf = await child('leaf', early, false);
    await turns();
    const foreignLeaf = await child('foreign leaf', foreign, false);
    await turns();
    const deep = await child('deep', leaf, true);
    for (const taskId of [foreignLeaf, deep, foreign]) await world.apply({ taskId, intent: suspend });
    await turns();
    const members = new Set([root, early, leaf, deep]);
    expect(new Set(all.taskIds())).toEqual(members);
    expect(all.told().get(deep)).toEqual([1, 2]);
    // `deep` is attached, so its parent notes its first child.
    expect(all.told().get(leaf)).toEqual([1, 2]);
    expect(late.taskIds()).toEqual([leaf, leaf, deep, deep]);
    // Members that it does not know by itself it learns from the store; those of others it asks for once.
    const reads = world.probe.calls.get('readEvents') ?? 0;
    for (let at = 0; at < 5; at++) {
      const intent = at % 2 === 0 ? { ...resumeSame } : suspend;
      await world.apply({ taskId: foreignLeaf, intent });
    }
    await turns();
    expect((world.probe.calls.get('readEvents') ?? 0) - reads).toBe(0);
  });

  it('of a subtree whose root is not there, or was purged, is refused', async () => {
    const world = await World.open({ dispatcher: null });
    const gone = await ended(world, 'gone');
    await purge(world, gone);
    for (const [root, metadata] of [
      ['nobody', { task_id: 'nobody' }],
      [gone.admission.taskId, { task_id: gone.admission.taskId, purged: 'true' }],
    ] as const) {
      const { call } = watch(world, { subtreeOf: root });
      await turns();
      expect(call.ended).toMatchObject({ reason: 'TASK_NOT_FOUND', metadata });
    }
  });
});

const resumeSame = {
  kind: 'resume',
  newGenerationId: null,
  spareGenerationId: 'spare',
  inputJson: null,
  cause: causeOf('operator'),
} as const;

describe('the seam', () => {
  it('is closed by the store when a commit is heard of out of turn', async () => {
    const world = await World.open({ dispatcher: null });
    const { sequences } = watch(world, { namespace: '' });
    await turns();
    // Another process on the same store: nothing is heard of its commits.
    const replica = await world.replica({ dispatcher: null });
    await replica.admit('unheard');
    await world.admit('heard');
    await turns();
    expect(sequences()).toEqual([1, 2]);
  });

  it('cuts a slow reader at its limit, with a cursor that leaves nothing out', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { taskId } = (await world.admit('task')).admission;
    await turns();
    await worker.say(taskId, 'accepted', 'started');
    const { call, listener } = watch(world, { namespace: '' });
    await turns();
    call.take(listener);
    const outputJson = JSON.stringify('x'.repeat(400_000));
    const output = { outputJson, binaryBase64: null, contentType: null, truncated: false };
    for (let at = 0; at < 6; at++) {
      await worker.say(taskId, { kind: 'output', output });
      await turns();
    }
    expect(call.mostPendingBytes).toBeLessThan(MAX_UNREAD_BYTES + 2 * outputJson.length);
    expect(call.ended).toMatchObject({ reason: 'SLOW_READER' });
    const cursor = typeof call.ended === 'object' ? (call.ended?.metadata['cursor'] ?? '') : '';
    const rest = watch(world, { namespace: '' }, { cursor });
    await rest.caughtUp();
    expect(rest.sequences()).toEqual(range(5, 10));
  });
});

describe('a cursor', () => {
  it('below the horizon has expired, and the earliest one holds', async () => {
    const world = await World.open({ dispatcher: null });
    const gone = await ended(world, 'gone');
    const stays = await ended(world, 'stays');
    const before = watch(world, { namespace: '' });
    await before.caughtUp();
    await purge(world, gone);
    const cursors = before.call.messages.map(({ cursor }) => cursor);
    for (const cursor of cursors.slice(0, 2)) {
      const { call } = watch(world, { namespace: '' }, { cursor });
      await turns();
      expect(call.ended).toMatchObject({ reason: 'CURSOR_EXPIRED' });
      const earliest = typeof call.ended === 'object' ? (call.ended?.metadata['earliest_cursor'] ?? '') : '';
      const rest = watch(world, { namespace: '' }, { cursor: earliest });
      await rest.caughtUp();
      expect(rest.sequences()).toEqual([4, 5, 6]);
    }
    // At the horizon, and behind it, nothing is missing.
    const at = watch(world, { namespace: '' }, { cursor: cursors[2] ?? '' });
    await at.caughtUp();
    expect(at.sequences()).toEqual([4, 5, 6]);
    const fresh = watch(world, { namespace: '' });
    await fresh.caughtUp();
    expect(fresh.taskIds()).toEqual(Array.from({ length: 3 }, () => stays.admission.taskId));
  });

  it('given below the horizon holds while nothing more is purged, also below that horizon', async () => {
    const world = await World.open({ dispatcher: null });
    const [one, two] = [await ended(world, 'one'), await ended(world, 'two')];
    const last = await ended(world, 'last');
    await purge(world, last);
    const from = watch(world, { namespace: '' });
    await from.caughtUp();
    expect(from.sequences()).toEqual(range(1, 6));
    const cursor = from.call.messages[1]?.cursor ?? '';
    const rest = watch(world, { namespace: '' }, { cursor });
    await rest.caughtUp();
    expect(rest.sequences()).toEqual(range(3, 6));
    // The horizon stays where it is, and still something is gone that this reader has seen the half of.
    await purge(world, one);
    expect((await world.real.eventBounds()).horizon).toBe(9);
    const late = watch(world, { namespace: '' }, { cursor });
    await turns();
    expect(late.call.ended).toMatchObject({ reason: 'CURSOR_EXPIRED' });
    expect(two.admission.taskId).toBe(from.taskIds()[3]);
  });

  it('of another life of the store has expired; a foreign or altered one is invalid', async () => {
    const world = await World.open({ dispatcher: null });
    await world.admit('task');
    const { call, caughtUp } = watch(world, { namespace: '' });
    await caughtUp();
    const cursor = call.messages[0]?.cursor ?? '';
    const restored = watch(world, { namespace: '' }, { cursor, incarnation: 'another life' });
    await turns();
    expect(restored.call.ended).toMatchObject({ reason: 'CURSOR_EXPIRED' });
    const { ended: told } = restored.call;
    const earliest = typeof told === 'object' ? (told?.metadata['earliest_cursor'] ?? '') : '';
    const again = watch(world, { namespace: '' }, { cursor: earliest, incarnation: 'another life' });
    await again.caughtUp();
    expect(again.sequences()).toEqual([1]);
    expect(() => watch(world, { queue: 'main' }, { cursor })).toThrow('cursor');
    expect(() => watch(world, { namespace: '' }, { cursor: cursor.slice(1) })).toThrow('cursor');
    const beyond = new CursorMint(new TokenMint('secret'), 'life').give('watch namespace\ndefault', '9');
    const far = watch(world, { namespace: '' }, { cursor: beyond });
    await turns();
    expect(far.call.ended).toMatchObject({ reason: 'CURSOR_INVALID' });
  });
});

// What a watcher in the middle of its replay is told while tasks end and are purged around it: every task whole, or none
// of it, or CURSOR_EXPIRED. Never a part of one, and never silently less than what is kept.
describe('purges between the pages of a replay', () => {
  it.each(['memory', 'sqlite'])(
    'leave no hole (%s)',
    async (kind) => {
      // One store for all runs, a namespace for each.
      const inner = kind === 'sqlite' ? await sqliteEngine.open() : openMemoryStore();
      let runs = 0;
      let expired = 0;
      let whole = 0;
      const step = fc.constantFrom('admit', 'end', 'purge', 'sweep', 'nothing');
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 4, maxLength: 24 }),
        fc.array(fc.array(step, { maxLength: 4 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 4 }),
        async (before, between, pageEvents) => {
          const namespace = `run${String(runs++)}`;
          const pauses = [...between];
          let world: World | null = null;
          let live: string[] = [];
          let over: TaskRecord[] = [];
          let made = 0;
          const act = async (what: string): Promise<void> => {
            if (world === null) return;
            if (what === 'admit')
              live = [...live, (await world.admit(`k${String(made++)}`, { namespace })).admission.taskId];
            const [first] = live;
            if (what === 'end' && first !== undefined) {
              live = live.slice(1);
              await world.cancel(first);
              over = [...over, await world.stored(first)];
            }
            const [oldest] = over;
            if (what === 'purge' && oldest !== undefined) {
              over = over.slice(1);
              await purge(world, oldest);
            }
            if (what === 'sweep') await inner.sweepPurged();
          };
          const real = shortPages(inner, pageEvents, async () => {
            for (const what of pauses.shift() ?? []) await act(what);
          });
          world = await World.open({ real, dispatcher: null, timers: 'stopped', propagation: 'stopped' });
          for (const what of before) await act(what);
          const watching = watch(world, { namespace });
          await watching.caughtUp(inner);
          const { ended: how } = watching.call;
          if (how !== null) {
            expect(how).toMatchObject({ reason: 'CURSOR_EXPIRED' });
            expired += 1;
          } else {
            whole += 1;
            await turns();
            watching.call.take(watching.listener);
            const told = watching.told();
            for (const numbers of told.values()) expect(numbers).toEqual(range(1, numbers.length));
            for (const taskId of [...live, ...over.map(({ admission }) => admission.taskId)]) {
              const record = await world.stored(taskId);
              expect(told.get(taskId)).toEqual(range(1, record.lastEvent));
            }
            for (const taskId of told.keys()) {
              const [task] = await inner.loadTasks([taskId]);
              if (task?.kind === 'purged') expect(told.get(taskId)).toHaveLength(task.tombstone.lastEvent);
            }
          }
          expect(world.errors).toEqual([]);
          expect(world.defects).toEqual([]);
          watching.listener.closed();
          world.kill();
        },
      );
      await fc.assert(property, { numRuns: kind === 'sqlite' ? 60 : 300 });
      await inner.close();
      // Both ends are met, or the property proves nothing.
      expect(expired).toBeGreaterThan(0);
      expect(whole).toBeGreaterThan(0);
    },
    60_000,
  );
});
