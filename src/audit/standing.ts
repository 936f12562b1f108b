/**
 * What a record says of itself: its lease, its times, its places in the indexes, and that nothing about it is overdue
 * (quality.md, invariants 6, 9, 10 and 19).
 */
import { routeKeyOf } from '../kernel/placement.js';
import { KEEP_FOR_EVER, MIN_KEPT_MS, purgeAt } from '../kernel/retention.js';
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import { nextDueAt, timersOf } from '../kernel/timers.js';
import type { AuditedTask, SessionStanding } from '../store/audit-rows.js';
import type { Findings } from './findings.js';
import { readyOrderWith } from './permits.js';

/** When the audit looks, epoch ms; and when the service last came out of a pause, from where silence counts. */
export interface AuditMoment {
  readonly now: number;
  readonly quietSince: number;
}

/** A timer may be this late: batches, reaper periods and a restart with much to do. */
export const OVERDUE_SLACK_MS = 30_000;

export function checkLease(record: TaskRecord, session: SessionStanding | null, findings: Findings): void {
  const { status, lease, epoch } = record;
  if ((status === 'running') !== (lease !== null)) {
    findings.add('record.lease', `${status} with ${lease === null ? 'no lease' : 'a lease'}`);
  }
  if (lease === null) return;
  if (lease.epoch !== epoch) findings.add('record.lease', `lease of epoch ${lease.epoch} in epoch ${epoch}`);
  if (session === null || session.state === 'gone') {
    findings.add('record.session', session === null ? 'the session is not there' : 'the session is gone');
  }
}

export function checkTimes(record: TaskRecord, findings: Findings): void {
  const { status, retryAt, queuedAt, finishedAt } = record;
  if ((status === 'retry_wait') !== (retryAt !== null)) {
    findings.add('record.times', `${status} with ${retryAt === null ? 'no' : 'a'} retry time`);
  }
  if (status === 'queued' && queuedAt === null) findings.add('record.times', 'queued with no queue time');
  if (isTerminal(status) !== (finishedAt !== null)) {
    findings.add('record.times', `${status} with ${finishedAt === null ? 'no' : 'an'} end`);
  }
}

export function checkIndexes({ routeKey, index, permits }: AuditedTask, record: TaskRecord, findings: Findings): void {
  if (routeKey !== routeKeyOf(record.admission)) findings.add('index.route', 'the route is that of another');
  const differs = (
    name: 'index.ready' | 'index.due' | 'index.purge',
    expected: number | null,
    found: number | null,
  ): void => {
    if (expected !== found) findings.add(name, `${expected ?? 'none'} was expected, ${found ?? 'none'} is there`);
  };
  differs('index.ready', readyOrderWith(record, permits), index.readyOrder);
  differs('index.due', nextDueAt(record), index.nextDueAt);
  // What the deployment keeps by default may have changed since; what the task itself says has not.
  const kept = record.policy.retentionMs === null ? byDefault(record, index.purgeAt) : purgeAt(record, KEEP_FOR_EVER);
  differs('index.purge', isTerminal(record.status) ? kept : null, index.purgeAt);
  if ((record.lease?.sessionId ?? null) !== index.leaseSession) {
    findings.add('index.lease', 'the session is not that of the lease');
  }
}

/** No default is shorter than what every task is kept. */
function byDefault({ finishedAt }: TaskRecord, stored: number | null): number | null {
  return stored === null ? null : Math.max(stored, (finishedAt ?? 0) + MIN_KEPT_MS);
}

/** Silence counts from the end of the last pause; what a pause does not excuse is due at once after it. */
export function checkOverdue(
  record: TaskRecord,
  session: SessionStanding | null,
  moment: AuditMoment,
  findings: Findings,
): void {
  const { now, quietSince } = moment;
  const ttlMs = record.lease?.sessionTtlMs ?? 0;
  for (const { kind, dueAt, excusable } of timersOf(record)) {
    const judgedFrom = Math.max(dueAt, quietSince + (excusable ? ttlMs : 0));
    if (now > judgedFrom + OVERDUE_SLACK_MS) {
      findings.add('timers.overdue', `${kind} was due ${now - dueAt} ms ago`);
    }
  }
  if (session === null || session.state === 'gone') return;
  const { expiresAt } = session;
  if (now > Math.max(expiresAt, quietSince + session.ttlMs) + OVERDUE_SLACK_MS) {
    findings.add('sessions.overdue', `it expired ${now - expiresAt} ms ago`);
  }
}
