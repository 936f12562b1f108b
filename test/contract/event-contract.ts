// Events in the order of the store: which are in a scope, how a reader pages through them, and how far purges have come.

import { expect, it } from 'vitest';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { EventPage, EventScope } from '../../src/store/event-pages.js';
import type { LinkWrite } from '../../src/store/family-rows.js';
import { sweepAll } from './purge-contract.js';
import { cancelled, claimed, completed, outputOf, planOf, purgeOf, reported, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed, committedOne, historyOf } from './store-under-test.js';

const EVERYTHING: EventScope = { kind: 'queue', namespace: 'default', queue: null };

export function eventContract(store: StoreSource): void {
  const idOf = (record: TaskRecord): string => record.admission.taskId;
  const page = (scope: EventScope, after = 0, limit = 1_000, maxBytes = 1e9): Promise<EventPage> =>
    store().readEvents(scope, after, limit, maxBytes);
  const tell = ({ events }: EventPage) => events.map(({ sequence, taskId, event }) => [sequence, taskId, event.number]);

  /** Pages to the end; each page goes on where the one before says that it ended. */
  const readAll = async (scope: EventScope, limit: number, maxBytes = 1e9, after = 0): Promise<unknown[]> => {
    const told: unknown[] = [];
    for (let at = after; ;) {
      const next = await page(scope, at, limit, maxBytes);
      told.push(...tell(next));
      expect(next.through).toBeGreaterThanOrEqual(at);
      if (!next.more) return told;
      expect(next.through).toBeGreaterThan(at);
      at = next.through;
    }
  };

  it('are told with their admissions, of a namespace or a queue alone, to the last one', async () => {
    const one = await committedOne(store(), submitted({ taskId: 'one' }));
    await committed(
      store(),
      submitted({ taskId: 'two', queue: 'other' }),
      submitted({ taskId: 'far', namespace: 'far' }),
    );
    await committed(store(), completed(await committedOne(store(), claimed(one))));
    expect(tell(await page(EVERYTHING)).map(([sequence]) => sequence)).toEqual([1, 2, 4, 5, 6, 7]);
    const other = await page({ kind: 'queue', namespace: 'default', queue: 'other' });
    expect(tell(other)).toEqual([[2, 'two', 1]]);
    expect(other).toMatchObject({ through: 7, more: false, horizon: 0, purges: 0, damaged: [] });
    const [event] = other.events;
    expect(event?.admission).toMatchObject({ taskId: 'two', queue: 'other', application: { argsJson: '' } });
    expect(await store().eventBounds()).toEqual({ head: 7, horizon: 0, purges: 0 });
    expect(await page(EVERYTHING, 7)).toMatchObject({ events: [], through: 7, more: false });
    expect(tell(await page({ kind: 'queue', namespace: 'nobody', queue: null }))).toEqual([]);
  });

  it('come in pages of any size, from any event on, also within one commit and of large rows', async () => {
    let record = await committedOne(store(), claimed(await committedOne(store(), submitted({ taskId: 'big' }))));
    await committed(store(), submitted({ taskId: 'small' }), submitted({ namespace: 'far' }));
    const big = (n: number) => outputOf(JSON.stringify({ n, fill: 'x'.repeat(30_000) }));
    record = await committedOne(
      store(),
      reported(record, { kind: 'accepted' }, { kind: 'started' }, big(1), big(2), big(3), big(4)),
    );
    await committed(store(), submitted({ taskId: 'last' }));
    const all = tell(await page(EVERYTHING));
    expect(all.map(([sequence]) => sequence)).toEqual([1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
    for (const limit of [1, 2, 3, 5, 100]) expect(await readAll(EVERYTHING, limit)).toEqual(all);
    for (const maxBytes of [1, 40_000, 70_000]) expect(await readAll(EVERYTHING, 100, maxBytes)).toEqual(all);
    for (let after = 0; after <= 11; after++) {
      const rest = all.filter(([sequence]) => Number(sequence) > after);
      expect(await readAll(EVERYTHING, 2, 40_000, after)).toEqual(rest);
    }
    const history = await historyOf(store(), 'big');
    expect((await page(EVERYTHING)).events.filter(({ taskId }) => taskId === 'big').map(({ event }) => event)).toEqual(
      history.map(({ event }) => event),
    );
    expect(idOf(record)).toBe('big');
  });

  it('look at a bounded number of rows at a time, and still come to the end', async () => {
    const plans = Array.from({ length: 1_000 }, () => submitted({ namespace: 'far' }).plan);
    for (let at = 0; at < 6; at++) await commit(store(), ...plans.map(() => submitted({ namespace: 'far' }).plan));
    await committed(store(), submitted({ taskId: 'here' }));
    const first = await page(EVERYTHING);
    expect(first).toMatchObject({ events: [], more: true });
    expect(await readAll(EVERYTHING, 10)).toEqual([[6_001, 'here', 1]]);
  });

  it('of a subtree are those of the root and of all below it, at any depth, also below what was purged', async () => {
    const child = async (taskId: string, parentId: string, live: boolean): Promise<TaskRecord> => {
      const step = submitted({ taskId, parent: { taskId: parentId, generationId: 'g', attached: live } });
      const links: readonly LinkWrite[] = [{ kind: 'child_admitted', parentId, childId: taskId, live }];
      await committed(store(), { ...step, plan: planOf({ ...step.plan, links }) });
      return step.record;
    };
    await committed(
      store(),
      submitted({ taskId: 'before' }),
      submitted({ taskId: 'root' }),
      submitted({ taskId: 'stranger' }),
    );
    const middle = await child('middle', 'root', false);
    await child('foreign', 'stranger', true);
    const leaf = await child('leaf', 'middle', false);
    const [, root] = await store().loadTasks(['before', 'root']);
    const scope: EventScope = { kind: 'subtree', rootOrder: root?.order ?? 0 };
    expect(tell(await page(scope)).map(([, taskId]) => taskId)).toEqual(['root', 'middle', 'leaf']);
    await commit(store(), purgeOf(await committedOne(store(), cancelled(middle))));
    await sweepAll(store());
    await committed(store(), claimed(leaf));
    // Of another one in between, so that nothing is remembered of this one.
    const [stranger] = await store().loadTasks(['stranger']);
    const others = await page({ kind: 'subtree', rootOrder: stranger?.order ?? 0 });
    expect(tell(others).map(([, taskId]) => taskId)).toEqual(['stranger', 'foreign']);
    const told = tell(await page(scope));
    expect(told.map(([, taskId]) => taskId)).toEqual(['root', 'leaf', 'leaf']);
  });

  it('of a purged task are gone at once, and every purge is seen with the page', async () => {
    const one = await committedOne(store(), cancelled(await committedOne(store(), submitted())));
    const two = await committedOne(store(), cancelled(await committedOne(store(), submitted())));
    const stays = await committedOne(store(), submitted());
    await commit(store(), purgeOf(two));
    const first = await page(EVERYTHING);
    expect(tell(first).map(([sequence]) => sequence)).toEqual([1, 2, 3, 7]);
    expect(first).toMatchObject({ horizon: 6, purges: 1, through: 7 });
    await commit(store(), purgeOf(one));
    await sweepAll(store());
    // The horizon stands where it stood, and yet something is gone.
    expect(await page(EVERYTHING)).toMatchObject({ horizon: 6, purges: 2, through: 7 });
    expect(tell(await page(EVERYTHING))).toEqual([[7, idOf(stays), 1]]);
    expect(await store().eventBounds()).toEqual({ head: 7, horizon: 6, purges: 2 });
    await commit(store(), purgeOf(await committedOne(store(), cancelled(stays))));
    await sweepAll(store());
    expect(await page(EVERYTHING, 2)).toMatchObject({ events: [], through: 9, more: false, horizon: 9, purges: 3 });
    expect(await store().eventBounds()).toEqual({ head: 9, horizon: 9, purges: 3 });
  });

  it('name the life of the store, which is always the same', async () => {
    expect(await store().incarnation()).toMatch(/^[0-9a-f]{16}$/);
    expect(await store().incarnation()).toBe(await store().incarnation());
  });
}
