// Audits and repairs: everything that is kept of a task, page by page, with its chain; and the one write that may
// overwrite a record, which only goes through on what was seen.

import { expect, it } from 'vitest';
import {
  type Audited,
  type AuditedKeys,
  type AuditedTask,
  type AuditedTombstone,
  type KeyName,
  MAX_HISTORY_PER_STRETCH,
} from '../../src/store/audit-rows.js';
import {
  cancelled,
  claimed,
  completed,
  endOf,
  outputOf,
  planOf,
  purgeOf,
  repaired,
  reported,
  sessionRow,
  submitted,
} from './sample-plans.js';
import { sweepAll } from './purge-contract.js';
import {
  type StoreSource,
  commit,
  committed,
  committedOne,
  historyOf,
  kindsOf,
  recordOf,
  writtenAt,
} from './store-under-test.js';

function idOf(entry: Audited | null): string | undefined {
  return entry === null || entry.kind === 'remains' ? undefined : entry.taskId;
}

export function auditContract(store: StoreSource): void {
  const audited = async (taskId: string): Promise<AuditedTask> => {
    const [task] = (await store().auditTasks({ taskIds: [taskId], after: 0, limit: 1 })).entries;
    if (task?.kind !== 'task') throw new Error(`there is no ${taskId}`);
    return task;
  };

  it('tells all tasks in admission order, page by page', async () => {
    const ids = ['c', 'a', 'd', 'b', 'e'];
    for (const taskId of ids) await committed(store(), submitted({ taskId }));
    const seen: (string | undefined)[] = [];
    for (let after: number | null = 0; after !== null;) {
      const page = await store().auditTasks({ taskIds: null, after, limit: 2 });
      expect(page.entries.length).toBeLessThanOrEqual(2);
      seen.push(...page.entries.map(idOf));
      after = page.next;
    }
    expect(seen).toEqual(ids);
  });

  it('tells those that are named, in their order, and null for none', async () => {
    await committed(store(), submitted({ taskId: 'a' }), submitted({ taskId: 'b' }));
    const taskIds = ['b', 'nobody', 'a'];
    const first = await store().auditTasks({ taskIds, after: 0, limit: 2 });
    expect(first.entries.map(idOf)).toEqual(['b', undefined]);
    const second = await store().auditTasks({ taskIds, after: first.next ?? 9, limit: 2 });
    expect([second.entries.map(idOf), second.next]).toEqual([['a'], null]);
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
      family: { parent: null, asChild: [], parentPropagates: false, propagations: [], awaited: [], edges: [] },
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
      propagations: [{ generation: 1, outcome: 'cancel_requested', eventNumber: 1 }],
      awaited: [1],
    });
    expect((await audited('child')).family).toMatchObject({
      counts: { liveChildren: 0, unsatisfied: 1 },
      found: { liveChildren: 0, unsatisfied: 1 },
      asChild: [{ isNamed: true, live: true }],
      edges: [{ upstreamId: 'parent', upstream: 'task', generation: 1, condition: 'terminal' }],
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

  const purged = async (): Promise<AuditedTombstone> => {
    const live = await committedOne(store(), submitted({ taskId: 'gone', key: 'k' }));
    const record = await committedOne(store(), cancelled(live));
    await commit(store(), purgeOf(record));
    await sweepAll(store());
    const [entry] = (await store().auditTasks({ taskIds: ['gone'], after: 0, limit: 1 })).entries;
    if (entry?.kind !== 'purged') throw new Error('it is there');
    return entry;
  };

  it('tells what is left of a purged task, in its place and by its name', async () => {
    await committed(store(), submitted({ taskId: 'a' }));
    const entry = await purged();
    await committed(store(), submitted({ taskId: 'b' }));
    expect(entry).toMatchObject({
      order: 2,
      taskId: 'gone',
      tombstone: { ok: true, value: { idempotencyKey: 'k', status: 'cancelled', lastEvent: 3 } },
      isGivenUp: false,
      firstSequence: 2,
      keyOrder: 2,
      awaitsSweep: false,
      left: [],
      horizon: 4,
      given: 4,
    });
    const { entries } = await store().auditTasks({ taskIds: null, after: 0, limit: 10 });
    expect(entries.map(idOf)).toEqual(['a', 'gone', 'b']);
    expect(entries[1]).toEqual({ ...entry, given: 5 });
  });

  it('tells every key by the place that it leads to, in pages, byte by byte in order', async () => {
    const keys = ['b', 'ä', 'B', 'a', 'aa'];
    for (const key of keys) await committed(store(), submitted({ key, namespace: 'n' }));
    await committed(store(), submitted({ key: 'z', namespace: 'm' }));
    await purged();
    const orders: number[] = [];
    for (let after: KeyName | null = null, more = true; more;) {
      const page: AuditedKeys = await store().auditKeys({ names: null, after, limit: 2 });
      expect(page.keys.every(({ leads }) => leads === 'own')).toBe(true);
      orders.push(...page.keys.map(({ order }) => order));
      after = page.next;
      more = after !== null;
    }
    // The purged one is of the default namespace.
    expect(orders).toEqual([7, 6, 3, 4, 5, 1, 2]);
  });

  it('tells every session, also those that are gone, in pages', async () => {
    for (const id of ['s2', 's1', 's3']) {
      await commit(store(), planOf({ sessions: [{ kind: 'open', session: sessionRow(id, { expiresAt: 7 }) }] }));
    }
    await commit(store(), planOf({ sessions: [{ kind: 'end', sessionId: 's1', attachment: 1, end: endOf() }] }));
    const first = await store().auditSessions({ names: null, after: null, limit: 2 });
    expect(first.sessions).toMatchObject([
      { sessionId: 's1', standing: { state: 'gone' } },
      { sessionId: 's2', standing: { state: 'live', expiresAt: 7, ttlMs: 30_000 } },
    ]);
    expect(await store().auditSessions({ names: null, after: first.next, limit: 2 })).toMatchObject({
      sessions: [{ sessionId: 's3' }],
      next: null,
    });
  });

  it('tells keys, sessions and permits by their names, and says nothing of what is not there', async () => {
    for (const key of ['a', 'b', 'c'])
      await committed(store(), submitted({ key, namespace: 'n', concurrencyKey: key }));
    for (const id of ['s1', 's2']) {
      await commit(store(), planOf({ sessions: [{ kind: 'open', session: sessionRow(id, { expiresAt: 7 }) }] }));
    }
    const named = <Name>(...names: Name[]) => ({ names, after: null, limit: names.length });
    const [last, nobody] = ['c', 'nobody'].map((idempotencyKey) => ({ namespace: 'n', idempotencyKey }));
    if (last === undefined || nobody === undefined) throw new Error('two names');
    expect(await store().auditKeys(named(last, nobody))).toEqual({
      keys: [{ name: last, order: 3, leads: 'own' }],
      next: null,
    });
    expect(await store().auditSessions(named('s2', 'nobody'))).toMatchObject({
      sessions: [{ sessionId: 's2' }],
      next: null,
    });
    const name = 'key\nn\nb';
    expect(await store().auditPermits(named(name, 'key\nn\nx'))).toMatchObject({
      permits: [{ name, running: 0, found: 0, linesAgree: true, settled: true }],
      next: null,
    });
  });

  it('gives up a tombstone on what was seen of it, and keeps the answer with that', async () => {
    const { fingerprint } = await purged();
    const repair = { taskId: 'gone', fingerprint, giveUpAt: 9, key: null, horizon: 0, clear: false };
    const entry = { key: 'op', contentHash: 'h', answerJson: '{}', at: 9 };
    const plan = planOf({ tombstones: [repair], operations: [{ entry, forgetBefore: 0 }] });
    const lost = [{ kind: 'conflict', subject: 'record', id: 'gone' }];
    const stale = { ...plan, tombstones: [{ ...repair, fingerprint: 'x' }] };
    expect(await commit(store(), stale)).toEqual(lost);
    expect(await store().findOperation('op')).toBeNull();
    expect(kindsOf(await commit(store(), plan))).toEqual(['committed']);
    expect(await commit(store(), plan)).toEqual(lost);
    expect(await store().findOperation('op')).toEqual(entry);
    const [after] = (await store().auditTasks({ taskIds: ['gone'], after: 0, limit: 1 })).entries;
    expect(after).toMatchObject({ kind: 'purged', isGivenUp: true, tombstone: { ok: false }, keyOrder: null });
    expect(await store().loadTasks(['gone'])).toMatchObject([{ kind: 'damaged', taskId: 'gone' }]);
    expect(await commit(store(), submitted({ key: 'k' }).plan)).toEqual([{ kind: 'duplicate', taskId: 'gone' }]);
    const nobody = { ...plan, tombstones: [{ ...repair, taskId: 'nobody' }] };
    expect(await commit(store(), nobody)).toEqual([{ ...lost[0], id: 'nobody' }]);
  });
}
