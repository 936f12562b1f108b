/**
 * What an audit reads beside the tasks, in the reader thread: idempotency keys by themselves, so that one that leads to
 * nothing is found, sessions, and permits with those that stand for them, counted. A page is one read transaction, bounded
 * in rows and in bytes.
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
  MAX_PLACES_PER_AUDIT,
  type NamedQuery,
} from '../audit-rows.js';
import { PERMIT_STATES, SESSION_STATES } from '../code-tables.js';
import { decoded } from '../decode-guards.js';
import { decodeTombstone } from '../tombstone-codec.js';
import { PLACES_FOUND, SETTLED } from './permit-statements.js';

type Order = number;

/** Namespace, key, order; then of a task its id and admission, of a purged one its id and tombstone. */
type KeyColumns = [string, string, Order, string | null, string | null, string | null, string | null];
/** Id, state, expiry, TTL, attachment, Hello. */
type SessionColumns = [string, number, number, number, number, string];

/** Number, name, running as counted, whether it is settled, a task of it. */
type PermitColumns = [number, string, number, number, string | null];
/** State, route, how many. */
type PlacesColumns = [number, number, number];
/** Route, passed, waiting. */
type LineColumns = [number, number, number];

/** Namespaces are never empty, so this stands before all keys. */
const BEFORE_ALL: KeyName = { namespace: '', idempotencyKey: '' };

export class AuditLists {
  private readonly statements: ReturnType<typeof listStatements>;
  private readonly inOneMoment: <Value>(read: () => Value) => Value;

  constructor(db: Database) {
    this.statements = listStatements(db);
    this.inOneMoment = (read) => db.transaction(read)();
  }

  keys({ names, after, limit }: NamedQuery<KeyName>): AuditedKeys {
    const { keys: behind, key } = this.statements;
    return this.inOneMoment(() => {
      if (names !== null) {
        const rows = names.flatMap(({ namespace, idempotencyKey }) => key.all(namespace, idempotencyKey));
        return { keys: rows.map(keyOf), next: null };
      }
      const keys: AuditedKey[] = [];
      let bytes = 0;
      const { namespace, idempotencyKey } = after ?? BEFORE_ALL;
      for (const row of behind.iterate(namespace, idempotencyKey)) {
        keys.push(keyOf(row));
        bytes += (row[4]?.length ?? 0) + (row[6]?.length ?? 0);
        if (keys.length >= limit || bytes >= MAX_BYTES_PER_AUDIT) {
          return { keys, next: { namespace: row[0], idempotencyKey: row[1] } };
        }
      }
      return { keys, next: null };
    });
  }

  sessions({ names, after, limit }: NamedQuery<string>): AuditedSessions {
    const { sessions: behind, session } = this.statements;
    return this.inOneMoment(() => {
      const rows = names === null ? behind.all(after ?? '', limit) : names.flatMap((name) => session.all(name));
      const last = rows[rows.length - 1];
      const next = names !== null || last === undefined || rows.length < limit ? null : last[0];
      return { sessions: rows.map(sessionOf), next };
    });
  }

  permits({ names, after, limit }: NamedQuery<string>): AuditedPermits {
    const { permits: behind, permit } = this.statements;
    return this.inOneMoment(() => {
      const permits: AuditedPermit[] = [];
      if (names !== null) {
        for (const row of names.flatMap((name) => permit.all(name))) permits.push(this.permitOf(row).permit);
        return { permits, next: null };
      }
      let counted = 0;
      for (const row of behind.iterate(after ?? '')) {
        const { permit: audited, places } = this.permitOf(row);
        permits.push(audited);
        counted += places;
        if (permits.length >= limit || counted >= MAX_PLACES_PER_AUDIT) return { permits, next: audited.name };
      }
      return { permits, next: null };
    });
  }

