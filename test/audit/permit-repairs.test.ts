// What is wrong with permits and mended by `reindex`: places, counts, lines, and rows of permits that are not there. After
// it nobody is kept waiting, and nobody runs who may not.

import Database from 'better-sqlite3';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { Repairs } from '../../src/audit/repairs.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';
import { auditAll } from './stored-file.js';

const KEYED = { policy: { concurrencyKey: 'k' } };
let folder: string;
let path: string;
let store: TaskStore;
let world: World;
let repairs: Repairs;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reeve-permits-'));
  path = join(folder, 'reeve.db');
  store = await openSqliteStore({ path });
  world = await World.open({ real: store });
  repairs = new Repairs(world.authority, new Auditor(world.authority, () => 0));
});

afterEach(async () => {
  world.kill();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function tamper(...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) {
    if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
  }
  db.close();
}

async function findings(): Promise<string[]> {
  const { findings: found } = await auditAll(store, world.clock.nowMs());
  return [...new Set(found.map(({ taskId, invariant }) => `${taskId} ${invariant}`))];
}

let keys = 0;
function reindex(taskId: string) {
  keys += 1;
  const key = { key: `repair-${String(keys)}`, contentHash: 'h' };
  return repairs.repair({ taskId, kind: 'reindex', eventNumber: 0, key, cause: causeOf('admin') });
}

it.each([
  ['more that run than do', ['UPDATE permits SET running = 1'], ['second permits.counts']],
  ['a line that nobody stands in', ['UPDATE permit_lines SET passed = 0, waiting = 3'], ['second permits.counts']],
  ['no lines', ['DELETE FROM permit_lines'], ['second permits.counts']],
  [
    'a place that is none',
    [`UPDATE permit_rows SET state = 9 WHERE task_order = (SELECT task_order FROM tasks WHERE task_id = 'first')`],
    ['first permits.place', 'first index.ready', 'second permits.counts'],
  ],
  [
    'nobody who passed',
    [
      'UPDATE permit_rows SET state = 0',
      'UPDATE permit_lines SET waiting = passed + waiting, passed = 0',
      'UPDATE tasks SET ready_order = NULL',
    ],
    ['first permits.settled'],
  ],
  [
    'a place in line that is another one',
    ['UPDATE permit_rows SET ready_order = ready_order + 1000000 WHERE state = 1'],
    ['first permits.place'],
  ],
  [
    'a place before all others',
    ['UPDATE permit_rows SET ready_order = ready_order - 1000000 WHERE state = 0'],
    ['second permits.place'],
  ],
  [
    'places in the line of another route',
    ['UPDATE permit_rows SET route_id = 99', 'UPDATE permit_lines SET route_id = 99'],
    ['first permits.place', 'second permits.place'],
  ],
  ['the permit itself lost', ['DELETE FROM permits'], ['first permits.place', 'second permits.place']],
])('%s', async (_what, statements, invariants) => {
  await world.admit('first', { taskId: 'first', ...KEYED });
  await world.admit('second', { taskId: 'second', ...KEYED });
  tamper(...statements);
  expect((await findings()).toSorted()).toEqual(expect.arrayContaining(invariants));
  let left = await findings();
  for (let rounds = 0; left.length > 0 && rounds < 3; rounds++) {
    expect(await reindex(left[0]?.split(' ')[0] ?? '')).toMatchObject({ kind: 'done', applied: true });
    left = await findings();
  }
  expect(left).toEqual([]);
  const worker = await openWorker(world, { slots: 5 });
  await world.settle();
  await expect.poll(() => worker.sink.claimedIds).toEqual(['first']);
  await worker.say('first', 'accepted', 'started', 'completed');
  await expect.poll(() => worker.sink.claimedIds).toEqual(['first', 'second']);
  await worker.say('second', 'accepted', 'started', 'completed');
  expect(await store.permits(null, 9)).toEqual([]);
  await world.assertHistories(['first', 'second']);
});

it.each([
  ['UPDATE tasks SET next_due_at = 5', false],
  ['UPDATE permit_rows SET ready_order = 5', false],
  ['UPDATE permits SET running = 1', true],
])('counts anew only what was found to be counted wrong: %s', async (statement, recount) => {
  await world.admit('first', { taskId: 'first', ...KEYED });
  tamper(statement);
  expect(await reindex('first')).toMatchObject({ kind: 'done', applied: true });
  expect(world.probe.plans().flatMap(({ repairs: written = [] }) => written)).toMatchObject([{ recount }]);
  expect(await findings()).toEqual([]);
});

it('a holder that is counted though nobody of its key is left keeps nobody waiting once one of them is mended', async () => {
  await world.admit('first', { taskId: 'first', ...KEYED });
  tamper('UPDATE permits SET running = 1', 'DELETE FROM permit_rows', 'DELETE FROM permit_lines');
  expect((await findings()).toSorted()).toEqual([' permits.counts', 'first permits.place']);
  expect(await reindex('first')).toMatchObject({ kind: 'done', applied: true });
  expect(await findings()).toEqual([]);
});
