/**
 * Sessions as the store's rows, with a write-through copy of those in use: only the writer thread changes them, so the
 * copy is right until a transaction is rolled back, and then it is dropped.
 * A row that can't be read is a session that is gone: nobody acts for it, and it stands in nobody else's way.
 */
import type { Database, Statement } from 'better-sqlite3';
import { SESSION_CODES, SESSION_STATES } from '../code-tables.js';
import type { SessionRow } from '../commit-plan.js';

type Columns = [string, number, number, number, number, number | null, string, string, number];

const COLUMNS = 'session_id, state, expires_at, attachment, ttl_ms, linger_ms, worker_name, hello, created_at';
const MAX_REMEMBERED = 20_000;

export class SessionRows {
  private readonly remembered = new Map<string, SessionRow>();
  private readonly select: Statement<[string], Columns>;
  private readonly selectAlive: Statement<[number, number], Columns>;
  private readonly selectAhead: Statement<[number, number, number], Columns>;

  constructor(db: Database) {
    this.select = db.prepare<[string], Columns>(`SELECT ${COLUMNS} FROM sessions WHERE session_id = ?`).raw();
    this.selectAlive = db
      .prepare<[number, number], Columns>(
        `SELECT ${COLUMNS} FROM sessions INDEXED BY sessions_alive
         WHERE state <> 2 AND state IN (0, 1) AND expires_at < ? ORDER BY expires_at, session_id LIMIT ?`,
      )
      .raw();
    this.selectAhead = db
      .prepare<[number, number, number], Columns>(
        `SELECT ${COLUMNS} FROM sessions INDEXED BY sessions_alive
         WHERE state <> 2 AND state IN (0, 1) AND expires_at > ? AND expires_at > ? + ttl_ms
         ORDER BY expires_at DESC, session_id LIMIT ?`,
      )
      .raw();
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
}

/** What a write of a session changes unless it says a new Hello: state, expiry and attachment, then whose they are. */
export function standingOf({ sessionId, state, expiresAt, attachment }: SessionRow): [number, number, number, string] {
  return [SESSION_CODES[state], expiresAt, attachment, sessionId];
}

export function columnsOf(row: SessionRow): Columns {
  const { sessionId, state, expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt } = row;
  return [sessionId, SESSION_CODES[state], expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt];
}

function sessionOf(columns: Columns): SessionRow {
  const [sessionId, state, expiresAt, attachment, ttlMs, lingerMs, workerName, helloJson, createdAt] = columns;
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
  };
}
