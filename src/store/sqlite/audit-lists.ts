/**
 * What an audit reads beside the tasks, in the reader thread: idempotency keys by themselves, so that one that leads to
 * nothing is found, and sessions. A page is one read transaction, bounded in rows and in bytes.
 */
import type { Database } from 'better-sqlite3';
import { decodeAdmission, withoutArgs } from '../admission-codec.js';
import {
  type AuditedKey,
  type AuditedKeys,
  type AuditedPermit,
  type AuditedPermits,
  type AuditedSession,
  type AuditedSessions,
  type KeyName,
  MAX_BYTES_PER_AUDIT,
  type PermitQuery,
} from '../audit-rows.js';
import { PERMIT_STATE_CODES, SESSION_STATES } from '../code-tables.js';
import { decoded } from '../decode-guards.js';
import { decodeTombstone } from '../tombstone-codec.js';
import { LINES_FOUND, SETTLED } from './permit-statements.js';

type Order = number;

/** Namespace, key, order; then of a task its id and admission, of a purged one its id and tombstone. */
type KeyColumns = [string, string, Order, string | null, string | null, string | null, string | null];
/** Id, state, expiry, TTL, attachment, Hello. */
type SessionColumns = [string, number, number, number, number, string];

/** Name, running as counted and as there are, whether the lines agree, whether it is settled, a task of it. */
type PermitColumns = [string, number, number, number, number, string | null];

/** Namespaces are never empty, so this stands before all keys. */
const BEFORE_ALL: KeyName = { namespace: '', idempotencyKey: '' };

export class AuditLists {
  private readonly statements: ReturnType<typeof listStatements>;
  private readonly inOneMoment: <Value>(read: () => Value) => Value;

  constructor(db: Database) {
    this.statements = listStatements(db);
    this.inOneMoment = (read) => db.transaction(read)();
  }

  keys(after: KeyName | null, limit: number): AuditedKeys {
    return this.inOneMoment(() => {
      const keys: AuditedKey[] = [];
      let bytes = 0;
      const { namespace, idempotencyKey } = after ?? BEFORE_ALL;
      for (const row of this.statements.keys.iterate(namespace, idempotencyKey)) {
        keys.push(keyOf(row));
        bytes += (row[4]?.length ?? 0) + (row[6]?.length ?? 0);
        if (keys.length >= limit || bytes >= MAX_BYTES_PER_AUDIT) {
          return { keys, next: { namespace: row[0], idempotencyKey: row[1] } };
        }
      }
      return { keys, next: null };
    });
  }

  sessions(after: string | null, limit: number): AuditedSessions {
    const rows = this.statements.sessions.all(after ?? '', limit);
    const last = rows[rows.length - 1];
    const next = last === undefined || rows.length < limit ? null : last[0];
    return { sessions: rows.map(sessionOf), next };
  }

  permits({ names, after, limit }: PermitQuery): AuditedPermits {
    const { permit, permits } = this.statements;
    return this.inOneMoment(() => {
      const rows = names === null ? permits.all(after ?? '', limit) : names.flatMap((name) => permit.all(name));
      const last = rows[rows.length - 1];
      const next = names !== null || last === undefined || rows.length < limit ? null : last[0];
      return { permits: rows.map(permitOf), next };
    });
  }
}

function permitOf([name, running, found, linesAgree, settled, taskId]: PermitColumns): AuditedPermit {
  return { name, running, found, linesAgree: linesAgree === 1, settled: settled === 1, taskId };
}

function keyOf([namespace, idempotencyKey, order, taskId, admission, purgedId, tombstone]: KeyColumns): AuditedKey {
  if (taskId === null && purgedId === null) return { order, leads: 'nowhere' };
  const owner = decoded(() =>
    taskId === null
      ? decodeTombstone(purgedId ?? '', tombstone ?? '')
      : decodeAdmission(taskId, withoutArgs(admission ?? ''), 'without_args'),
  );
  if (!owner.ok) return { order, leads: 'unread' };
  const own = owner.value.namespace === namespace && owner.value.idempotencyKey === idempotencyKey;
  return { order, leads: own ? 'own' : 'to_another' };
}

function sessionOf([sessionId, code, expiresAt, ttlMs, attachment, hello]: SessionColumns): AuditedSession {
  const state = SESSION_STATES[code];
  const isHello = decoded((): unknown => JSON.parse(hello)).ok;
  const isSession = state !== undefined && isHello && ttlMs > 0 && attachment > 0;
  return { sessionId, standing: isSession ? { state, expiresAt, ttlMs } : null };
}

/** Permit `p` as it is counted, and as its rows are. */
const PERMIT = `name, running,
  (SELECT count(*) FROM permit_rows r WHERE r.permit_id = p.permit_id AND r.state = ${PERMIT_STATE_CODES.running}),
  NOT EXISTS (SELECT route_id, passed, waiting FROM permit_lines l WHERE l.permit_id = p.permit_id EXCEPT ${LINES_FOUND})
    AND NOT EXISTS (${LINES_FOUND} EXCEPT SELECT route_id, passed, waiting FROM permit_lines l WHERE l.permit_id = p.permit_id),
  ${SETTLED},
  (SELECT task_id FROM permit_rows r JOIN tasks USING (task_order) WHERE r.permit_id = p.permit_id LIMIT 1)
  FROM permits p`;

function listStatements(db: Database) {
  return {
    permits: db.prepare<[string, number], PermitColumns>(`SELECT ${PERMIT} WHERE name > ? ORDER BY name LIMIT ?`).raw(),
    permit: db.prepare<[string], PermitColumns>(`SELECT ${PERMIT} WHERE name = ?`).raw(),
    keys: db
      .prepare<[string, string], KeyColumns>(
        `SELECT k.namespace, k.idempotency_key, k.task_order, t.task_id, a.admission, d.task_id, d.tombstone
         FROM task_keys k LEFT JOIN tasks t ON t.task_order = k.task_order
         LEFT JOIN admissions a ON a.task_order = t.task_order
         LEFT JOIN tombstones d ON d.task_order = k.task_order
         WHERE (k.namespace, k.idempotency_key) > (?, ?) ORDER BY k.namespace, k.idempotency_key`,
      )
      .raw(),
    sessions: db
      .prepare<[string, number], SessionColumns>(
        `SELECT session_id, state, expires_at, ttl_ms, attachment, hello FROM sessions
         WHERE session_id > ? ORDER BY session_id LIMIT ?`,
      )
      .raw(),
  };
}
