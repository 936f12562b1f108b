/**
 * Rows of an audit, as the reader thread hands them over, turned into what the port returns. Nothing here refuses: what
 * can't be read is said to be so.
 */
import type { Admission } from '../../kernel/record.js';
import { decodeAdmission } from '../admission-codec.js';
import type { AuditedCommit, AuditedFamily, AuditedTask, HistoryStretch, SessionStanding } from '../audit-rows.js';
import { SESSION_STATES } from '../code-tables.js';
import { type Decoded, decoded } from '../decode-guards.js';
import { decodeEvents } from '../history-codec.js';
import { decodeRecord } from '../record-codec.js';
import { taskOfRow } from '../stored-row.js';
import type { AuditRow, ChainedRow, HistoryRows } from './audit-reads.js';

export function auditedTask(row: AuditRow): AuditedTask {
  const { columns } = row;
  const [taskId, version, routeKey, readyOrder, nextDueAt, leaseSession, record, purgeAt] = columns ?? NO_COLUMNS;
  const admission = admissionOf(taskId, row.admission);
  return {
    order: row.order,
    taskId,
    admission,
    argsHold: row.argsHold,
    record: recordOf(record, admission),
    version,
    routeKey,
    waitsForPermit: row.waitsForPermit,
    index: { readyOrder, nextDueAt, leaseSession, purgeAt },
    lastNumber: row.lastNumber,
    keyOrder: row.keyOrder,
    session: sessionOf(row),
    family: familyOf(row),
    history: historyStretch(row.history),
    fingerprint: row.fingerprint,
  };
}

const NO_COLUMNS = [null, null, null, null, null, null, null, null] as const;

export function historyStretch({ rows, more }: HistoryRows): HistoryStretch {
  return { commits: rows.map(commitOf), more };
}

function commitOf({ row, chain }: ChainedRow): AuditedCommit {
  const [firstSequence, lastNumber, text, link] = row;
  return { firstSequence, lastNumber, events: decoded(() => decodeEvents(text, lastNumber)), link, chain };
}

function admissionOf(taskId: string | null, stored: string | null): Decoded<Admission> {
  if (taskId === null || stored === null) return { ok: false, detail: 'is not there' };
  return decoded(() => decodeAdmission(taskId, stored, 'without_args'));
}

function recordOf(stored: string | null, admission: Decoded<Admission>): AuditedTask['record'] {
  if (stored === null) return { ok: false, detail: 'is not there' };
  return admission.ok ? decoded(() => decodeRecord(stored, admission.value)) : admission;
}

function sessionOf({ session }: AuditRow): SessionStanding | null {
  if (session === null) return null;
  const [state, expiresAt, ttlMs] = session;
  return { state: SESSION_STATES[state] ?? 'gone', expiresAt, ttlMs };
}

function familyOf({ counts, found, childLive, parent, parentPropagates }: AuditRow): AuditedFamily {
  const leader = parent === null ? null : taskOfRow(parent, 'without_args');
  return {
    counts: { liveChildren: counts[0], unsatisfied: counts[1] },
    found: { liveChildren: found[0], unsatisfied: found[1] },
    livesAsChild: childLive === null ? null : childLive === 1,
    parent: leader?.kind === 'task' ? leader.record : null,
    parentPropagates,
  };
}
