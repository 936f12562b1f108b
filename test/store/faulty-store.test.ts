import { describe, expect, it } from 'vitest';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { submitted } from '../contract/sample-plans.js';
import { recordOf, writtenAt } from '../contract/store-under-test.js';
import { FaultyStore, Gate } from './faulty-store.js';

describe('faulty store', () => {
  const batchOf = (taskId: string) => ({ batchId: `batch of ${taskId}`, plans: [submitted({ taskId }).plan] });
  const written = [writtenAt(1)];

  it('fails before the write, and runs clean afterwards', async () => {
    const store = new FaultyStore(openMemoryStore());
    store.failNextCommits({ kind: 'error_before' });
    await expect(store.commit(batchOf('a'))).rejects.toMatchObject({ failure: 'unavailable' });
    expect(await recordOf(store, 'a')).toBeNull();
    expect(await store.commit(batchOf('a'))).toEqual(written);
  });

  it('writes and loses the answer, and tells the truth when it can', async () => {
    const store = new FaultyStore(openMemoryStore());
    store.failNextCommits({ kind: 'error_after', unavailableLookUps: 2 }, { kind: 'error_after', lost: true });
    const [kept, lost] = [batchOf('kept'), batchOf('lost')];
    await expect(store.commit(kept)).rejects.toMatchObject({ failure: 'outcome_unknown' });
    await expect(store.outcomeOf(kept)).rejects.toMatchObject({ failure: 'unavailable' });
    await expect(store.outcomeOf(kept)).rejects.toMatchObject({ failure: 'unavailable' });
    expect(await store.outcomeOf(kept)).toEqual(written);
    await expect(store.commit(lost)).rejects.toMatchObject({ failure: 'outcome_unknown' });
    expect(await store.outcomeOf(lost)).toBeNull();
    expect(await recordOf(store, 'kept')).not.toBeNull();
    expect(await recordOf(store, 'lost')).toBeNull();
  });

  it('holds a commit and a read at a gate until it opens', async () => {
    const store = new FaultyStore(openMemoryStore());
    const [commitGate, readGate] = [new Gate(), new Gate()];
    store.failNextCommits({ kind: 'wait', gate: commitGate });
    store.holdReads(readGate);
    const commit = store.commit(batchOf('a'));
    await commitGate.reached;
    const read = recordOf(store, 'a');
    await readGate.reached;
    commitGate.open();
    expect(await commit).toEqual(written);
    readGate.open();
    expect(await read).not.toBeNull();
  });
});