  /** One walk along the index, however many lines there are; `places`: how many rows it took. */
  private permitOf([number, name, running, settled, taskId]: PermitColumns): { permit: AuditedPermit; places: number } {
    const { places: counted, lines } = this.statements;
    let [found, places] = [0, 0];
    const standing = new Map<number, { passed: number; waiting: number }>();
    for (const [code, route, count] of counted.iterate(number)) {
      places += count;
      const state = PERMIT_STATES[code];
      if (state === 'running') found += count;
      if (state !== 'passed' && state !== 'waiting') continue;
      const line = standing.get(route) ?? { passed: 0, waiting: 0 };
      line[state] += count;
      standing.set(route, line);
    }
    let linesAgree = true;
    for (const [route, passed, waiting] of lines.iterate(number)) {
      const line = standing.get(route);
      if (line?.passed !== passed || line.waiting !== waiting) linesAgree = false;
      standing.delete(route);
    }
    const permit = {
      name,
      running,
      found,
      linesAgree: linesAgree && standing.size === 0,
      settled: settled === 1,
      taskId,
    };
    return { permit, places };
  }
}

function keyOf([namespace, idempotencyKey, order, taskId, admission, purgedId, tombstone]: KeyColumns): AuditedKey {
  const name = { namespace, idempotencyKey };
  if (taskId === null && purgedId === null) return { name, order, leads: 'nowhere' };
  const owner = decoded(() =>
    taskId === null
      ? decodeTombstone(purgedId ?? '', tombstone ?? '')
      : decodeAdmission(taskId, withoutArgs(admission ?? ''), 'without_args'),
  );
  if (!owner.ok) return { name, order, leads: 'unread' };
  const own = owner.value.namespace === namespace && owner.value.idempotencyKey === idempotencyKey;
  return { name, order, leads: own ? 'own' : 'to_another' };
}

function sessionOf([sessionId, code, expiresAt, ttlMs, attachment, hello]: SessionColumns): AuditedSession {
  const state = SESSION_STATES[code];
  const isHello = decoded((): unknown => JSON.parse(hello)).ok;
  const isSession = state !== undefined && isHello && ttlMs > 0 && attachment > 0;
  return { sessionId, standing: isSession ? { state, expiresAt, ttlMs } : null };
}

const PERMIT = `permit_id, name, running, ${SETTLED},
  (SELECT task_id FROM permit_rows r JOIN tasks USING (task_order) WHERE r.permit_id = p.permit_id LIMIT 1)
  FROM permits p`;
const KEY = `k.namespace, k.idempotency_key, k.task_order, t.task_id, a.admission, d.task_id, d.tombstone
  FROM task_keys k LEFT JOIN tasks t ON t.task_order = k.task_order
  LEFT JOIN admissions a ON a.task_order = t.task_order
  LEFT JOIN tombstones d ON d.task_order = k.task_order`;
const SESSION = 'session_id, state, expires_at, ttl_ms, attachment, hello FROM sessions';

function listStatements(db: Database) {
  return {
    permits: db.prepare<[string], PermitColumns>(`SELECT ${PERMIT} WHERE name > ? ORDER BY name`).raw(),
    permit: db.prepare<[string], PermitColumns>(`SELECT ${PERMIT} WHERE name = ?`).raw(),
    places: db.prepare<[number], PlacesColumns>(PLACES_FOUND).raw(),
    lines: db
      .prepare<[number], LineColumns>('SELECT route_id, passed, waiting FROM permit_lines WHERE permit_id = ?')
      .raw(),
    keys: db
      .prepare<[string, string], KeyColumns>(
        `SELECT ${KEY} WHERE (k.namespace, k.idempotency_key) > (?, ?) ORDER BY k.namespace, k.idempotency_key`,
      )
      .raw(),
    key: db
      .prepare<[string, string], KeyColumns>(`SELECT ${KEY} WHERE k.namespace = ? AND k.idempotency_key = ?`)
      .raw(),
    sessions: db
      .prepare<[string, number], SessionColumns>(`SELECT ${SESSION} WHERE session_id > ? ORDER BY session_id LIMIT ?`)
      .raw(),
    session: db.prepare<[string], SessionColumns>(`SELECT ${SESSION} WHERE session_id = ?`).raw(),
  };
}
