/**
 * The statements of the commit path. Plain and prepared, run in a loop: with better-sqlite3 that beats multi-row SQL.
 * bench/raw-loop.ts runs these same statements, so that its ceiling is the ceiling of this schema.
 */
import type { Database, Statement } from 'better-sqlite3';

type Order = number;

export interface WriteStatements {
  readonly begin: Statement<[]>;
  readonly commit: Statement<[]>;
  readonly rollback: Statement<[]>;
  readonly insertRoute: Statement<[string]>;
  readonly takeKey: Statement<[string, string, Order]>;
  readonly freeKey: Statement<[string, string]>;
  readonly insertTask: Statement<
    [Order, string, number, number, number | null, number | null, string | null, string, number]
  >;
  readonly insertAdmission: Statement<[Order, string]>;
  readonly insertHistory: Statement<[number, Order, number, string, Buffer]>;
  readonly updateTask: Statement<[number, number | null, number | null, string | null, string, number, Order, number]>;
  readonly setPurgeAt: Statement<[number | null, Order]>;
  readonly insertLedger: Statement<[Order, string, string, string]>;
  readonly insertDiagnostic: Statement<{ order: Order; epoch: number; at: number; text: string; most: number }>;
  readonly updateSession: Statement<[number, number, number, string]>;
  readonly endSession: Statement<[number, string, string]>;
  readonly putSession: Statement<[string, number, number, number, number, number | null, string, string, number]>;
}

export function writeStatements(db: Database): WriteStatements {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    insertRoute: db.prepare('INSERT INTO routes (route_key) VALUES (?)'),
    takeKey: db.prepare('INSERT OR IGNORE INTO task_keys (namespace, idempotency_key, task_order) VALUES (?, ?, ?)'),
    freeKey: db.prepare('DELETE FROM task_keys WHERE namespace = ? AND idempotency_key = ?'),
    insertTask: db.prepare(
      `INSERT OR IGNORE INTO tasks
         (task_order, task_id, version, route_id, ready_order, next_due_at, lease_session, record, seal)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertAdmission: db.prepare('INSERT INTO admissions (task_order, admission) VALUES (?, ?)'),
    insertHistory: db.prepare(
      'INSERT INTO history (first_sequence, task_order, last_number, events, link) VALUES (?, ?, ?, ?, ?)',
    ),
    updateTask: db.prepare(
      `UPDATE tasks SET version = ?, ready_order = ?, next_due_at = ?, lease_session = ?, record = ?, seal = ?
       WHERE task_order = ? AND version = ?`,
    ),
    // Apart from the update of the record: most of those have nothing to say of it, and an index would be looked at.
    setPurgeAt: db.prepare('UPDATE tasks SET purge_at = ? WHERE task_order = ?'),
    insertLedger: db.prepare(
      'INSERT INTO intent_keys (task_order, intent_key, content_hash, answer) VALUES (?, ?, ?, ?)',
    ),
    insertDiagnostic: db.prepare(
      `INSERT INTO diagnostics (task_order, epoch, ordinal, at, said)
       SELECT :order, :epoch, count(*), :at, :text FROM diagnostics
       WHERE task_order = :order AND epoch = :epoch HAVING count(*) < :most`,
    ),
    // Renewals are most of what is written of sessions: their Hello, of any size, stays where it is.
    updateSession: db.prepare('UPDATE sessions SET state = ?, expires_at = ?, attachment = ? WHERE session_id = ?'),
    endSession: db.prepare('UPDATE sessions SET forget_at = ?, ended = ? WHERE session_id = ?'),
    putSession: db.prepare(
      `INSERT OR REPLACE INTO sessions
         (session_id, state, expires_at, attachment, ttl_ms, linger_ms, worker_name, hello, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
  };
}
