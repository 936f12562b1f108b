/**
 * The statements of permits. Each names a permit by its text, and finds its number by the one index there is of names.
 */
import type { Database, Statement } from 'better-sqlite3';
import { PERMIT_STATE_CODES } from '../code-tables.js';

type Order = number;
type Route = number;
type Place = [Order, number];

export interface PermitStatements {
  readonly routeOf: Statement<[Order], Route>;
  readonly rowsOf: Statement<[Order], [string, Route, number, number]>;
  readonly put: Statement<[Order, Route, number, number, string]>;
  readonly remove: Statement<[Order, string]>;
  readonly countOf: Statement<[string], [number, number]>;
  readonly setLimit: Statement<[string, number]>;
  readonly addRunning: Statement<[number, string]>;
  readonly forgetUnused: Statement<[string]>;
  readonly recount: Statement<[string]>;
  readonly dropLines: Statement<[string]>;
  readonly findLines: Statement<[string]>;
  readonly dropOrphans: Statement<[Order]>;
  readonly lineOf: Statement<[string, Route], [number, number]>;
  readonly addToLine: Statement<[Route, number, number, string]>;
  readonly dropEmptyLine: Statement<[string, Route]>;
  readonly linesBeyond: Statement<[string, number, number], Route>;
  readonly linesShort: Statement<[string, number, number], Route>;
  readonly first: Statement<[string, number, Route], Place>;
  readonly last: Statement<[string, number, Route], Place>;
  readonly tasksOf: Statement<[string, number], Order>;
  readonly tasksIn: Statement<[string, number, number], Order>;
  readonly setReady: Statement<[number | null, Order]>;
  readonly nameAndRoute: Statement<[Order], [string, string]>;
  readonly states: Statement<[number, string, number], [string, number, number, number, number, number]>;
  readonly holders: Statement<[string, number, number], string>;
  readonly ahead: Statement<[string, number, Route, number, Order, number], number>;
}

const NUMBER = '(SELECT permit_id FROM permits WHERE name = ?)';
const ROWS = 'FROM permit_rows INDEXED BY permit_rows_in_line';
const LINE = `${ROWS} WHERE permit_id = ${NUMBER} AND state = ? AND route_id = ?`;
const LINES = 'SELECT 1 FROM permit_lines l WHERE l.permit_id = p.permit_id';
/** Whether no line of the permit `p` wants a move. */
export const SETTLED = `NOT EXISTS (${LINES} AND passed > max(p.most - p.running, 0))
  AND NOT EXISTS (${LINES} AND waiting > 0 AND passed < p.most - p.running)`;
const { waiting: WAITING, passed: PASSED } = PERMIT_STATE_CODES;
/** How many stand for a permit, by state and route: in the order of the index, so that nothing is sorted. */
const placesFound = (permit: string): string =>
  `SELECT state, route_id, count(*) AS places, permit_id ${ROWS} WHERE permit_id = ${permit} GROUP BY state, route_id`;
export const PLACES_FOUND = placesFound('?');

