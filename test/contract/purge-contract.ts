// Purges in the store: what keeps a task from going, what is left of one that went, what no read finds any more, and
// that neither its key nor its id nor its sequences are ever given again.

import { expect, it } from 'vitest';
import { KEEP_FOR_EVER, MIN_KEPT_MS, purgeAt } from '../../src/kernel/retention.js';
import { tombstoneOf } from '../../src/kernel/tombstone.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitPlan } from '../../src/store/commit-plan.js';
import type { LinkWrite } from '../../src/store/family-rows.js';
import type { PurgeableTask } from '../../src/store/purge-rows.js';
import type { TaskStore } from '../../src/store/task-store.js';
import {
  NOW,
  cancelled,
  claimed,
  completed,
  joined,
  planOf,
  purgeOf,
  resumed,
  submitted,
  type TaskShape,
} from './sample-plans.js';
import { type StoreSource, commit, committed, committedOne, historyOf, kindsOf } from './store-under-test.js';

export async function sweepAll(store: TaskStore): Promise<void> {
  while (await store.sweepPurged());
}

export function purgeContract(store: StoreSource): void {
  const ended = async (shape: TaskShape = {}): Promise<TaskRecord> => {
    const task = await committedOne(store(), submitted(shape));
    return committedOne(store(), cancelled(task));
  };
  const idOf = (record: TaskRecord): string => record.admission.taskId;
  const linked = async (...links: readonly LinkWrite[]): Promise<void> => {
    expect(kindsOf(await commit(store(), planOf({ links })))).toEqual(['committed']);
  };

  it('leaves a tombstone and nothing else, and says so by id and by key', async () => {
    const record = await ended({ taskId: 'gone', key: 'k', namespace: 'n' });
    const [, event] = await historyOf(store(), 'gone');
    await commit(
      store(),
      planOf({
        ledger: [{ taskId: 'gone', intentKey: 'i', contentHash: 'h', answerJson: '{}' }],
        diagnostics: [{ taskId: 'gone', epoch: 1, at: NOW, text: 'late' }],
      }),
    );
    await committed(store(), submitted({ taskId: 'stays' }));
    expect(kindsOf(await commit(store(), purgeOf(record)))).toEqual(['committed']);
    const swept = async (): Promise<void> => {
      const [gone, stays] = await store().loadTasks(['gone', 'stays']);
      expect(gone).toEqual({
        kind: 'purged',
        taskId: 'gone',
        order: 1,
        tombstone: tombstoneOf(record, NOW),
        firstSequence: 1,
      });
      expect(stays?.kind).toBe('task');
      expect(await store().findTaskId('n', 'k')).toBe('gone');
      expect(await historyOf(store(), 'gone')).toEqual([]);
      expect(await store().readEvent('gone', event?.event.number ?? 0)).toBeNull();
      expect(await store().findLedgerEntry('gone', 'i')).toBeNull();
      expect(await store().readDiagnostics('gone', 10)).toEqual([]);
      const filter = { namespace: null, queue: null, statuses: null, actionKinds: null, labels: {} };
      for (const descending of [false, true]) {
        const page = await store().listTasks({ ...filter, descending, after: null, limit: 10, withArgs: true });
        expect(page.tasks.map(({ taskId }) => taskId)).toEqual(['stays']);
      }
    };
    await swept();
    await sweepAll(store());
    await swept();
    expect(await store().sweepPurged()).toBe(false);
  });

  it('never gives its key, its id, its place or its sequences again', async () => {
    const record = await ended({ taskId: 'gone', key: 'k' });
    await commit(store(), purgeOf(record));
    await sweepAll(store());
    expect(await commit(store(), submitted({ key: 'k' }).plan)).toEqual([{ kind: 'duplicate', taskId: 'gone' }]);
    const again = submitted({ taskId: 'gone', key: 'another' });
    const taken = { kind: 'task_id_taken', taskId: 'gone' };
    expect(await commit(store(), again.plan)).toEqual([taken]);
    // Also as one of several writes, which are checked another way; and the key that it wanted stays free.
    expect(await commit(store(), joined(submitted().plan, again.plan))).toEqual([taken]);
    const next = await committedOne(store(), submitted({ key: 'another' }));
    const [stored] = await store().loadTasks([idOf(next)]);
    expect(stored?.order).toBe(2);
    expect((await historyOf(store(), idOf(next))).map(({ sequence }) => sequence)).toEqual([4]);
  });

  it('goes only at the version that was seen, once, and alone in its plan', async () => {
    const live = await committedOne(store(), submitted());
    const record = await committedOne(store(), cancelled(live));
    const conflict = [{ kind: 'conflict', subject: 'record', id: idOf(record) }];
    const tombstone = tombstoneOf(record, NOW);
    if (tombstone === null) throw new Error('the task lives');
    const early = planOf({ purge: { taskId: idOf(record), version: live.lastEvent, tombstone } });
    expect(await commit(store(), early)).toEqual(conflict);
    expect(kindsOf(await commit(store(), purgeOf(record), purgeOf(record)))).toEqual(['committed', 'conflict']);
    expect(await commit(store(), purgeOf(record))).toEqual(conflict);
    await expect(commit(store(), joined(submitted().plan, purgeOf(record)))).rejects.toThrow('purges');
  });

  it('drops what was decided on a task that is gone, in the same batch and later', async () => {
    const record = await ended();
    const reader = submitted();
    const reads = planOf({ ...reader.plan, recordReads: [{ taskId: idOf(record), version: record.lastEvent }] });
    const noted = planOf({ ledger: [{ taskId: idOf(record), intentKey: 'i', contentHash: 'h', answerJson: '{}' }] });
    const verdicts = await commit(store(), purgeOf(record), reads, noted);
    expect(kindsOf(verdicts)).toEqual(['committed', 'conflict', 'conflict']);
    expect(kindsOf(await commit(store(), reads, noted))).toEqual(['conflict', 'conflict']);
  });

  it.each<[string, (taskId: string, other: string) => { hold: LinkWrite; release: LinkWrite | null }]>([
    [
      'an attached child that lives',
      (taskId, other) => ({
        hold: { kind: 'child_admitted', parentId: taskId, childId: other, live: true },
        release: { kind: 'child_ended', parentId: taskId, childId: other },
      }),
    ],
    [
      'a task that waits for it',
      (taskId, other) => ({
        hold: { kind: 'edge_opened', upstreamId: taskId, generation: 1, waiterId: other, condition: 'terminal' },
        release: { kind: 'edge_closed', upstreamId: taskId, generation: 1, waiterId: other },
      }),
    ],
    [
      'an edge of its own',
      (taskId, other) => ({
        hold: { kind: 'edge_opened', upstreamId: other, generation: 1, waiterId: taskId, condition: 'terminal' },
        release: { kind: 'edges_dropped', waiterId: taskId },
      }),
    ],
    [
      'a fact that is still to be told',
      (taskId) => {
        const row = { taskId, generation: 1, outcome: 'cancelled', eventNumber: 3 } as const;
        return { hold: { kind: 'propagation', row }, release: { kind: 'propagated', row } };
      },
    ],
  ])('is kept by %s, and goes after it', async (_what, linksOf) => {
    const record = await ended();
    const other = await committedOne(store(), submitted());
    const { hold, release } = linksOf(idOf(record), idOf(other));
    await linked(hold);
    expect(await store().isNeeded(idOf(record))).toBe(true);
    const verdicts = await commit(store(), purgeOf(record));
    expect(verdicts).toEqual([{ kind: 'conflict', subject: 'family', id: idOf(record) }]);
    expect((await store().loadTasks([idOf(record)]))[0]?.kind).toBe('task');
    if (release !== null) await linked(release);
    expect(await store().isNeeded(idOf(record))).toBe(false);
    expect(kindsOf(await commit(store(), purgeOf(record)))).toEqual(['committed']);
  });

  it.each(['in one batch', 'in two'])('lets a purge and a new child not both pass, %s', async (how) => {
    const record = await ended();
    const child = submitted();
    const links = [
      { kind: 'child_admitted', parentId: idOf(record), childId: idOf(child.record), live: true },
    ] as const;
    const begin = planOf({ ...child.plan, recordReads: [{ taskId: idOf(record), version: record.lastEvent }], links });
    const together = how === 'in one batch' ? await commit(store(), begin, purgeOf(record)) : null;
    const verdicts = together ?? [...(await commit(store(), begin)), ...(await commit(store(), purgeOf(record)))];
    expect(kindsOf(verdicts)).toEqual(['committed', 'conflict']);
  });

  it('rests on the parent as it was seen', async () => {
    const parent = await committedOne(store(), submitted());
    const child = await ended();
    const plan = purgeOf(child, [{ taskId: idOf(parent), version: parent.lastEvent }]);
    await committed(store(), claimed(parent));
    expect(await commit(store(), plan)).toEqual([{ kind: 'conflict', subject: 'record', id: idOf(parent) }]);
    expect((await store().loadTasks([idOf(child)]))[0]?.kind).toBe('task');
  });

  it('knows what may go, in order and by position, until it begins anew or goes', async () => {
    const spans = [MIN_KEPT_MS + 5, MIN_KEPT_MS, MIN_KEPT_MS + 5, 0];
    const records: TaskRecord[] = [];
    for (const retentionMs of spans) records.push(await ended({ retentionMs }));
    await ended();
    const due = purgeAt(records[0] as TaskRecord, KEEP_FOR_EVER) ?? 0;
    const idsOf = (tasks: readonly PurgeableTask[]) => tasks.map(({ taskId }) => taskId);
    const expected = [1, 3, 0, 2].map((at) => idOf(records[at] as TaskRecord));
    expect(idsOf(await store().purgeable(due, null, 10))).toEqual(expected);
    expect(idsOf(await store().purgeable(due - 1, null, 10))).toEqual(expected.slice(0, 2));
    const paged: string[] = [];
    for (let after: PurgeableTask | null = null; ;) {
      const [next]: readonly PurgeableTask[] = await store().purgeable(due, after, 1);
      if (next === undefined) break;
      paged.push(next.taskId);
      after = next;
    }
    expect(paged).toEqual(expected);
    const [first] = await store().purgeable(due, null, 1);
    expect(first).toMatchObject({ version: 3, purgeAt: due - 5 });
    await commit(store(), purgeOf(records[1] as TaskRecord));
    expect(idsOf(await store().purgeable(due, null, 10))).toEqual(expected.slice(1));
    const again = await committedOne(store(), resumed(records[3] as TaskRecord));
    expect(idsOf(await store().purgeable(due, null, 10))).toEqual(expected.slice(2));
    await committed(store(), cancelled(again));
    expect(idsOf(await store().purgeable(due, null, 10))).toEqual(expected.slice(1));
  });

  it('goes on listing the children of a purged parent, and a purged child no more', async () => {
    const parent = await ended();
    const attached = { taskId: idOf(parent), generationId: 'g', attached: false };
    const children = [submitted({ parent: attached }), submitted({ parent: attached })];
    for (const { plan, record } of children) {
      const link = { kind: 'child_admitted', parentId: idOf(parent), childId: idOf(record), live: false } as const;
      await commit(store(), planOf({ ...plan, links: [link] }));
    }
    const [one] = children;
    if (one === undefined) throw new Error('two were made');
    const list = async (parentTaskId: string) => {
      const filter = { namespace: null, queue: null, statuses: null, actionKinds: null, labels: {}, parentTaskId };
      const page = await store().listTasks({ ...filter, descending: false, after: null, limit: 10, withArgs: false });
      return page.tasks.length;
    };
    expect(await list(idOf(parent))).toBe(2);
    await commit(store(), purgeOf(await committedOne(store(), cancelled(one.record))));
    expect(await list(idOf(parent))).toBe(1);
    await commit(store(), purgeOf(parent));
    await sweepAll(store());
    expect(await list(idOf(parent))).toBe(1);
  });

  it('sweeps a long history in steps, and nothing else', async () => {
    let record = await committedOne(store(), claimed(await committedOne(store(), submitted())));
    const stays = await committedOne(store(), submitted());
    const intents: CommitPlan[] = [];
    for (let at = 0; at < 1_200; at++) {
      const entry = { taskId: idOf(record), intentKey: `i${String(at)}`, contentHash: 'h', answerJson: '{}' };
      intents.push(planOf({ ledger: [entry] }));
    }
    for (let at = 0; at < intents.length; at += 400) await commit(store(), ...intents.slice(at, at + 400));
    record = await committedOne(store(), completed(record));
    await commit(store(), purgeOf(record));
    await committed(store(), claimed(stays));
    await sweepAll(store());
    expect(await historyOf(store(), idOf(stays))).toHaveLength(2);
    expect(await historyOf(store(), idOf(record))).toEqual([]);
  });

  it('keeps the first answer under an operation’s key, and forgets those of before', async () => {
    const entry = (key: string, at: number, answerJson = '{"n":1}') => ({ key, contentHash: 'h', answerJson, at });
    const keep = (key: string, at: number, forgetBefore = 0, answerJson?: string) =>
      commit(store(), planOf({ operations: [{ entry: entry(key, at, answerJson), forgetBefore }] }));
    await keep('a', NOW);
    await keep('a', NOW + 1, 0, '{"n":2}');
    expect(await store().findOperation('a')).toEqual(entry('a', NOW));
    expect(await store().findOperation('b')).toBeNull();
    await keep('b', NOW + 10, NOW + 1);
    expect(await store().findOperation('a')).toBeNull();
    expect(await store().findOperation('b')).toEqual(entry('b', NOW + 10));
  });
}
