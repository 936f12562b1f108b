/**
 * The statements of an audit's reads, and which tables there are to look into: whatever has rows by the order of a task
 * is named here, so that nothing is left behind unseen.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Leftover } from '../audit-rows.js';
import type { HistoryRow } from '../stored-row.js';
import { HISTORY } from './task-columns.js';

type Order = number;

/** Task id, version, route, ready order, next due, lease session, record, purge time, seal. */
export type TaskColumns = readonly [
  string,
  number,
  string | null,
  number | null,
  number | null,
  string | null,
  string,
  number | null,
  number | null,
];
/** State, expiry, TTL. */
export type SessionColumns = readonly [number, number, number];
/** Name of the permit, if it is there; state, whether it is of the task's route, place in line. */
export type PermitColumns = readonly [string | null, number, number, number];
/** Id, parent's order, first sequence, tombstone. */
export type TombstoneColumns = readonly [string, number | null, number, string];

/** Every table that has rows by the order of their task, and where its least one above another is found by an index. */
const PLACES = [
  ['tasks', 'task_order'],
  ['tombstones', 'task_order'],
  ['admissions', 'task_order'],
  ['history', 'task_order'],
  ['intent_keys', 'task_order'],
  ['diagnostics', 'task_order'],
  ['family_counts', 'task_order'],
  ['propagations', 'task_order'],
  ['permit_rows', 'task_order'],
  ['purging', 'task_order'],
  ['children', 'child_order'],
  ['dependencies', 'waiter_order'],
] as const;

const LEFT_IN: readonly (readonly [Leftover, string])[] = [
  ['admission', 'admissions WHERE task_order = ?'],
  ['history', 'history WHERE task_order = ?'],
  ['intents', 'intent_keys WHERE task_order = ?'],
  ['diagnostics', 'diagnostics WHERE task_order = ?'],
  ['place_as_child', 'children WHERE child_order = ?'],
  ['counts', 'family_counts WHERE task_order = ?'],
  ['edges', 'dependencies WHERE waiter_order = ?'],
  ['propagations', 'propagations WHERE task_order = ?'],
  ['permits', 'permit_rows WHERE task_order = ?'],
  ['sweep', 'purging WHERE task_order = ?'],
];

export interface LeftoverLookUp {
  readonly name: Leftover;
  readonly anyOf: Statement<[Order], number>;
}

export interface AuditStatements {
  readonly nextOrder: Statement<[{ after: Order }], Order | null>;
  readonly leftovers: readonly LeftoverLookUp[];
  readonly orderOf: Statement<[string], Order>;
  readonly purgedOrder: Statement<[string], Order>;
  readonly tombstone: Statement<[Order], TombstoneColumns>;
  readonly hasTombstone: Statement<[Order, string], number>;
  readonly awaitsSweep: Statement<[Order], number>;
  readonly horizon: Statement<[], string>;
  readonly lastCommit: Statement<[], number | null>;
  readonly columns: Statement<[Order], TaskColumns>;
  readonly admission: Statement<[Order], string>;
  readonly permits: Statement<[Order], PermitColumns>;
  readonly lastNumber: Statement<[Order], number | null>;
  readonly keyOrder: Statement<[string, string], Order>;
  readonly session: Statement<[string], SessionColumns>;
  readonly history: Statement<[Order, number, number], HistoryRow>;
  readonly nextSequence: Statement<[number], number | null>;
  readonly linkBefore: Statement<[Order, number], string | null>;
}

export function auditStatements(db: Database): AuditStatements {
  const pluck = <Values extends unknown[], Value>(sql: string): Statement<Values, Value> =>
    db.prepare<Values, Value>(sql).pluck();
  const leasts = PLACES.map(([table, order]) => `SELECT min(${order}) AS place FROM ${table} WHERE ${order} > :after`);
  return {
    nextOrder: pluck<[{ after: Order }], Order | null>(`SELECT min(place) FROM (${leasts.join(' UNION ALL ')})`),
    leftovers: LEFT_IN.map(([name, rows]): LeftoverLookUp => ({
      name,
      anyOf: pluck<[Order], number>(`SELECT 1 FROM ${rows} LIMIT 1`),
    })),
    orderOf: pluck<[string], Order>('SELECT task_order FROM tasks WHERE task_id = ?'),
    purgedOrder: pluck<[string], Order>('SELECT task_order FROM tombstones WHERE task_id = ?'),
    tombstone: db
      .prepare<[Order], TombstoneColumns>(
        'SELECT task_id, parent_order, first_sequence, tombstone FROM tombstones WHERE task_order = ?',
      )
      .raw(),
    hasTombstone: pluck<[Order, string], number>(
      'SELECT 1 FROM tombstones WHERE task_order = ? OR task_id = ? LIMIT 1',
    ),
    awaitsSweep: pluck<[Order], number>('SELECT 1 FROM purging WHERE task_order = ?'),
    horizon: pluck<[], string>("SELECT value FROM meta WHERE name = 'horizon'"),
    lastCommit: pluck<[], number | null>('SELECT max(first_sequence) FROM history'),
    columns: db
      .prepare<[Order], TaskColumns>(
        `SELECT task_id, version, route_key, ready_order, next_due_at, lease_session, record, purge_at, seal
         FROM tasks LEFT JOIN routes USING (route_id) WHERE task_order = ?`,
      )
      .raw(),
    admission: pluck<[Order], string>('SELECT admission FROM admissions WHERE task_order = ?'),
    permits: db
      .prepare<[Order], PermitColumns>(
        `SELECT name, state, r.route_id = t.route_id, r.ready_order
         FROM permit_rows r JOIN tasks t USING (task_order) LEFT JOIN permits USING (permit_id)
         WHERE task_order = ? ORDER BY name`,
      )
      .raw(),
    lastNumber: pluck<[Order], number | null>('SELECT max(last_number) FROM history WHERE task_order = ?'),
    keyOrder: pluck<[string, string], Order>(
      'SELECT task_order FROM task_keys WHERE namespace = ? AND idempotency_key = ?',
    ),
    session: db
      .prepare<[string], SessionColumns>('SELECT state, expires_at, ttl_ms FROM sessions WHERE session_id = ?')
      .raw(),
    history: db
      .prepare<[Order, number, number], HistoryRow>(
        `SELECT ${HISTORY} FROM history h
         WHERE h.task_order = ? AND h.last_number > ? AND h.last_number <= ? ORDER BY h.last_number, h.first_sequence`,
      )
      .raw(),
    nextSequence: pluck<[number], number | null>('SELECT min(first_sequence) FROM history WHERE first_sequence > ?'),
    linkBefore: pluck<[Order, number], string | null>(
      `SELECT nullif(lower(hex(link)), '') FROM history
       WHERE task_order = ? AND last_number <= ? ORDER BY last_number DESC LIMIT 1`,
    ),
  };
}
