// What a commit promises: one verdict per plan, in order, all or nothing per plan, and sequences without gaps.

import { expect, it } from 'vitest';
import type { CommitPlan, LedgerEntry } from '../../src/store/commit-plan.js';
import { cancelled, changed, claimed, completed, joined, planOf, submitted } from './sample-plans.js';
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

export function commitContract(store: StoreSource): void {
  it('writes a new task and reads it back whole', async () => {
    const step = submitted({ argsJson: '{"text":"ü\\n\\"quoted\\""}', labels: { team: 'a' } });
    expect(await commit(store(), step.plan)).toEqual([writtenAt(1)]);
    const { taskId } = step.record.admission;
    expect(await recordOf(store(), taskId)).toEqual(step.record);
    expect((await historyOf(store(), taskId)).map(({ event }) => event)).toEqual(step.plan.records[0]?.events);
  });

  it('carries a task through its life, a record and its events at every step', async () => {
    const task = submitted();
    const claim = claimed(task.record);
    const end = completed(claim.record);
    for (const step of [task, claim, end]) {
      await committed(store(), step);
      expect(await recordOf(store(), task.record.admission.taskId)).toEqual(step.record);
    }
    const events = [task, claim, end].flatMap(({ plan }) => plan.records[0]?.events ?? []);
    const stored = await historyOf(store(), task.record.admission.taskId);
    expect(stored.map(({ event }) => event)).toEqual(events);
    expect(stored.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
  });

  it('lets a plan build on what the plans before it in the batch left', async () => {
    const task = submitted();
    const claim = claimed(task.record);
    const end = completed(claim.record);
    expect(await commit(store(), task.plan, claim.plan, end.plan)).toEqual([writtenAt(1), writtenAt(2), writtenAt(3)]);
    expect(await recordOf(store(), task.record.admission.taskId)).toEqual(end.record);
  });

  it('answers an empty batch, and a plan that only reads', async () => {
    const record = await committedOne(store(), submitted());
    expect(await commit(store())).toEqual([]);
    const read = { taskId: record.admission.taskId, version: 1 };
    expect(await commit(store(), planOf({ recordReads: [read] }))).toEqual([writtenAt()]);
  });

  it('refuses a second task under the same key and names the first', async () => {
    const first = await committedOne(store(), submitted({ key: 'k' }));
    expect(await commit(store(), submitted({ key: 'k' }).plan)).toEqual([
      { kind: 'duplicate', taskId: first.admission.taskId },
    ]);
    const other = submitted({ key: 'k', namespace: 'other' });
    expect(kindsOf(await commit(store(), other.plan))).toEqual(['committed']);
  });

  it('refuses the second of two plans with one key in one batch', async () => {
    const [one, two] = [submitted({ key: 'k' }), submitted({ key: 'k' })];
    expect(await commit(store(), one.plan, two.plan)).toEqual([
      writtenAt(1),
      { kind: 'duplicate', taskId: one.record.admission.taskId },
    ]);
    expect(await recordOf(store(), two.record.admission.taskId)).toBeNull();
  });

  it('refuses a task id that is taken under another key, and leaves that key free', async () => {
    await committed(store(), submitted({ taskId: 'mine', key: 'k1' }));
    expect(await commit(store(), submitted({ taskId: 'mine', key: 'k2' }).plan)).toEqual([
      { kind: 'task_id_taken', taskId: 'mine' },
    ]);
    expect(await store().findTaskId('default', 'k2')).toBeNull();
    expect(kindsOf(await commit(store(), submitted({ key: 'k2' }).plan))).toEqual(['committed']);
  });

  it('refuses an update of another version, and of what does not exist', async () => {
    const record = await committedOne(store(), submitted());
    const { taskId } = record.admission;
    const [winner, loser] = [claimed(record), cancelled(record)];
    expect(await commit(store(), winner.plan, loser.plan)).toEqual([
      writtenAt(2),
      { kind: 'conflict', subject: 'record', id: taskId },
    ]);
    expect(await recordOf(store(), taskId)).toEqual(winner.record);
    const nobody = claimed(submitted({ taskId: 'nobody' }).record);
    expect(await commit(store(), nobody.plan)).toEqual([{ kind: 'conflict', subject: 'record', id: 'nobody' }]);
  });

  it('drops a plan alone: those around it commit, and sequences have no gap', async () => {
    const record = await committedOne(store(), submitted());
    const stale = claimed(record);
    await committed(store(), cancelled(record));
    const [before, after] = [submitted(), submitted()];
    const verdicts = await commit(store(), before.plan, stale.plan, after.plan);
    expect(verdicts).toEqual([
      writtenAt(4),
      { kind: 'conflict', subject: 'record', id: record.admission.taskId },
      writtenAt(5),
    ]);
  });

  it('commits a plan of several records whole', async () => {
    const [one, two, three] = [submitted(), submitted(), await committedOne(store(), submitted())];
    const end = cancelled(three);
    expect(await commit(store(), joined(one.plan, end.plan, two.plan))).toEqual([writtenAt(2, 3, 5)]);
    expect(await recordOf(store(), three.admission.taskId)).toEqual(end.record);
    expect(await recordOf(store(), two.record.admission.taskId)).toEqual(two.record);
  });

  it.each(['duplicate', 'task_id_taken', 'conflict', 'read', 'session'] as const)(
    'leaves no trace of a plan of several records that fails by its last part (%s)',
    async (way) => {
      const old = await committedOne(store(), submitted({ taskId: 'old', key: 'old key' }));
      const stale = claimed(old);
      await committed(store(), cancelled(old));
      const fresh = submitted({ taskId: 'fresh', key: 'fresh key' });
      const last = {
        duplicate: submitted({ key: 'old key' }).plan,
        task_id_taken: submitted({ taskId: 'old', key: 'another' }).plan,
        conflict: stale.plan,
        read: planOf({ recordReads: [{ taskId: 'old', version: 1 }] }),
        session: planOf({ sessionReads: [{ sessionId: 'none', attachment: 1, needs: 'live' }] }),
      }[way];
      const ledger: LedgerEntry = { taskId: 'old', intentKey: 'i', contentHash: 'h', answerJson: '{}' };
      const verdicts = await commit(store(), joined(fresh.plan, planOf({ ledger: [ledger] }), last));
      expect(verdicts[0]?.kind).toBe(way === 'read' || way === 'session' ? 'conflict' : way);
      expect(await recordOf(store(), 'fresh')).toBeNull();
      expect(await store().findTaskId('default', 'fresh key')).toBeNull();
      expect(await store().findLedgerEntry('old', 'i')).toBeNull();
      expect(kindsOf(await commit(store(), fresh.plan))).toEqual(['committed']);
    },
  );

  it('answers a repeated intent with what stands in the ledger', async () => {
    const record = await committedOne(store(), submitted({ taskId: 'old' }));
    const entry = { taskId: 'old', intentKey: 'cancel-1', contentHash: 'sha256:00', answerJson: '{"state":"x"}' };
    const cancel = cancelled(record);
    await committed(store(), { ...cancel, plan: joined(cancel.plan, planOf({ ledger: [entry] })) });
    const other = { ...entry, contentHash: 'sha256:11', answerJson: '{}' };
    expect(await commit(store(), planOf({ ledger: [other] }))).toEqual([{ kind: 'repeated', original: entry }]);
    expect(await store().findLedgerEntry('old', 'cancel-1')).toEqual(entry);
    expect(await store().findLedgerEntry('old', 'cancel-2')).toBeNull();
    expect(await store().findLedgerEntry('nobody', 'cancel-1')).toBeNull();
  });

  it('holds what a plan rests on in its own batch only where that was written, whatever number the version has', async () => {
    const before = await committedOne(store(), submitted({ taskId: 'old' }));
    const change = claimed(before);
    const rests = (): CommitPlan => planOf({ recordReads: [{ taskId: 'old', version: 2, ofBatch: true }] });
    const resting = joined(submitted({ taskId: 'child' }).plan, rests());
    expect(kindsOf(await commit(store(), change.plan, resting))).toEqual(['committed', 'committed']);
    // Version 2 stands, but this batch has not written it; nor can it.
    const lost = { kind: 'conflict', subject: 'record', id: 'old' };
    expect(await commit(store(), rests())).toEqual([lost]);
    expect(await commit(store(), cancelled(before).plan, rests())).toEqual([lost, lost]);
    // What the batch admits can be rested on too.
    const fresh = planOf({ recordReads: [{ taskId: 'fresh', version: 1, ofBatch: true }] });
    expect(kindsOf(await commit(store(), submitted({ taskId: 'fresh' }).plan, fresh))).toEqual([
      'committed',
      'committed',
    ]);
    expect(kindsOf(await commit(store(), fresh))).toEqual(['conflict']);
  });

  it('lets what was done before answer first: ledger, then key, then versions', async () => {
    const record = await committedOne(store(), submitted({ taskId: 'old', key: 'k' }));
    const entry = { taskId: 'old', intentKey: 'i', contentHash: 'h', answerJson: '{}' };
    await committed(store(), { record, plan: planOf({ ledger: [entry] }) }, claimed(record));
    const stale = planOf({ recordReads: [{ taskId: 'old', version: 1 }] });
    expect(kindsOf(await commit(store(), joined(cancelled(record).plan, planOf({ ledger: [entry] }))))).toEqual([
      'repeated',
    ]);
    expect(kindsOf(await commit(store(), joined(submitted({ key: 'k' }).plan, stale)))).toEqual(['duplicate']);
    const gone = planOf({ sessionReads: [{ sessionId: 'none', attachment: 1, needs: 'live' }] });
    expect(kindsOf(await commit(store(), joined(submitted({ key: 'k' }).plan, gone)))).toEqual(['duplicate']);
    expect(kindsOf(await commit(store(), joined(submitted({ taskId: 'old', key: 'n' }).plan, gone)))).toEqual([
      'task_id_taken',
    ]);
  });

  it('keeps a ledger entry of a task that the same plan admits', async () => {
    const task = submitted({ taskId: 'fresh' });
    const entry = { taskId: 'fresh', intentKey: 'i', contentHash: 'h', answerJson: '{}' };
    expect(kindsOf(await commit(store(), joined(task.plan, planOf({ ledger: [entry] }))))).toEqual(['committed']);
    expect(await store().findLedgerEntry('fresh', 'i')).toEqual(entry);
  });

  it('keeps sixteen diagnostics per task and epoch and drops the rest', async () => {
    await committed(store(), submitted({ taskId: 'noisy' }));
    const said = (epoch: number, count: number) =>
      Array.from({ length: count }, (_, at) => ({ taskId: 'noisy', epoch, at, text: `said ${at}` }));
    await commit(store(), planOf({ diagnostics: said(1, 20) }), planOf({ diagnostics: said(2, 1) }));
    await commit(store(), planOf({ diagnostics: [{ taskId: 'noisy', epoch: 1, at: 99, text: 'late' }] }));
    await commit(store(), planOf({ diagnostics: [{ taskId: 'nobody', epoch: 1, at: 0, text: 'lost' }] }));
    expect(await store().readDiagnostics('noisy', 100)).toEqual([...said(1, 16), ...said(2, 1)]);
    expect(await store().readDiagnostics('noisy', 3)).toEqual(said(1, 3));
    expect(await store().readDiagnostics('nobody', 3)).toEqual([]);
  });

  it('holds what it was given, whatever becomes of it outside', async () => {
    const record = await committedOne(store(), submitted({ taskId: 'frozen' }));
    const loaded = await recordOf(store(), 'frozen');
    const change = claimed(record);
    await committed(store(), change);
    expect(loaded).toEqual(record);
    expect(await recordOf(store(), 'frozen')).toEqual(change.record);
  });

  it('takes a batch that is malformed for a defect and writes nothing of it', async () => {
    const good = submitted({ taskId: 'good' });
    const record = await committedOne(store(), submitted());
    const gap = changed(claimed(record).record, (draft) => {
      draft.append({ type: 'task.accepted', data: {} }, { cause: { ...GAP_CAUSE } });
    });
    const write = gap.plan.records[0];
    if (write?.kind !== 'update') throw new Error('no update');
    const broken = planOf({ records: [{ ...write, baseVersion: 1 }] });
    await expect(commit(store(), good.plan, broken)).rejects.toThrow();
    expect(await recordOf(store(), 'good')).toBeNull();
  });

  it("sees a commit in every read made after it was begun, on the writer's way", async () => {
    const task = submitted({ taskId: 'now' });
    const pending = commit(store(), task.plan);
    const ready = await store().readyTasks(
      task.plan.records[0]?.kind === 'insert' ? task.plan.records[0].routeKey : '',
      null,
      10,
    );
    expect(ready.map((entry) => entry.taskId)).toEqual(['now']);
    expect(kindsOf(await pending)).toEqual(['committed']);
  });
}

const GAP_CAUSE = {
  actor: { type: 'worker', id: 'w' },
  principal: 'anonymous',
  source: 'rpc',
  reason: null,
  causation: null,
  authoritativeAt: null,
} as const;
