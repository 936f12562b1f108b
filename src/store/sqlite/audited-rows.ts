/**
 * Rows of an audit, as the reader thread hands them over, turned into what the port returns. Nothing here refuses: what
 * can't be read is said to be so.
 */
import type { Admission } from '../../kernel/record.js';
import { decodeAdmission } from '../admission-codec.js';
import {
  type Audited,
  type AuditedCommit,
  type AuditedFamily,
  type AuditedTask,
  type AuditedTombstone,
  type HistoryStretch,
  type SessionStanding,
} from '../audit-rows.js';
import { PERMIT_STATES, SESSION_STATES } from '../code-tables.js';
import { type Decoded, decoded } from '../decode-guards.js';
import { decodeEvents } from '../history-codec.js';
import { decodeRecord } from '../record-codec.js';
import { sealState } from '../record-seal.js';
import { taskOfRow } from '../stored-row.js';
import { decodeTombstone, isGivenUp } from '../tombstone-codec.js';
import type { AuditRow, AuditTaskRow, AuditTombstoneRow, ChainedRow, HistoryRows } from './audit-reads.js';
import type { FamilyRow } from './audit-family.js';

export function auditedEntry(row: AuditRow): Audited {
  switch (row.kind) {
    case 'task':
      return taskOf(row);
    case 'purged':
      return tombstoneOf(row);
    case 'remains':
      return row;
  }
}

function taskOf(row: AuditTaskRow): AuditedTask {
  const [taskId, version, routeKey, readyOrder, nextDueAt, leaseSession, record, purgeAt, seal] = row.columns;
  const admission = admissionOf(taskId, row.admission);
  return {
    kind: 'task',
    order: row.order,
    taskId,
    hasTombstone: row.hasTombstone,
    awaitsSweep: row.awaitsSweep,
    admission,
    argsHold: row.argsHold,
    record: admission.ok ? decoded(() => decodeRecord(record, admission.value)) : admission,
    seal: sealState(taskId, record, seal),
    version,
    routeKey,
    permits: row.permits.map(([name, state, isOfRoute, order]) => ({
      name,
      state: PERMIT_STATES[state] ?? null,
      isOfRoute: isOfRoute === 1,
      readyOrder: order,
    })),
    index: { readyOrder, nextDueAt, leaseSession, purgeAt },
    lastNumber: row.lastNumber,
    keyOrder: row.keyOrder,
    session: sessionOf(row),
    family: familyOf(row.family),
    history: historyStretch(row.history),
    fingerprint: row.fingerprint,
  };
}

function tombstoneOf(row: AuditTombstoneRow): AuditedTombstone {
  const [taskId, , firstSequence, stored] = row.columns;
  return {
    kind: 'purged',
    order: row.order,
    taskId,
    tombstone: decoded(() => decodeTombstone(taskId, stored)),
    isGivenUp: isGivenUp(stored),
    firstSequence,
    keyOrder: row.keyOrder,
    awaitsSweep: row.left.includes('sweep'),
    left: row.left,
    horizon: row.horizon,
    given: row.given,
    fingerprint: row.fingerprint,
  };
}

export function historyStretch({ rows, more }: HistoryRows): HistoryStretch {
  return { commits: rows.map(commitOf), more };
}

function commitOf({ row, chain, nextSequence }: ChainedRow): AuditedCommit {
  const [firstSequence, lastNumber, text, link] = row;
  const events = decoded(() => decodeEvents(text, lastNumber));
  return { firstSequence, lastNumber, events, link, chain, nextSequence };
}

function admissionOf(taskId: string, stored: string | null): Decoded<Admission> {
  if (stored === null) return { ok: false, detail: 'is not there' };
  return decoded(() => decodeAdmission(taskId, stored, 'without_args'));
}

function sessionOf({ session }: AuditTaskRow): SessionStanding | null {
  if (session === null) return null;
  const [state, expiresAt, ttlMs] = session;
  return { state: SESSION_STATES[state] ?? 'gone', expiresAt, ttlMs };
}

function familyOf({ counts, found, parent, parentPropagates, ...rest }: FamilyRow): AuditedFamily {
  const leader = parent === null ? null : taskOfRow(parent, 'without_args');
  const record = leader?.kind === 'task' ? leader.record : null;
  return {
    ...rest,
    counts: { liveChildren: counts[0], unsatisfied: counts[1] },
    found: { liveChildren: found[0], unsatisfied: found[1] },
    parent: record,
    parentPropagates: record !== null && parentPropagates.includes(record.generation),
  };
}
