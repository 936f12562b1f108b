// Another program writes to the file while the service runs on it and remembers the task: the first to ask for it is told
// what is true by then, the operator is told why, once, and nobody else's work is lost to it.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { until } from '../support/turns.js';
import { World } from '../support/world.js';

const DAMAGED = { kind: 'refused', refusal: { reason: 'RECORD_DAMAGED', metadata: { task_id: 'a' } } };
const NOT_FOUND = { kind: 'refused', refusal: { reason: 'TASK_NOT_FOUND', metadata: { task_id: 'a' } } };

let path: string;
let store: TaskStore;
let world: World;

beforeEach(async () => {
  path = join(temporaryFolder(), 'reeve.db');
  store = await openSqliteStore({ path });
  world = await World.open({ real: store });
});

afterEach(async () => {
  world.kill();
  await world.authority.stop();
  await store.close();
});

function edit(...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) {
    if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
  }
  db.close();
}

const told = (): string[] => world.defects.map(String);
const ORDER = `(SELECT task_order FROM tasks WHERE task_id = 'a')`;

describe('a task that is remembered', () => {
  it.each([
    ['its version was changed', `UPDATE tasks SET version = 77 WHERE task_id = 'a'`, DAMAGED, /version 77 holds/],
    ['its row was deleted', `DELETE FROM tasks WHERE task_id = 'a'`, NOT_FOUND, /its row is not there any more/],
    [
      'it has another place',
      `UPDATE tasks SET task_order = 99 WHERE task_id = 'a'`,
      DAMAGED,
      /admission is not a text/,
    ],
  ])('%s', async (_what, statement, answer, why) => {
    await world.admit('a', { taskId: 'a', queue: 'nobody' });
    await world.admit('b', { taskId: 'b', queue: 'nobody' });
    edit(statement);
    // In one transaction with the work of others.
    const [first, other, submitted] = await Promise.all([world.cancel('a'), world.cancel('b'), world.submit('c')]);
    expect(first).toMatchObject(answer);
    expect([other.kind, submitted.kind]).toEqual(['applied', 'created']);
    for (let time = 0; time < 3; time++) expect(await world.cancel('a')).toMatchObject(answer);
    expect(await world.authority.reads.get('a')).toMatchObject({ ok: false, refusal: answer.refusal });
    expect(told()).toEqual([expect.stringMatching(why)]);
    expect(told()[0]).toContain('task a: ');
  });

  it('an older copy of all that is kept of it was put back: it goes on from there', async () => {
    await world.admit('a', { taskId: 'a', queue: 'nobody' });
    const before = new Database(path, { readonly: true });
    const row = before.prepare<[], { record: string; seal: number }>('SELECT record, seal FROM tasks').get();
    before.close();
    const worker = await openWorker(world, { serves: subscription({ queues: ['nobody'] }) });
    await until(() => worker.sink.claimedIds.length === 1);
    const db = new Database(path);
    db.prepare('DELETE FROM history WHERE last_number > 1').run();
    const put = db.prepare(
      'UPDATE tasks SET version = 1, record = ?, seal = ?, lease_session = NULL, next_due_at = NULL',
    );
    put.run(row?.record, row?.seal);
    db.close();
    expect(await world.cancel('a', 1_000)).toMatchObject({ kind: 'applied', before: { status: 'queued', epoch: 0 } });
    expect((await world.stored('a')).status).toBe('cancelled');
    expect(told()).toEqual([]);
  });

  it('that waits to be claimed keeps nobody from the tasks behind it', async () => {
    await world.admit('a', { taskId: 'a', queue: 'work' });
    await world.admit('b', { taskId: 'b', queue: 'work' });
    edit(`UPDATE tasks SET version = 77 WHERE task_id = 'a'`);
    const worker = await openWorker(world, { serves: subscription({ queues: ['work'] }), slots: 2 });
    await until(() => worker.sink.claimedIds.includes('b'));
    await until(() => told().length === 1);
    expect(worker.sink.claimedIds).toEqual(['b']);
    expect(told()).toEqual([expect.stringMatching(/task a: version 77/)]);
  });

  it('is told of once more when it is damaged again after a while', async () => {
    await world.admit('a', { taskId: 'a', queue: 'nobody' });
    edit(`UPDATE tasks SET version = 77 WHERE task_id = 'a'`);
    await world.cancel('a');
    await world.clock.advance(599_000);
    await world.cancel('a');
    expect(told().length).toBe(1);
    await world.clock.advance(1_001);
    await world.cancel('a');
    expect(told().length).toBe(2);
  });
});

it('a row that stands in the way of one plan costs that plan alone', async () => {
  await world.admit('a', { taskId: 'a', queue: 'nobody' });
  await world.cancel('a');
  const { lastEvent } = await world.stored('a');
  edit(`INSERT INTO purging (task_order) VALUES (${ORDER})`);
  const [purge, created] = await Promise.all([
    world.authority.upkeep.purge({ taskId: 'a', version: lastEvent }),
    world.submit('b'),
  ]);
  expect(purge).toMatchObject(DAMAGED);
  expect(created.kind).toBe('created');
  expect(told()).toEqual([expect.stringMatching(/UNIQUE constraint failed: purging/)]);
});
