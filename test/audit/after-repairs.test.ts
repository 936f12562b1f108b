// What goes on after a repair on a real file: the worker that held what is no more is told, the dispatcher looks at the
// task again, and a Resume may name an id although part of the history is lost for good.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { type RepairAnswer, Repairs } from '../../src/audit/repairs.js';
import type { IntentAnswer } from '../../src/authority/intent-work.js';
import type { RepairKind } from '../../src/kernel/event.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { until } from '../support/turns.js';
import { World } from '../support/world.js';
import { published, reseal } from './stored-file.js';

let path: string;
let store: TaskStore;
let world: World;
let repairs: Repairs;

beforeEach(async () => {
  path = join(temporaryFolder(), 'reeve.db');
  store = await openSqliteStore({ path });
  world = await World.open({ real: store, cacheBytes: 0 });
  repairs = new Repairs(world.authority, new Auditor(world.authority, () => world.clock.nowMs()));
});

afterEach(async () => {
  world.kill();
  await world.authority.stop();
  await store.close();
});

function repair(taskId: string, kind: RepairKind): Promise<RepairAnswer> {
  const key = { key: `repair of ${taskId}`, contentHash: `sha256:${kind}` };
  const cause = { ...causeOf('admin'), reason: reason('run.repaired.operator', 'a disk went bad') };
  return repairs.repair({ taskId, kind, eventNumber: 0, key, cause });
}

function tamper(...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) {
    if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
  }
  db.close();
}

const serves = subscription({ queues: ['work'] });
const order = (taskId: string): string => `(SELECT task_order FROM tasks WHERE task_id = '${taskId}')`;

describe('a claim that the mended record does not give', () => {
  const recordText = (): string => {
    const db = new Database(path);
    const text = db.prepare<[], string>(`SELECT record FROM tasks WHERE task_id = 'a'`).pluck().get() ?? '';
    db.close();
    return text;
  };

  it('is lost to its holder, who hears of it before it is given anything else', async () => {
    await world.admit('a', { taskId: 'a', queue: 'work' });
    const before = recordText();
    const worker = await openWorker(world, { slots: 2, serves });
    await until(() => worker.sink.claimedIds.length === 1);
    await worker.say('a', 'accepted', 'started');
    // As it was before it was claimed; the operator goes on from there.
    tamper(`UPDATE tasks SET record = '${before}'`);
    const again = published(world, 'a', 'reeve.task.claimed');
    expect(await repair('a', 'accept_record')).toMatchObject({ applied: true });
    await again;
    await until(() => worker.sink.claimedIds.length === 2);
    expect(worker.sink.frames.map(({ kind }) => kind)).toEqual(['claims', 'lost', 'claims']);
    expect(worker.sink.lost).toEqual([{ taskId: 'a', generation: 1, epoch: 1, cause: 'superseded' }]);
    expect(worker.epochOf('a')).toBe(2);
  });

  it('is all that ends: one that it gives goes on', async () => {
    await world.admit('a', { taskId: 'a', queue: 'work' });
    await world.admit('b', { taskId: 'b', queue: 'work' });
    const worker = await openWorker(world, { slots: 2, serves });
    await until(() => worker.sink.claimedIds.length === 2);
    tamper(`UPDATE tasks SET record = '1a{oops' WHERE task_id = 'a'`);
    expect(await repair('a', 'rebuild_record')).toMatchObject({ applied: true, record: { status: 'running' } });
    await world.settle();
    expect(worker.sink.lost).toEqual([]);
    expect([...worker.session.held.keys()].sort()).toEqual(['a', 'b']);
  });
});

it('a task that needs a permit is claimed at once when it was repaired, though it was found to be damaged', async () => {
  await world.admit('a', { taskId: 'a', queue: 'work', policy: { concurrencyKey: 'k' } });
  tamper(`UPDATE tasks SET record = '1a{oops' WHERE task_id = 'a'`);
  const first = await openWorker(world, { serves, lingerMs: 0 });
  await until(() => world.defects.length === 1, 'a look at the damaged task');
  first.drop();
  await until(() => world.dispatcher.session(first.sessionId) === undefined);
  expect(await repair('a', 'rebuild_record')).toMatchObject({ applied: true });
  const second = await openWorker(world, { serves });
  await until(() => second.sink.claimedIds.includes('a'));
});

