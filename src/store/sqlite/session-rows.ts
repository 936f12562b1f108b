/**
 * Sessions as the store's rows, with a write-through copy of those in use: only the writer thread changes them, so the
 * copy is right until a transaction is rolled back, and then it is dropped.
 * A row that can't be read is a session that is gone: nobody acts for it, and it stands in nobody else's way.
 */
import type { Database, Statement } from 'better-sqlite3';
import { SESSION_CODES, SESSION_STATES } from '../code-tables.js';
import { MAX_TASKS_NAMED_AT_END, type SessionRow } from '../commit-plan.js';
import type { LeasesHeld } from '../session-guards.js';
import { decodeEnd } from './session-end-codec.js';

/** What is written of a session that lives. */
type Columns = [string, number, number, number, number, number | null, string, string, number];
type StoredColumns = [...Columns, number | null, string | null];

const COLUMNS =
  'session_id, state, expires_at, attachment, ttl_ms, linger_ms, worker_name, hello, created_at, forget_at, ended';
const MAX_REMEMBERED = 20_000;
/** What one step removes at most: about the time of a large commit. */
export const MAX_SESSIONS_PER_FORGETTING = 1_000;

export class SessionRows {
  private readonly remembered = new Map<string, SessionRow>();
  private readonly select: Statement<[string], StoredColumns>;
  private readonly selectAlive: Statement<[number, number], StoredColumns>;
  private readonly selectAhead: Statement<[number, number, number], StoredColumns>;
  private readonly selectGone: Statement<[string, number], StoredColumns>;
  private readonly countLeases: Statement<[string], number>;
  private readonly firstLeases: Statement<[string, number], string>;
  private readonly excess: Statement<[number], number>;
  private readonly forgetUntil: Statement<[number, number], string>;

  constructor(db: Database) {
    this.select = db.prepare<[string], StoredColumns>(`SELECT ${COLUMNS} FROM sessions WHERE session_id = ?`).raw();
    this.selectAlive = db
      .prepare<[number, number], StoredColumns>(
        `SELECT ${COLUMNS} FROM sessions INDEXED BY sessions_alive
         WHERE state <> 2 AND state IN (0, 1) AND expires_at < ? ORDER BY expires_at, session_id LIMIT ?`,
      )
      .raw();
    this.selectAhead = db
      .prepare<[number, number, number], StoredColumns>(
        `SELECT ${COLUMNS} FROM sessions INDEXED BY sessions_alive
         WHERE state <> 2 AND state IN (0, 1) AND expires_at > ? AND expires_at > ? + ttl_ms
         ORDER BY expires_at DESC, session_id LIMIT ?`,
      )
      .raw();
    this.selectGone = db
      .prepare<[string, number], StoredColumns>(
        `SELECT ${COLUMNS} FROM sessions WHERE state = 2 AND session_id > ? ORDER BY session_id LIMIT ?`,
      )
      .raw();
    this.countLeases = db
      .prepare<[string], number>('SELECT count(*) FROM tasks INDEXED BY tasks_leased WHERE lease_session = ?')
      .pluck();
    this.firstLeases = db
      .prepare<[string, number], string>(
        'SELECT task_id FROM tasks INDEXED BY tasks_leased WHERE lease_session = ? ORDER BY task_order LIMIT ?',
      )
      .pluck();
    this.excess = db
      .prepare<[number], number>(
        `SELECT forget_at FROM sessions INDEXED BY sessions_gone
         WHERE state = 2 ORDER BY forget_at DESC LIMIT 1 OFFSET ?`,
      )
      .pluck();
    this.forgetUntil = db
      .prepare<[number, number], string>(
        `DELETE FROM sessions WHERE session_id IN
           (SELECT s.session_id FROM sessions s INDEXED BY sessions_gone
            WHERE s.state = 2 AND s.forget_at <= ?
              AND NOT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_leased WHERE lease_session = s.session_id)
            ORDER BY s.forget_at LIMIT ?)
         RETURNING session_id`,
      )
      .pluck();
  }

  get(sessionId: string): SessionRow | null {
    const known = this.remembered.get(sessionId);
    if (known !== undefined) return known;
    const columns = this.select.get(sessionId);
    return columns === undefined ? null : this.remember(sessionOf(columns));
  }

  remember(row: SessionRow): SessionRow {
    if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
    this.remembered.set(row.sessionId, row);
    return row;
  }

  forget(): void {
    this.remembered.clear();
  }

  alive(expiredBefore: number | null, limit: number): SessionRow[] {
    return this.selectAlive.all(expiredBefore ?? Number.MAX_SAFE_INTEGER, limit).map(sessionOf);
  }

  ahead(now: number, limit: number): SessionRow[] {
    return this.selectAhead.all(now, now, limit).map(sessionOf);
  }

  gone(afterId: string | null, limit: number): SessionRow[] {
    return this.selectGone.all(afterId ?? '', limit).map(sessionOf);
  }

  leasesOf(sessionId: string): LeasesHeld {
    const held = this.countLeases.get(sessionId) ?? 0;
    return { held, taskIds: held === 0 ? [] : this.firstLeases.all(sessionId, MAX_TASKS_NAMED_AT_END) };
  }

  /** One step, inside a transaction of its own; whether there is more. */
  forgetGone(now: number, most: number): boolean {
    const until = Math.max(now, this.excess.get(most) ?? now);
    const forgotten = this.forgetUntil.all(until, MAX_SESSIONS_PER_FORGETTING);
    for (const sessionId of forgotten) this.remembered.delete(sessionId);
    return forgotten.length === MAX_SESSIONS_PER_FORGETTING;
  }
}

/** What a write of a session changes unless it says a new Hello: state, expiry and attachment, then whose they are. */
export function standingOf({ sessionId, state, expiresAt, attachment }: SessionRow): [number, number, number, string] {
  return [SESSION_CODES[state], expiresAt, attachment, sessionId];
}

export function columnsOf(row: SessionRow): Columns {
  const { sessionId, state, expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt } = row;
  return [sessionId, SESSION_CODES[state], expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt];
}

function sessionOf(columns: StoredColumns): SessionRow {
  const [sessionId, state, expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt, forgetAt, end] =
    columns;
  const ended = decodeEnd(forgetAt, end);
  return {
    sessionId,
    state: SESSION_STATES[state] ?? 'gone',
    expiresAt,
    attachment,
    ttlMs,
    lingerMs,
    workerName,
    helloJson,
    createdAt,
    ...(ended === null ? {} : { ended }),
  };
}
