// Write skew: two decisions, each of which read what the other one writes, can't both stand. The check of the read set
// inside the write is what forbids it; a store that checks only what it writes would let both pass.

import { expect, it } from 'vitest';
import { cancelled, claimed, endOf, joined, planOf, sessionRow, submitted } from './sample-plans.js';
import { type StoreSource, commit, committed, kindsOf, recordOf } from './store-under-test.js';

export function skewContract(store: StoreSource): void {
  const crossing = async () => {
    const [parent, child] = [submitted(), submitted()];
    await committed(store(), parent, child);
    const read = (taskId: string, version: number) => planOf({ recordReads: [{ taskId, version }] });
    const { taskId: parentId } = parent.record.admission;
    const { taskId: childId } = child.record.admission;
    // The parent is cancelled because no child runs; the child is claimed because its parent lives.
    const cancel = joined(cancelled(parent.record).plan, read(childId, 1));
    const claim = joined(claimed(child.record).plan, read(parentId, 1));
    return { cancel, claim, parentId, childId };
  };

  it('refuses the second in one batch', async () => {
    const { cancel, claim, parentId, childId } = await crossing();
    const verdicts = await commit(store(), cancel, claim);
    expect(kindsOf(verdicts)).toEqual(['committed', 'conflict']);
    expect(verdicts[1]).toEqual({ kind: 'conflict', subject: 'record', id: parentId });
    expect((await recordOf(store(), childId))?.status).toBe('queued');
  });

  it('refuses the second in one batch, the other way round', async () => {
    const { cancel, claim, parentId, childId } = await crossing();
    const verdicts = await commit(store(), claim, cancel);
    expect(verdicts[1]).toEqual({ kind: 'conflict', subject: 'record', id: childId });
    expect((await recordOf(store(), parentId))?.status).toBe('queued');
  });

  it('refuses the second in two batches, sent at once or one after the other', async () => {
    const first = await crossing();
    const [one, two] = await Promise.all([commit(store(), first.cancel), commit(store(), first.claim)]);
    expect([...kindsOf(one), ...kindsOf(two)]).toEqual(['committed', 'conflict']);
    const second = await crossing();
    expect(kindsOf(await commit(store(), second.claim))).toEqual(['committed']);
    expect(kindsOf(await commit(store(), second.cancel))).toEqual(['conflict']);
  });

  it('counts a read of what does not exist as lost', async () => {
    const task = submitted();
    const plan = joined(task.plan, planOf({ recordReads: [{ taskId: 'nobody', version: 1 }] }));
    expect(await commit(store(), plan)).toEqual([{ kind: 'conflict', subject: 'record', id: 'nobody' }]);
  });

  it('lets a claim and the end of its session not both pass, in either order', async () => {
    for (const order of ['claim first', 'end first']) {
      const sessionId = `session ${order}`;
      const task = submitted();
      await committed(store(), { ...task, plan: joined(task.plan, opened(sessionId)) });
      const live = planOf({ sessionReads: [{ sessionId, attachment: 1, needs: 'live' }] });
      const claim = joined(claimed(task.record, sessionId).plan, live);
      // The reaper ends the session because it saw the task unclaimed.
      const { taskId } = task.record.admission;
      const end = planOf({
        sessions: [{ kind: 'end', sessionId, attachment: 1, end: endOf() }],
        recordReads: [{ taskId, version: 1 }],
      });
      const verdicts = await commit(store(), ...(order === 'claim first' ? [claim, end] : [end, claim]));
      expect(kindsOf(verdicts)).toEqual(['committed', 'conflict']);
    }
  });
}

function opened(sessionId: string) {
  return planOf({ sessions: [{ kind: 'open', session: sessionRow(sessionId) }] });
}
