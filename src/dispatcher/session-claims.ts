/**
 * Which claims a re-attached session still holds: the store's leases against what the worker names.
 */
import type { Authority } from '../authority/authority.js';
import type { TaskRecord } from '../kernel/record.js';
import { lossCauseOf } from './loss-causes.js';
import type { NamedClaim } from './sessions.js';
import type { WorkSession } from './work-session.js';
import type { LeaseLoss } from './work-sink.js';

const PAGE = 500;
/** Records read at a time for a session that holds them; the others wait, whatever their args weigh. */
const RECORDS_PER_READ = 32;

export interface HeldClaims {
  readonly kept: readonly NamedClaim[];
  readonly lost: readonly LeaseLoss[];
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
      // A worker that missed the answer to its last words takes them up from here.
      const answeredThrough = Math.max(claim.answeredThrough, record.lease?.eventSeq ?? 0);
      session.hold({ taskId, generation, epoch, answeredThrough, namedAt, sent: true, cancel: null });
      byTask.delete(taskId);
      kept.push({ ...claim, answeredThrough });
      if (record.cancellation !== null) cancelled.push(record);
    }
  } finally {
    unsubscribe();
  }
  const lost: LeaseLoss[] = [];
  for (const claim of byTask.values()) {
    const read = await authority.reads.get(claim.taskId);
    if (read.ok && endedByOwner(read.value, session, claim)) kept.push(claim);
    else lost.push(lossOf(claim, read.ok ? read.value : null));
  }
  return { kept, lost, cancelled, unnamed };
}

function lossOf({ taskId, epoch }: NamedClaim, record: TaskRecord | null): LeaseLoss {
  if (record === null) return { taskId, epoch, generation: 0, cause: 'superseded' };
  return { taskId, epoch, generation: record.generation, cause: lossCauseOf(record, epoch) };
}

/**
 * The worker ended this claim itself and only missed the answer: not lost, it says its last words again and learns
 * that they were judged.
 */
function endedByOwner(record: TaskRecord, session: WorkSession, claim: NamedClaim): boolean {
  const { endedLease, epoch, lease, ownerStopped } = record;
  const isLast = lease === null && epoch === claim.epoch && endedLease?.epoch === claim.epoch;
  return isLast && ownerStopped && endedLease.sessionId === session.identity.sessionId;
}

async function* leasedTo(authority: Authority, sessionId: string): AsyncGenerator<TaskRecord> {
  for (let after = 0; ;) {
    const page = await authority.store.tasksOfSession(sessionId, after, PAGE);
    for (let from = 0; from < page.length; from += RECORDS_PER_READ) {
      const taskIds = page.slice(from, from + RECORDS_PER_READ).map(({ taskId }) => taskId);
      for (const record of await readRecords(authority, taskIds)) {
        if (record.lease?.sessionId === sessionId) yield record;
      }
    }
    after = page[page.length - 1]?.order ?? after;
    if (page.length < PAGE) return;
  }
}

/** Those that can be read, and kept at hand: their worker speaks of them next. */
async function readRecords(authority: Authority, taskIds: readonly string[]): Promise<readonly TaskRecord[]> {
  const read = authority.beginRead();
  try {
    const records: TaskRecord[] = [];
    for (const task of await authority.store.loadTasks(taskIds)) {
      if (task?.kind !== 'task') continue;
      read.keep(task.record);
      records.push(task.record);
    }
    return records;
  } finally {
    read.end();
  }
}
