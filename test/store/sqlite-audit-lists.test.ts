// What an audit reads of permits costs no more than it has to: a page ends when it has counted enough, one permit however
// many stand for it is one walk along an index, and so is counting it anew.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MAX_PLACES_PER_AUDIT } from '../../src/store/audit-rows.js';
import { AuditLists } from '../../src/store/sqlite/audit-lists.js';
import { PLACES_FOUND, permitStatements } from '../../src/store/sqlite/permit-statements.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { temporaryFolder } from '../contract/engines.js';

async function file(): Promise<Database.Database> {
  const path = join(temporaryFolder(), 'reeve.db');
  await (await openSqliteStore({ path })).close();
  return new Database(path);
}

/** So many wait for it on each of two routes, one passed on the first, one runs. */
function line(db: Database.Database, number: number, waiting: number): void {
  const put = db.prepare(
    `INSERT INTO permit_rows (task_order, permit_id, route_id, state, ready_order)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ? + i, ?, ?, ?, i FROM n`,
  );
  db.prepare('INSERT INTO permits (permit_id, name, most, running) VALUES (?, ?, 2, 1)').run(
    number,
    `key\nn\n${number}`,
  );
  for (const [route, state, count] of [
    [1, 0, waiting],
    [2, 0, waiting],
    [1, 1, 1],
    [1, 2, 1],
  ] as const) {
    const from = number * 10_000_000 + (route * 10 + state) * 200_000;
    put.run(count, from, number, route, state);
  }
  permitStatements(db).findLines.run(`key\nn\n${number}`);
}

const namesOf = ({ permits }: { readonly permits: readonly { readonly name: string }[] }): string[] =>
  permits.map(({ name }) => name);

it('ends a page when so many were counted, and holds one permit however many stand for it', async () => {
  const db = await file();
  for (const [number, waiting] of [3, MAX_PLACES_PER_AUDIT, 3, 3].entries()) line(db, number + 1, waiting);
  const lists = new AuditLists(db);
  const first = lists.permits({ names: null, after: null, limit: 1_000 });
  expect(namesOf(first)).toEqual(['key\nn\n1', 'key\nn\n2']);
  expect(first.next).toBe('key\nn\n2');
  const rest = lists.permits({ names: null, after: first.next, limit: 1_000 });
  expect(namesOf(rest)).toEqual(['key\nn\n3', 'key\nn\n4']);
  expect(rest.next).toBeNull();
  for (const { running, found, linesAgree } of [...first.permits, ...rest.permits]) {
    expect({ running, found, linesAgree }).toEqual({ running: 1, found: 1, linesAgree: true });
  }
  const named = lists.permits({ names: ['key\nn\n2', 'key\nn\n1'], after: null, limit: 2 });
  expect(namesOf(named)).toEqual(['key\nn\n2', 'key\nn\n1']);
  db.close();
});

it.each([
  'UPDATE permit_lines SET waiting = waiting + 1 WHERE route_id = 2',
  'UPDATE permit_lines SET passed = 0 WHERE route_id = 1',
  'DELETE FROM permit_lines WHERE route_id = 2',
  'INSERT INTO permit_lines VALUES (1, 7, 0, 0)',
  'UPDATE permit_rows SET route_id = 7 WHERE state = 1',
  'UPDATE permit_rows SET state = 9 WHERE state = 1',
])('tells that lines are not counted as they stand: %s', async (statement) => {
  const db = await file();
  line(db, 1, 3);
  db.prepare(statement).run();
  const [permit] = new AuditLists(db).permits({ names: null, after: null, limit: 1 }).permits;
  expect(permit).toMatchObject({ running: 1, found: 1, linesAgree: false });
  const statements = permitStatements(db);
  statements.dropLines.run('key\nn\n1');
  statements.findLines.run('key\nn\n1');
  const [mended] = new AuditLists(db).permits({ names: null, after: null, limit: 1 }).permits;
  expect(mended).toMatchObject({ linesAgree: true });
  db.close();
});

it('sorts nothing to count those who stand for a permit', async () => {
  const db = await file();
  const steps = db.prepare<[number], { readonly detail: string }>(`EXPLAIN QUERY PLAN ${PLACES_FOUND}`).all(1);
  expect(steps.map(({ detail }) => detail)).toEqual([
    'SEARCH permit_rows USING COVERING INDEX permit_rows_in_line (permit_id=?)',
  ]);
  db.close();
});
