/**
 * Which claims a re-attached session still holds: the store's leases against what the worker names.
 */
import type { Authority } from '../authority/authority.js';
import type { TaskRecord } from '../kernel/record.js';
import type { NamedClaim } from './sessions.js';
import type { WorkSession } from './work-session.js';

const PAGE = 500;

export interface HeldClaims {
  readonly kept: readonly NamedClaim[];
  readonly lost: readonly NamedClaim[];
  /** Of the kept ones, those with a pending cancel. */
  readonly cancelled: readonly TaskRecord[];
  /** Leased to the session and not named: claims that never reached it, to be handed back at once. */
  readonly unnamed: readonly LeasedClaim[];
}

export interface LeasedClaim {
  readonly taskId: string;
  readonly epoch: number;
  readonly accepted: boolean;
}

/**
 * Fills `session.held` from the store. A lease that the worker does not name was a claim it never got (a restart
 * between commit and send); left alone it would fill a slot until its timer, which a restart keeps quiet for a TTL.
 */
export async function heldClaimsOf(
  authority: Authority,
  session: WorkSession,
  named: readonly NamedClaim[],
): Promise<HeldClaims> {
  const byTask = new Map(named.map((claim) => [claim.taskId, claim]));
  const kept: NamedClaim[] = [];
  const cancelled: TaskRecord[] = [];
  const unnamed: LeasedClaim[] = [];
  const namedAt = authority.clock.monotonicMs();
  // A lease that ends while its task is being read must not count as held for ever after.
  const ended = new Set<string>();
  const unsubscribe = authority.subscribe(({ taskId, before, record }) => {
    const lease = before?.lease;
    if (lease?.sessionId === session.identity.sessionId && record.lease?.epoch !== lease.epoch) ended.add(taskId);
  });
  session.held.clear();
  try {
    for await (const record of leasedTo(authority, session.identity.sessionId)) {
      const { taskId } = record.admission;
      if (ended.has(taskId)) continue;
      const epoch = record.lease?.epoch ?? 0;
      const claim = byTask.get(taskId);
      if (claim?.epoch !== epoch) {
        unnamed.push({ taskId, epoch, accepted: record.lease?.acceptedAt !== null });
        continue;
      }
      const { generation } = record;
      const { answeredThrough } = claim;
      session.hold({ taskId, generation, epoch, answeredThrough, namedAt, sent: true, cancel: null });
      byTask.delete(taskId);
      kept.push(claim);
      if (record.cancellation !== null) cancelled.push(record);
    }
  } finally {
    unsubscribe();
  }
  for (const claim of byTask.values()) {
    if (!(await endedByOwner(authority, session, claim))) continue;
    byTask.delete(claim.taskId);
    kept.push(claim);
  }
  return { kept, lost: [...byTask.values()], cancelled, unnamed };
}

/**
 * The worker ended this claim itself and only missed the answer: not lost, it says its last words again and learns
 * that they were judged.
 */
async function endedByOwner(authority: Authority, session: WorkSession, claim: NamedClaim): Promise<boolean> {
  const read = await authority.get(claim.taskId);
  if (!read.ok) return false;
  const { endedLease, epoch, lease, ownerStopped } = read.value;
  const isLast = lease === null && epoch === claim.epoch && endedLease?.epoch === claim.epoch;
  return isLast && ownerStopped && endedLease.sessionId === session.identity.sessionId;
}

async function* leasedTo(authority: Authority, sessionId: string): AsyncGenerator<TaskRecord> {
  for (let after = 0; ;) {
    const page = await authority.store.tasksOfSession(sessionId, after, PAGE);
    for (const task of page) {
      after = task.order;
      if (task.kind === 'task') yield task.record;
    }
    if (page.length < PAGE) return;
  }
}
