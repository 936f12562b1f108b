// Watching many tasks: which events belong to a scope, the seam between replay and live, subtrees whose members are met
// while they are watched, slow readers, cursors that purges or another life of the store have overtaken.

import { describe, expect, it } from 'vitest';
import { BOOKMARK_PERIOD_MS, MAX_UNREAD_BYTES } from '../../src/services/watch.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { CursorMint } from '../../src/wire/cursor.js';
import { TokenMint } from '../../src/wire/opaque-token.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';
import { ended, purge, range, shortPages, watch } from './watch-rig.js';

const suspend = { kind: 'suspend', lease: null, cause: causeOf('operator') } as const;

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
