/**
 * Telling followers in the transaction of the fact itself (lifecycle.md section 8): the attached children and waiters of
 * what a batch ends or fences are judged into the same batch, level by level, up to a bound. What is beyond it, or
 * could not be read, is left to the propagation that the fact itself has committed.
 */
import type { Propagation } from '../store/family-rows.js';
import type { TaskStore } from '../store/task-store.js';
import type { Batch } from './batch.js';
import type { BatchRecords } from './batch-records.js';
import type { Follow } from './follow-work.js';
import { propagationOf } from './family-links.js';

/** Followers told in one transaction, so that its time stays bounded. */
export const MAX_FOLLOWERS_PER_BATCH = 256;
/** Facts whose followers are looked up for one transaction. */
const MAX_LOOKUPS_PER_BATCH = 32;

/** Goes through what the batch has to tell, also through what telling it adds. Throws StoreError. */
export async function tellFollowers(
  batch: Batch,
  records: BatchRecords,
  store: TaskStore,
  judge: (follow: Follow) => void,
): Promise<void> {
  let room = MAX_FOLLOWERS_PER_BATCH;
  let lookUps = MAX_LOOKUPS_PER_BATCH;
  // By index: the units that telling adds are reached too.
  for (let at = 0; at < batch.units.length; at++) {
    const unit = batch.units[at];
    if (unit?.kind !== 'record' || unit.draft.events.length === 0) continue;
    const row = propagationOf(unit.base, unit.draft.record);
    if (row === null) continue;
    if (room <= 0 || lookUps <= 0) return;
    lookUps -= 1;
    const children = await childrenOf(store, row, 0, room);
    const follows = [...children, ...(await waitersOf(store, row, 0, room - children.length))];
    room -= follows.length;
    for (const { follow } of follows) records.need(follow.taskId);
    await records.load();
    for (const { follow } of follows) if (!batch.isSealed(follow.taskId)) judge(follow);
  }
}

export interface FollowRow {
  readonly follow: Follow;
  /** Children and waiters are each in admission order; to continue from. */
  readonly order: number;
}

/** Attached children that live. Throws StoreError. */
export async function childrenOf(
  store: TaskStore,
  { taskId }: Propagation,
  afterOrder: number,
  limit: number,
): Promise<readonly FollowRow[]> {
  const rows = await store.liveChildren(taskId, afterOrder, limit);
  return rows.map((row) => ({ follow: { kind: 'child', taskId: row.taskId }, order: row.order }));
}

/** Who waits for the end that this is; nobody waits for a cancel request. Throws StoreError. */
export async function waitersOf(
  store: TaskStore,
  { taskId, generation, outcome, eventNumber }: Propagation,
  afterOrder: number,
  limit: number,
): Promise<readonly FollowRow[]> {
  if (outcome === 'cancel_requested' || limit <= 0) return [];
  const rows = await store.waitersOf(taskId, generation, afterOrder, limit);
  return rows.map((row) => {
    const { condition, unsatisfied, order } = row;
    const follow = { upstreamId: taskId, generation, outcome, eventNumber, condition, unsatisfied } as const;
    return { follow: { kind: 'waiter', taskId: row.taskId, ...follow }, order };
  });
}
