/**
 * The audit of what is found by no task: idempotency keys that lead to nothing, and sessions (quality.md, invariants 1
 * and 6). Pure.
 */
import type { AuditedKey, AuditedSession } from '../store/audit-rows.js';
import { type Finding, findingBeside } from './findings.js';
import { type AuditMoment, OVERDUE_SLACK_MS } from './standing.js';

/** `unread`: what stands there is damaged, and told under its own name. */
export function auditKeys(keys: readonly AuditedKey[]): readonly Finding[] {
  return keys.flatMap(({ order, leads }) => {
    if (leads === 'own' || leads === 'unread') return [];
    const there = leads === 'nowhere' ? 'nothing is there' : 'what is there was admitted under another';
    return [findingBeside('store.keys', `a key that leads to admission order ${order}`, there)];
  });
}

export function auditSessions(sessions: readonly AuditedSession[], moment: AuditMoment): readonly Finding[] {
  return sessions.flatMap((session) => auditSession(session, moment));
}

function auditSession({ sessionId, standing }: AuditedSession, { now, quietSince }: AuditMoment): readonly Finding[] {
  const about = `session ${sessionId}`;
  if (standing === null) return [findingBeside('sessions.row', about, 'what is stored is no session')];
  const { state, expiresAt, ttlMs } = standing;
  if (state === 'gone') return [];
  if (now > Math.max(expiresAt, quietSince + ttlMs) + OVERDUE_SLACK_MS) {
    return [findingBeside('sessions.overdue', about, `it expired ${now - expiresAt} ms ago`)];
  }
  if (expiresAt > now + ttlMs + OVERDUE_SLACK_MS) {
    return [findingBeside('sessions.ahead', about, `it is to last ${expiresAt - now} ms from now`)];
  }
  return [];
}