it('the mended record is read once where no lease has to be taken', async () => {
  await world.admit('a', { taskId: 'a' });
  tamper(`UPDATE tasks SET record = '1a{oops' WHERE task_id = 'a'`);
  const reads = () => world.probe.calls.get('loadTasks') ?? 0;
  const before = reads();
  expect(await repair('a', 'rebuild_record')).toMatchObject({ applied: true, record: { status: 'queued' } });
  expect(reads()).toBe(before + 1);
});

describe('a Resume that names its new generation, after a history was accepted as lost', () => {
  const resume = (newGenerationId: string): Promise<IntentAnswer> => {
    const ids = { newGenerationId, spareGenerationId: 'spare', inputJson: null };
    return world.apply({ taskId: 'a', intent: { kind: 'resume', ...ids, cause: causeOf('operator') } });
  };
  const MALFORMED = { kind: 'refused', refusal: { reason: 'MALFORMED' } };

  /** In generation 4, cancelled; it began under g2, g3 and g4. */
  beforeEach(async () => {
    await world.admit('a', { taskId: 'a', queue: 'nobody' });
    await world.cancel('a');
    for (const id of ['g2', 'g3', 'g4']) {
      expect(await resume(id)).toMatchObject({ kind: 'applied' });
      await world.cancel('a');
    }
  });

  it.each([
    ['cannot be read', `UPDATE history SET events = '1[oops' WHERE task_order = ${order('a')} AND last_number <= 4`],
    ['is gone', `DELETE FROM history WHERE task_order = ${order('a')} AND last_number <= 4`],
  ])('goes on where the beginning %s; ids that can be known are still taken', async (_how, damage) => {
    expect((await world.events('a')).slice(0, 5).map(({ generation }) => generation)).toEqual([1, 1, 1, 2, 2]);
    tamper(damage);
    expect(await resume('g9')).toMatchObject({ kind: 'refused' });
    expect(await repair('a', 'accept_record')).toMatchObject({ applied: true, record: { generation: 4 } });
    for (const id of ['g3', 'g4']) expect(await resume(id)).toMatchObject(MALFORMED);
    expect(await resume('g9')).toMatchObject({ kind: 'applied', after: { generation: 5, generationId: 'g9' } });
    await world.cancel('a');
    expect(await resume('g9')).toMatchObject(MALFORMED);
    // What only the lost part knew cannot be refused any more.
    expect(await resume('g2')).toMatchObject({ kind: 'applied', after: { generation: 6 } });
  });

  it('is refused while what is lost was not accepted, also behind an earlier acceptance', async () => {
    const rowOf = (number: number): string => `task_order = ${order('a')} AND last_number = ${String(number)}`;
    tamper(`UPDATE history SET events = '1[oops' WHERE ${rowOf(1)}`);
    await repair('a', 'accept_record');
    expect(await resume('g5')).toMatchObject({ kind: 'applied' });
    await world.cancel('a');
    const { lastEvent } = await world.stored('a');
    tamper(`UPDATE history SET events = '1[oops' WHERE ${rowOf(lastEvent)}`);
    expect(await resume('g6')).toMatchObject({ kind: 'refused', refusal: { reason: 'RECORD_DAMAGED' } });
  });

  it('counts the generations that the accepted record has, however many the history had', async () => {
    const db = new Database(path);
    db.prepare(`UPDATE tasks SET record = replace(record, '"g":4', '"g":2') WHERE task_id = 'a'`).run();
    reseal(db);
    db.close();
    expect(await repair('a', 'accept_record')).toMatchObject({ applied: true, record: { generation: 2 } });
    for (const id of ['g2', 'g3', 'g4']) expect(await resume(id)).toMatchObject(MALFORMED);
    expect(await resume('g9')).toMatchObject({ kind: 'applied', after: { generation: 3 } });
  });
});
