// Audits and repairs: everything that is kept of a task, page by page, with its chain; and the one write that may
// overwrite a record, which only goes through on what was seen.

import { expect, it } from 'vitest';
import { type AuditedTask, MAX_HISTORY_PER_STRETCH } from '../../src/store/audit-rows.js';
import {
  cancelled,
  claimed,
  completed,
  outputOf,
  planOf,
  repaired,
  reported,
  sessionRow,
  submitted,
} from './sample-plans.js';
import {
  type StoreSource,
  commit,
  committed,
  committedOne,
  historyOf,
  recordOf,
  writtenAt,
} from './store-under-test.js';

export function auditContract(store: StoreSource): void {
  const audited = async (taskId: string): Promise<AuditedTask> => {
    const [task] = (await store().auditTasks({ taskIds: [taskId], after: 0, limit: 1 })).tasks;
    if (task === null || task === undefined) throw new Error(`there is no ${taskId}`);
    return task;
  };

  it('tells all tasks in admission order, page by page', async () => {
    const ids = ['c', 'a', 'd', 'b', 'e'];
    for (const taskId of ids) await committed(store(), submitted({ taskId }));
    const seen: (string | null | undefined)[] = [];
    for (let after: number | null = 0; after !== null;) {
      const page = await store().auditTasks({ taskIds: null, after, limit: 2 });
      expect(page.tasks.length).toBeLessThanOrEqual(2);
      seen.push(...page.tasks.map((task) => task?.taskId));
      after = page.next;
    }
    expect(seen).toEqual(ids);
  });

  it('tells those that are named, in their order, and null for none', async () => {
    await committed(store(), submitted({ taskId: 'a' }), submitted({ taskId: 'b' }));
    const taskIds = ['b', 'nobody', 'a'];
    const first = await store().auditTasks({ taskIds, after: 0, limit: 2 });
    expect(first.tasks.map((task) => task?.taskId)).toEqual(['b', undefined]);
    const second = await store().auditTasks({ taskIds, after: first.next ?? 9, limit: 2 });
    expect([second.tasks.map((task) => task?.taskId), second.next]).toEqual([['a'], null]);
  });

  it('tells everything that is kept of a task beside its history', async () => {
    const task = submitted({ taskId: 'a', key: 'k', startByMs: 5_000 });
    const claim = claimed(task.record, 's');
    await commit(store(), planOf({ sessions: [{ kind: 'open', session: sessionRow('s', { expiresAt: 7 }) }] }));
    await committed(store(), task, claim);
    const { admission, record, ...rest } = await audited('a');
    expect(admission).toMatchObject({ ok: true, value: { taskId: 'a', idempotencyKey: 'k' } });
    expect(record).toMatchObject({ ok: true, value: { status: 'running', lastEvent: 2 } });
    expect(rest).toMatchObject({
      order: 1,
      taskId: 'a',
      argsHold: true,
      version: 2,
      lastNumber: 2,
      keyOrder: 1,
      routeKey: 'default\nmain\nagent\nhost\n',
      index: { readyOrder: null, leaseSession: 's' },
      session: { state: 'live', expiresAt: 7, ttlMs: 30_000 },
      family: { parent: null, livesAsChild: null, parentPropagates: false },
    });
  });

  it('tells what a family counts, and what there is', async () => {
    const parent = await committedOne(store(), submitted({ taskId: 'parent' }));
    const link = { taskId: 'parent', generationId: parent.generationId, attached: true };
    const child = submitted({ taskId: 'child', parent: link });
    const links = [
      { kind: 'child_admitted', parentId: 'parent', childId: 'child', live: true },
      { kind: 'edge_opened', upstreamId: 'parent', generation: 1, waiterId: 'child', condition: 'terminal' },
      {
        kind: 'propagation',
        row: { taskId: 'parent', generation: 1, outcome: 'cancel_requested', eventNumber: 1 },
      },
    ] as const;
    await commit(store(), { ...child.plan, links });
    expect((await audited('parent')).family).toMatchObject({
      counts: { liveChildren: 1, unsatisfied: 0 },
      found: { liveChildren: 1, unsatisfied: 0 },
    });
    expect((await audited('child')).family).toMatchObject({
      counts: { liveChildren: 0, unsatisfied: 1 },
      found: { liveChildren: 0, unsatisfied: 1 },
      livesAsChild: true,
      parent: { status: 'queued', generationId: parent.generationId },
      parentPropagates: true,
    });
  });

  it('gives every commit a link, and all that read it the same one', async () => {
    const task = submitted({ taskId: 'a' });
    const claim = claimed(task.record);
    const verdicts = await commit(store(), task.plan, claim.plan, completed(claim.record).plan);
    const links = verdicts.flatMap((verdict) => (verdict.kind === 'committed' ? verdict.links : []));
    expect(new Set(links).size).toBe(3);
    const { commits } = (await audited('a')).history;
    expect(commits.map(({ link }) => link)).toEqual(links);
    expect(commits.map(({ chain }) => chain)).toEqual(['holds', 'holds', 'holds']);
    const [submit, taken, done] = links;
    expect((await historyOf(store(), 'a')).map(({ link }) => link)).toEqual([submit, taken, done, done, done]);
    expect(await store().readEvent('a', 4)).toMatchObject({ link: done });
  });

  it('gives two tasks with the same history different links', async () => {
    const [one, other] = await commit(store(), submitted({ taskId: 'a' }).plan, submitted({ taskId: 'b' }).plan);
    expect(one?.kind === 'committed' && other?.kind === 'committed' && one.links[0] !== other.links[0]).toBe(true);
  });

  it('tells a long history in stretches, its chain unbroken between them', async () => {
    let record = await committedOne(store(), submitted({ taskId: 'long' }));
    record = await committedOne(store(), claimed(record));
    record = await committedOne(store(), reported(record, { kind: 'accepted' }, { kind: 'started' }));
    const large = outputOf(JSON.stringify('x'.repeat(MAX_HISTORY_PER_STRETCH / 2)));
    for (let n = 0; n < 5; n++) record = await committedOne(store(), reported(record, large));
    const task = await audited('long');
    let stretch = task.history;
    const numbers: number[] = [];
    for (;;) {
      expect(stretch.commits.every(({ chain }) => chain === 'holds')).toBe(true);
      numbers.push(...stretch.commits.map(({ lastNumber }) => lastNumber));
      if (!stretch.more) break;
      stretch = await store().auditHistory(task.order, numbers.at(-1) ?? 0, record.lastEvent);
    }
    expect(numbers).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
    expect(task.history.more).toBe(true);
    const upTo = await store().auditHistory(task.order, 2, 5);
    expect([upTo.commits.map(({ lastNumber }) => lastNumber), upTo.more]).toEqual([[4, 5], false]);
  });

  it('overwrites a record on what was seen of it, and on nothing else', async () => {
    const record = await committedOne(store(), submitted({ taskId: 'a' }));
    const before = await audited('a');
    await committed(store(), cancelled(record));
    const stale = repaired(before, record);
    const conflict = [{ kind: 'conflict', subject: 'record', id: 'a' }];
    expect(await commit(store(), stale.plan)).toEqual(conflict);
    const now = await recordOf(store(), 'a');
    if (now === null) throw new Error('no record');
    const step = repaired(await audited('a'), now);
    expect(await commit(store(), step.plan)).toEqual([writtenAt(4)]);
    expect(await recordOf(store(), 'a')).toEqual(step.record);
    expect((await audited('a')).history.commits.map(({ chain }) => chain)).toEqual(['holds', 'holds', 'holds']);
    expect(await commit(store(), step.plan)).toEqual(conflict);
    expect(await commit(store(), repaired({ ...before, taskId: 'nobody' }, record).plan)).toEqual(conflict);
  });

  it('takes payloads out of one event, and the chain still holds', async () => {
    let record = await committedOne(store(), submitted({ taskId: 'a' }));
    record = await committedOne(store(), claimed(record));
    const outputs = [outputOf('{"keep":1}'), outputOf('{"secret":"ä"}'), outputOf('{"keep":2}')];
    record = await committedOne(store(), reported(record, { kind: 'accepted' }, { kind: 'started' }, ...outputs));
    const [, , , , , kept] = await historyOf(store(), 'a');
    const step = repaired(await audited('a'), record, 6);
    expect(await commit(store(), step.plan)).toEqual([writtenAt(8)]);
    const history = await historyOf(store(), 'a');
    const texts = history.flatMap(({ event }) => (event.type === 'task.output' ? [event.data] : []));
    expect(texts).toEqual([
      { outputJson: '{"keep":1}', binaryBase64: null, contentType: null, truncated: false },
      { outputJson: '{"redacted":true}', binaryBase64: null, contentType: null, truncated: false, redactedBytes: 14 },
      { outputJson: '{"keep":2}', binaryBase64: null, contentType: null, truncated: false },
    ]);
    expect(history[5]?.link).toBe(kept?.link);
    expect(await store().readEvent('a', 6)).toEqual(history[5]);
    expect((await audited('a')).history.commits.every(({ chain }) => chain === 'holds')).toBe(true);
  });
}