export function permitStatements(db: Database): PermitStatements {
  return {
    routeOf: db.prepare<[Order], Route>('SELECT route_id FROM tasks WHERE task_order = ?').pluck(),
    rowsOf: db
      .prepare<[Order], [string, Route, number, number]>(
        'SELECT name, route_id, state, ready_order FROM permit_rows JOIN permits USING (permit_id) WHERE task_order = ?',
      )
      .raw(),
    put: db.prepare(
      `INSERT INTO permit_rows (task_order, route_id, state, ready_order, permit_id) VALUES (?, ?, ?, ?, ${NUMBER})
       ON CONFLICT (task_order, permit_id) DO UPDATE
         SET route_id = excluded.route_id, state = excluded.state, ready_order = excluded.ready_order`,
    ),
    remove: db.prepare(`DELETE FROM permit_rows WHERE task_order = ? AND permit_id = ${NUMBER}`),
    countOf: db.prepare<[string], [number, number]>('SELECT most, running FROM permits WHERE name = ?').raw(),
    setLimit: db.prepare(
      `INSERT INTO permits (name, most, running) VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET most = excluded.most`,
    ),
    addRunning: db.prepare('UPDATE permits SET running = running + ? WHERE name = ?'),
    forgetUnused: db.prepare(
      `DELETE FROM permits WHERE name = ?
         AND NOT EXISTS (SELECT 1 ${ROWS} WHERE permit_rows.permit_id = permits.permit_id)`,
    ),
    recount: db.prepare(
      `UPDATE permits AS p SET running = (SELECT count(*) FROM permit_rows r INDEXED BY permit_rows_in_line
         WHERE r.permit_id = p.permit_id AND r.state = ${PERMIT_STATE_CODES.running}) WHERE name = ?`,
    ),
    dropLines: db.prepare(`DELETE FROM permit_lines WHERE permit_id = ${NUMBER}`),
    findLines: db.prepare(
      `INSERT INTO permit_lines (permit_id, route_id, passed, waiting)
       SELECT permit_id, route_id,
         coalesce(sum(places) FILTER (WHERE state = ${PASSED}), 0), coalesce(sum(places) FILTER (WHERE state = ${WAITING}), 0)
       FROM (${placesFound(NUMBER)}) WHERE state IN (${PASSED}, ${WAITING}) GROUP BY route_id`,
    ),
    dropOrphans: db.prepare(
      'DELETE FROM permit_rows WHERE task_order = ? AND permit_id NOT IN (SELECT permit_id FROM permits)',
    ),
    lineOf: db
      .prepare<[string, Route], [number, number]>(
        `SELECT passed, waiting FROM permit_lines WHERE permit_id = ${NUMBER} AND route_id = ?`,
      )
      .raw(),
    addToLine: db.prepare(
      `INSERT INTO permit_lines (route_id, passed, waiting, permit_id) VALUES (?, ?, ?, ${NUMBER})
       ON CONFLICT (permit_id, route_id) DO UPDATE
         SET passed = passed + excluded.passed, waiting = waiting + excluded.waiting`,
    ),
    dropEmptyLine: db.prepare(
      `DELETE FROM permit_lines WHERE permit_id = ${NUMBER} AND route_id = ? AND passed = 0 AND waiting = 0`,
    ),
    linesBeyond: db
      .prepare<[string, number, number], Route>(
        `SELECT route_id FROM permit_lines INDEXED BY permit_lines_by_passed
         WHERE permit_id = ${NUMBER} AND passed > ? ORDER BY passed DESC LIMIT ?`,
      )
      .pluck(),
    linesShort: db
      .prepare<[string, number, number], Route>(
        `SELECT route_id FROM permit_lines INDEXED BY permit_lines_waited
         WHERE permit_id = ${NUMBER} AND passed < ? AND waiting > 0 ORDER BY passed LIMIT ?`,
      )
      .pluck(),
    first: db
      .prepare<[string, number, Route], Place>(
        `SELECT task_order, ready_order ${LINE} ORDER BY ready_order, task_order LIMIT 1`,
      )
      .raw(),
    last: db
      .prepare<[string, number, Route], Place>(
        `SELECT task_order, ready_order ${LINE} ORDER BY ready_order DESC, task_order DESC LIMIT 1`,
      )
      .raw(),
    tasksOf: db
      .prepare<[string, number], Order>(`SELECT task_order ${ROWS} WHERE permit_id = ${NUMBER} LIMIT ?`)
      .pluck(),
    tasksIn: db
      .prepare<[string, number, number], Order>(
        `SELECT task_order ${ROWS} WHERE permit_id = ${NUMBER} AND state = ? LIMIT ?`,
      )
      .pluck(),
    setReady: db.prepare('UPDATE tasks SET ready_order = ? WHERE task_order = ?'),
    nameAndRoute: db
      .prepare<[Order], [string, string]>(
        'SELECT task_id, route_key FROM tasks JOIN routes USING (route_id) WHERE task_order = ?',
      )
      .raw(),
    states: db
      .prepare<[number, string, number], [string, number, number, number, number, number]>(
        `SELECT name, most, running,
           EXISTS (${LINES}),
           ${SETTLED},
           EXISTS (SELECT 1 FROM permit_rows r INDEXED BY permit_rows_in_line
                   WHERE r.permit_id = p.permit_id AND r.state = ?)
         FROM permits p WHERE name > ? ORDER BY name LIMIT ?`,
      )
      .raw(),
    holders: db
      .prepare<[string, number, number], string>(
        `SELECT task_id ${ROWS} JOIN tasks USING (task_order) WHERE permit_id = ${NUMBER} AND state = ? LIMIT ?`,
      )
      .pluck(),
    ahead: db
      .prepare<[string, number, Route, number, Order, number], number>(
        `SELECT count(*) FROM (SELECT 1 ${LINE} AND (ready_order, task_order) < (?, ?) LIMIT ?)`,
      )
      .pluck(),
  };
}
