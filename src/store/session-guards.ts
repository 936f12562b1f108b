/**
 * The guards of sessions, one truth for all adapters: whether what a decision read still holds, and what a write
 * leaves. Pure: `null` is a refusal, and then the plan it belongs to is dropped whole.
 */
import type { EndedSession, SessionEnd, SessionRead, SessionRow, SessionWrite } from './commit-plan.js';

/** The leases of a session, by the tasks: how many, and the first of them. */
export type LeasesHeld = Pick<EndedSession, 'held' | 'taskIds'>;

export function sessionHolds(row: SessionRow | null, read: SessionRead): boolean {
  if (row === null || row.attachment !== read.attachment) return false;
  return read.needs === 'live' ? row.state === 'live' : row.state !== 'gone';
}

export function sessionAfter(row: SessionRow | null, write: SessionWrite): SessionRow | null {
  if (write.kind === 'open') return row === null ? write.session : null;
  if (row === null || row.state === 'gone') return null;
  switch (write.kind) {
    case 'attach': {
      if (row.attachment !== write.from) return null;
      const { expiresAt, ttlMs, lingerMs, workerName, helloJson } = write;
      return { ...row, attachment: row.attachment + 1, expiresAt, ttlMs, lingerMs, workerName, helloJson };
    }
    case 'renew':
      return row.attachment === write.attachment ? { ...row, expiresAt: write.expiresAt } : null;
    case 'linger':
      return row.attachment === write.attachment ? { ...row, expiresAt: Math.min(row.expiresAt, write.until) } : null;
    case 'drain':
      return row.attachment === write.attachment && row.state === 'live' ? { ...row, state: 'draining' } : null;
    case 'expire':
      return row.expiresAt < write.end.at ? ended(row, write.end) : null;
    case 'end':
      return row.attachment === write.attachment ? ended(row, write.end) : null;
  }
}

const NOT_COUNTED: LeasesHeld = { held: 0, taskIds: [] };

/** Its leases are counted where it is written, and only once. */
function ended(row: SessionRow, end: SessionEnd): SessionRow {
  return { ...row, state: 'gone', ended: { ...end, drained: row.state === 'draining', ...NOT_COUNTED } };
}

/** The row as it is written, with what the session held at that moment. */
export function countedAtEnd(row: SessionRow, leases: (sessionId: string) => LeasesHeld): SessionRow {
  return row.ended === undefined ? row : { ...row, ended: { ...row.ended, ...leases(row.sessionId) } };
}
