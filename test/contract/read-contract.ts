// Reads: histories by page, the ready and due indexes by position, lists by filter, identity by bytes.

import { expect, it } from 'vitest';
import { routeKeyOf } from '../../src/kernel/placement.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { type DueTask, type ListQuery, MAX_BYTES_PER_LIST, type ReadyPosition } from '../../src/store/task-store.js';
import { NOW, cancelled, claimed, completed, outputOf, reported, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed, committedOne, historyOf, kindsOf, recordOf } from './store-under-test.js';

const ALL: ListQuery = {
  namespace: null,
  queue: null,
  statuses: null,
  actionKinds: null,
  labels: {},
  descending: false,
  after: null,
  limit: 100,
  withArgs: true,
};

export function readContract(store: StoreSource): void {
  const idsOf = (tasks: readonly { readonly taskId: string }[]) => tasks.map(({ taskId }) => taskId);
  const list = async (query: Partial<ListQuery>) => idsOf((await store().listTasks({ ...ALL, ...query })).tasks);

  it('loads tasks in the order asked, null where there is none', async () => {
    await committed(store(), submitted({ taskId: 'a' }), submitted({ taskId: 'b' }));
    const loaded = await store().loadTasks(['b', 'nobody', 'a', 'b']);
    expect(loaded.map((task) => task?.taskId ?? null)).toEqual(['b', null, 'a', 'b']);
    expect(loaded.map((task) => task?.order ?? null)).toEqual([2, null, 1, 2]);
    expect(await store().loadTasks([])).toEqual([]);
  });

  it('finds a task by its key', async () => {
    await committed(store(), submitted({ taskId: 'a', key: 'k', namespace: 'n' }));
    expect(await store().findTaskId('n', 'k')).toBe('a');
    expect(await store().findTaskId('m', 'k')).toBeNull();
  });

  it('compares identity byte by byte', async () => {
    const keys = ['key', 'key ', 'KEY', 'caf\u00e9', 'cafe\u0301', 'ключ', '鍵', '🔑', 'k\u200bey'];
    for (const [at, key] of keys.entries()) await committed(store(), submitted({ taskId: `t${at}`, key }));
    for (const [at, key] of keys.entries()) expect(await store().findTaskId('default', key)).toBe(`t${at}`);
    expect(kindsOf(await commit(store(), submitted({ namespace: 'Default', key: 'key' }).plan))).toEqual(['committed']);
    expect(kindsOf(await commit(store(), submitted({ taskId: 'T0' }).plan))).toEqual(['committed']);
    expect(await store().loadTasks(['t0 '])).toEqual([null]);
  });

  it('reads a history from anywhere, by number of events and by bytes', async () => {
    let record = await committedOne(store(), submitted());
    const { taskId } = record.admission;
    record = await committedOne(store(), claimed(record));
    record = await committedOne(store(), reported(record, { kind: 'accepted' }, { kind: 'started' }));
    const big = (n: number) => outputOf(JSON.stringify({ n, fill: 'x'.repeat(1_000) }));
    record = await committedOne(store(), reported(record, big(1), big(2), big(3)));
    await committed(store(), reported(record, big(4)));
    const numbers = async (after: number, limit: number, maxBytes: number) =>
      (await store().readHistory(taskId, after, limit, maxBytes)).map(({ event }) => event.number);
    expect(await numbers(0, 100, 1e9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await numbers(5, 100, 1e9)).toEqual([6, 7, 8]);
    expect(await numbers(2, 3, 1e9)).toEqual([3, 4, 5]);
    expect(await numbers(8, 3, 1e9)).toEqual([]);
    expect(await numbers(4, 100, 1)).toEqual([5]);
    expect(await numbers(4, 100, 2_700)).toEqual([5, 6]);
    const paged: number[] = [];
    for (let page = await numbers(0, 3, 2_000); page.length > 0; page = await numbers(paged.at(-1) ?? 0, 3, 2_000)) {
      paged.push(...page);
    }
    expect(paged).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await store().readHistory('nobody', 0, 10, 1e9)).toEqual([]);
  });

  it('reads one event by its number', async () => {
    const task = submitted();
    const claim = claimed(task.record);
    await committed(store(), task, claim, completed(claim.record, '{"big":1}'));
    const { taskId } = task.record.admission;
    const all = await historyOf(store(), taskId);
    for (const stored of all) expect(await store().readEvent(taskId, stored.event.number)).toEqual(stored);
    expect(await store().readEvent(taskId, 6)).toBeNull();
    expect(await store().readEvent(taskId, 0)).toBeNull();
    expect(await store().readEvent('nobody', 1)).toBeNull();
  });

  it('gives every event of the store a sequence of its own, in the order of commits', async () => {
    const tasks = await committed(store(), submitted(), submitted());
    await committed(store(), ...tasks.map((record) => claimed(record)));
    const histories = await Promise.all(tasks.map(({ admission }) => historyOf(store(), admission.taskId)));
    expect(histories.map((events) => events.map(({ sequence }) => sequence))).toEqual([
      [1, 3],
      [2, 4],
    ]);
  });

  it('holds the ready tasks of a route in order, and continues after any of them', async () => {
    const shapes = [{ at: NOW + 5 }, { at: NOW }, { at: NOW + 5 }, { at: NOW + 60_006, priority: 1 }, { at: NOW + 5 }];
    const tasks = await committed(store(), ...shapes.map((shape) => submitted(shape)));
    await committed(store(), submitted({ queue: 'other' }), submitted({ notBeforeAt: NOW + 1_000 }));
    const route = routeOf(tasks[0]);
    const expected = [1, 0, 2, 4, 3].map((at) => tasks[at]?.admission.taskId);
    const ready = await store().readyTasks(route, null, 100);
    expect(idsOf(ready)).toEqual(expected);
    const paged: string[] = [];
    let after: ReadyPosition | null = null;
    for (;;) {
      const page = await store().readyTasks(route, after, 2);
      paged.push(...idsOf(page));
      after = page.at(-1)?.position ?? null;
      if (page.length === 0) break;
    }
    expect(paged).toEqual(expected);
    expect(await store().readyTasks('no such route', null, 10)).toEqual([]);
  });

  it('takes out of the ready index what was claimed, and puts in what comes back', async () => {
    const record = await committedOne(store(), submitted());
    const claim = await committedOne(store(), claimed(record));
    expect(await store().readyTasks(routeOf(record), null, 10)).toEqual([]);
    const back = reported(claim, { kind: 'suspended', reason: null });
    expect(back.record.status).toBe('suspended');
    await committed(store(), back);
    expect(await store().readyTasks(routeOf(record), null, 10)).toEqual([]);
  });

  it('names every route that was ever used', async () => {
    const tasks = await committed(store(), submitted(), submitted({ queue: 'b' }), submitted({ kind: 'flow' }));
    await committed(store(), ...tasks.map((record) => cancelled(record)));
    expect([...(await store().routeKeys())].sort()).toEqual(tasks.map((record) => routeOf(record)).sort());
  });

  it('finds due tasks, earliest first, and continues after any of them', async () => {
    expect(await store().earliestTimer()).toBeNull();
    const shapes = [{ startByMs: 300 }, { startByMs: 100 }, { startByMs: 300 }, { startByMs: 900 }, {}];
    const tasks = await committed(store(), ...shapes.map((shape) => submitted(shape)));
    expect(await store().earliestTimer()).toBe(NOW + 100);
    const expected = [1, 0, 2].map((at) => tasks[at]?.admission.taskId);
    const due = await store().dueTasks(NOW + 300, null, 10);
    expect(idsOf(due)).toEqual(expected);
    expect(due.map(({ dueAt }) => dueAt)).toEqual([NOW + 100, NOW + 300, NOW + 300]);
    expect(await store().dueTasks(NOW + 99, null, 10)).toEqual([]);
    const paged: string[] = [];
    let after: DueTask | null = null;
    for (;;) {
      const page: readonly DueTask[] = await store().dueTasks(NOW + 300, after, 1);
      paged.push(...idsOf(page));
      if (page.length === 0) break;
      after = page[0] ?? null;
    }
    expect(paged).toEqual(expected);
    await committed(store(), ...tasks.slice(0, 4).map((record) => cancelled(record)));
    expect(await store().earliestTimer()).toBeNull();
  });

  it('lists in admission order, both ways, page by page', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e'];
    await committed(store(), ...ids.map((taskId) => submitted({ taskId })));
    expect(await list({})).toEqual(ids);
    expect(await list({ descending: true })).toEqual(ids.toReversed());
    for (const descending of [false, true]) {
      const paged: string[] = [];
      let after: number | null = null;
      do {
        const page = await store().listTasks({ ...ALL, descending, after, limit: 2 });
        expect(page.tasks.length).toBeLessThanOrEqual(2);
        paged.push(...idsOf(page.tasks));
        after = page.next;
      } while (after !== null);
      expect(paged).toEqual(descending ? ids.toReversed() : ids);
    }
  });

  it('lists by namespace, queue, kind, status and labels, all of them together', async () => {
    const claim = claimed(submitted({ taskId: 'c', kind: 'flow', labels: { team: 'x', size: 'l' } }).record);
    await committed(
      store(),
      submitted({ taskId: 'a', namespace: 'one', labels: { team: 'x' } }),
      submitted({ taskId: 'b', queue: 'side', labels: { team: 'y', __proto__: 'z' } }),
      submitted({ taskId: 'c', kind: 'flow', labels: { team: 'x', size: 'l' } }),
      claim,
    );
    expect(await list({ namespace: 'one' })).toEqual(['a']);
    expect(await list({ queue: 'side' })).toEqual(['b']);
    expect(await list({ actionKinds: ['flow', 'play'] })).toEqual(['c']);
    expect(await list({ statuses: ['queued'] })).toEqual(['a', 'b']);
    expect(await list({ statuses: ['running', 'queued'] })).toEqual(['a', 'b', 'c']);
    expect(await list({ statuses: [] })).toEqual([]);
    expect(await list({ labels: { team: 'x' } })).toEqual(['a', 'c']);
    expect(await list({ labels: { team: 'x', size: 'l' } })).toEqual(['c']);
    expect(await list({ labels: { toString: 'x' } })).toEqual([]);
    expect(await list({ labels: { team: 'x' }, statuses: ['queued'], namespace: 'one' })).toEqual(['a']);
    expect(await list({ labels: { team: 'x' }, statuses: ['running'], namespace: 'one' })).toEqual([]);
  });

  it('lists without args when they are not asked for, and in pages of bounded weight when they are', async () => {
    const argsJson = JSON.stringify({ fill: 'x'.repeat(1_500_000) });
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    for (const taskId of ids) await committed(store(), submitted({ taskId, argsJson, labels: { n: taskId } }));
    const bare = await store().listTasks({ ...ALL, withArgs: false });
    expect([idsOf(bare.tasks), bare.next]).toEqual([ids, null]);
    const args = bare.tasks.map((task) => (task.kind === 'task' ? task.record.admission.application.argsJson : null));
    expect(args).toEqual(ids.map(() => ''));
    expect(await list({ withArgs: false, labels: { n: 'c' } })).toEqual(['c']);
    const paged: string[] = [];
    for (let after: number | null = null, pages = 0; pages < ids.length; pages++) {
      const page = await store().listTasks({ ...ALL, after });
      const weight = JSON.stringify(page.tasks).length;
      expect([page.tasks.length > 0, weight < MAX_BYTES_PER_LIST + 1_600_000]).toEqual([true, true]);
      paged.push(...idsOf(page.tasks));
      after = page.next;
      if (after === null) break;
    }
    expect(paged).toEqual(ids);
  });

  it('looks at a bounded number of rows per list and says where to go on', async () => {
    const batch = (from: number) => Array.from({ length: 1_000 }, (_, at) => submitted({ taskId: `n${from + at}` }));
    for (let from = 0; from < 10_000; from += 1_000) await committed(store(), ...batch(from));
    await committed(store(), submitted({ taskId: 'needle', queue: 'rare' }));
    const first = await store().listTasks({ ...ALL, queue: 'rare' });
    expect(first.tasks).toEqual([]);
    expect(first.next).toBe(10_000);
    const second = await store().listTasks({ ...ALL, queue: 'rare', after: first.next });
    expect(idsOf(second.tasks)).toEqual(['needle']);
    expect(second.next).toBeNull();
  });

  it('answers reads while commits go on, each read whole', async () => {
    const task = submitted({ taskId: 'busy' });
    let record: TaskRecord = await committedOne(store(), task);
    record = await committedOne(store(), claimed(record));
    record = await committedOne(store(), reported(record, { kind: 'accepted' }, { kind: 'started' }));
    const writes: Promise<unknown>[] = [];
    for (let n = 0; n < 50; n++) {
      const step = reported(record, { kind: 'progress', progress: n / 50, message: null });
      writes.push(committed(store(), step));
      record = step.record;
    }
    const reads = Array.from({ length: 20 }, async () => {
      const [history, loaded] = await Promise.all([historyOf(store(), 'busy'), recordOf(store(), 'busy')]);
      expect(history.map(({ event }) => event.number)).toEqual(history.map((_, at) => at + 1));
      expect(loaded?.lastEvent).toBe(54);
    });
    await Promise.all([...writes, ...reads]);
    expect(await recordOf(store(), 'busy')).toEqual(record);
  });

  it('keeps one secret of 32 random bytes', async () => {
    const secret = await store().secret();
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(await store().secret()).toBe(secret);
  });

  it('is of no use once it is closed', async () => {
    await store().close();
    await expect(store().loadTasks(['a'])).rejects.toMatchObject({ name: 'StoreError', failure: 'fatal' });
    await expect(commit(store(), submitted().plan)).rejects.toMatchObject({ failure: 'fatal' });
    await store().close();
  });
}

function routeOf(record: TaskRecord | undefined): string {
  if (record === undefined) throw new Error('no task');
  return routeKeyOf(record.admission);
}
