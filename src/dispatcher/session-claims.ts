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
}

/**
 * Fills `session.held` from the store. A lease that the worker does not name was a claim it never got (a restart
 * between commit and send): it is left held and unaccepted, and its timer or the next heartbeats hand it back.
 */
export async function heldClaimsOf(
  authority: Authority,
  session: WorkSession,
  named: readonly NamedClaim[],
): Promise<HeldClaims> {
  const byTask = new Map(named.map((claim) => [claim.taskId, claim]));
  const kept: NamedClaim[] = [];
  const cancelled: TaskRecord[] = [];
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
      const isNamed = claim?.epoch === epoch;
      const answeredThrough = isNamed ? claim.answeredThrough : 0;
      const { generation } = record;
      session.hold({ taskId, generation, epoch, answeredThrough, namedAt, sent: true, cancel: null });
      if (!isNamed) continue;
      byTask.delete(taskId);
      kept.push(claim);
      if (record.cancellation !== null) cancelled.push(record);
    }
  } finally {
    unsubscribe();
  }
  return { kept, lost: [...byTask.values()], cancelled };
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
