/**
 * The statements of permits. Each names a permit by its text, and finds its number by the one index there is of names.
 */
import type { Database, Statement } from 'better-sqlite3';

type Order = number;
type Place = [Order, number];

export interface PermitStatements {
  readonly rowsOf: Statement<[Order], [string, number, number]>;
  readonly put: Statement<[Order, number, number, string]>;
  readonly remove: Statement<[Order, string]>;
  readonly countOf: Statement<[string], [number, number]>;
  readonly setLimit: Statement<[string, number]>;
  readonly addHeld: Statement<[number, string]>;
  readonly forgetUnused: Statement<[string]>;
  readonly first: Statement<[string, number], Place>;
  readonly last: Statement<[string, number], Place>;
  readonly tasksOf: Statement<[string, number], Order>;
  readonly setReady: Statement<[number | null, Order]>;
  readonly nameAndRoute: Statement<[Order], [string, string]>;
  readonly states: Statement<[string, number], [string, number, number, number]>;
  readonly holders: Statement<[string, number], string>;
  readonly ahead: Statement<[string, number, Order, number], number>;
}

const NUMBER = '(SELECT permit_id FROM permits WHERE name = ?)';
const LINE = `FROM permit_rows INDEXED BY permit_lines WHERE permit_id = ${NUMBER} AND state = ?`;

export function permitStatements(db: Database): PermitStatements {
  return {
    rowsOf: db
      .prepare<[Order], [string, number, number]>(
        'SELECT name, state, ready_order FROM permit_rows JOIN permits USING (permit_id) WHERE task_order = ?',
      )
      .raw(),
    put: db.prepare(
      `INSERT INTO permit_rows (task_order, state, ready_order, permit_id) VALUES (?, ?, ?, ${NUMBER})
       ON CONFLICT (task_order, permit_id) DO UPDATE SET state = excluded.state, ready_order = excluded.ready_order`,
    ),
    remove: db.prepare(`DELETE FROM permit_rows WHERE task_order = ? AND permit_id = ${NUMBER}`),
    countOf: db.prepare<[string], [number, number]>('SELECT most, held FROM permits WHERE name = ?').raw(),
    setLimit: db.prepare(
      `INSERT INTO permits (name, most, held) VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET most = excluded.most`,
    ),
    addHeld: db.prepare('UPDATE permits SET held = held + ? WHERE name = ?'),
    forgetUnused: db.prepare(
      `DELETE FROM permits WHERE name = ?
         AND NOT EXISTS (SELECT 1 FROM permit_rows r INDEXED BY permit_lines WHERE r.permit_id = permits.permit_id)`,
    ),
    first: db
      .prepare<[string, number], Place>(
        `SELECT task_order, ready_order ${LINE} ORDER BY ready_order, task_order LIMIT 1`,
      )
      .raw(),
    last: db
      .prepare<[string, number], Place>(
        `SELECT task_order, ready_order ${LINE} ORDER BY ready_order DESC, task_order DESC LIMIT 1`,
      )
      .raw(),
    tasksOf: db
      .prepare<[string, number], Order>(
        `SELECT task_order FROM permit_rows INDEXED BY permit_lines WHERE permit_id = ${NUMBER} LIMIT ?`,
      )
      .pluck(),
    setReady: db.prepare('UPDATE tasks SET ready_order = ? WHERE task_order = ?'),
    nameAndRoute: db
      .prepare<[Order], [string, string]>(
        'SELECT task_id, route_key FROM tasks JOIN routes USING (route_id) WHERE task_order = ?',
      )
      .raw(),
    states: db
      .prepare<[string, number], [string, number, number, number]>(
        `SELECT name, most, held, EXISTS (
           SELECT 1 FROM permit_rows r INDEXED BY permit_lines WHERE r.permit_id = p.permit_id AND r.state = 0)
         FROM permits p WHERE name > ? ORDER BY name LIMIT ?`,
      )
      .raw(),
    holders: db
      .prepare<[string, number], string>(
        `SELECT task_id FROM permit_rows r INDEXED BY permit_lines JOIN tasks USING (task_order)
         WHERE permit_id = ${NUMBER} AND state IN (1, 2) ORDER BY state DESC, r.ready_order, task_order LIMIT ?`,
      )
      .pluck(),
    ahead: db
      .prepare<[string, number, Order, number], number>(
        `SELECT count(*) FROM (
           SELECT 1 FROM permit_rows INDEXED BY permit_lines
           WHERE permit_id = ${NUMBER} AND state = 0 AND (ready_order, task_order) < (?, ?) LIMIT ?)`,
      )
      .pluck(),
  };
}
