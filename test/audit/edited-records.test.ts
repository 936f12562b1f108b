// Every edit of a stored record is met as RECORD_DAMAGED by whoever asks for the task, is acted on never, is found by
// Verify and mended by a rebuild; so is a record that was put where another belongs.

import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { type RepairAnswer, Repairs } from '../../src/audit/repairs.js';
import { auditTask } from '../../src/audit/task-audit.js';
import type { RepairKind } from '../../src/kernel/event.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { causeOf, subscription } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';
import { StoredFile, published } from './stored-file.js';

const file = await StoredFile.make();
const TASKS = ['done', 'running', 'retrying', 'parent', 'child', 'waiter', 'queued', 'again'];
const DAMAGED = { refusal: { reason: 'RECORD_DAMAGED' } };

let store: TaskStore;
let world: World;
let db: Database.Database;

beforeAll(async () => {
  const path = file.copy();
  store = await file.open(path);
  const clock = new ManualClock(file.now);
  // Nothing is remembered, and nothing moves by itself.
  world = await World.open({ real: store, clock, cacheBytes: 0, timers: 'stopped', propagation: 'stopped' });
  db = new Database(path);
});

afterAll(async () => {
  db.close();
  world.kill();
  await world.authority.stop();
  await store.close();
});

const rowOf = (taskId: string): unknown => db.prepare('SELECT * FROM tasks WHERE task_id = ?').get(taskId);
const textOf = (taskId: string): string =>
  db.prepare<[string], string>('SELECT record FROM tasks WHERE task_id = ?').pluck().get(taskId) ?? '';
const put = (taskId: string, record: string): void =>
  void db.prepare('UPDATE tasks SET record = ? WHERE task_id = ?').run(record, taskId);

function repair(taskId: string, kind: RepairKind): Promise<RepairAnswer> {
  const cause = { ...causeOf('admin'), reason: reason('run.repaired.operator', 'somebody edited it') };
  const key = { key: `${kind} of ${taskId}`, contentHash: `sha256:${kind}` };
  const repairs = new Repairs(world.authority, new Auditor(world.authority, () => file.now));
  return repairs.repair({ taskId, kind, eventNumber: 1, key, cause });
}

/** Every change of one thing: another status, each value another one, each member gone, and members it did not have. */
function* editsOf(record: string): Generator<readonly [what: string, edited: string]> {
  const head = record.slice(0, 2);
  const fields = JSON.parse(record.slice(2)) as Record<string, unknown>;
  for (const letter of 'abcdefghij') {
    if (letter !== record.charAt(1)) yield [`status ${letter}`, `${record.charAt(0)}${letter}${record.slice(2)}`];
  }
  for (const name of Object.keys(fields)) {
    const { [name]: _gone, ...others } = fields;
    yield [`without ${name}`, `${head}${JSON.stringify(others)}`];
    for (const [place, value] of changed(fields[name])) {
      yield [`${name}${place}`, `${head}${JSON.stringify({ ...fields, [name]: value })}`];
    }
  }
  const more = { g: 7, t: 3, e: 9, h: 1, c: 1, a: 2, w: 1, j: 1, I: 1, O: 1, C: 1, W: 1, D: 1, o: 0, p: { pr: 9 } };
  for (const [name, value] of Object.entries(more)) {
    if (!(name in fields)) yield [`with ${name}`, `${head}${JSON.stringify({ ...fields, [name]: value })}`];
  }
}

function* changed(value: unknown, place = ''): Generator<readonly [place: string, value: unknown]> {
  if (typeof value === 'number') yield [place, value + 1];
  else if (typeof value === 'string') yield [place, `${value}x`];
  else if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    for (const [at, item] of items.entries()) {
      for (const [inner, other] of changed(item, `${place}[${String(at)}]`)) yield [inner, items.with(at, other)];
    }
  } else if (typeof value === 'object' && value !== null) {
    const members: Readonly<Record<string, unknown>> = { ...value };
    for (const [name, member] of Object.entries(members)) {
      for (const [inner, other] of changed(member, `${place}.${name}`)) yield [inner, { ...members, [name]: other }];
    }
  }
}

async function invariantsOf(taskId: string): Promise<string[]> {
  const [task] = (await store.auditTasks({ taskIds: [taskId], after: 0, limit: 1 })).entries;
  if (task?.kind !== 'task') throw new Error(`there is no ${taskId}`);
  const { findings } = await auditTask(task, store.auditHistory.bind(store), { now: file.now, quietSince: file.now });
  return findings.map(({ invariant }) => invariant);
}

describe('an edited record', () => {
  it.each(TASKS)('of %s is damaged whatever was edited, and nothing is written on it', async (taskId) => {
    const sound = textOf(taskId);
    let edits = 0;
    for (const [what, edited] of editsOf(sound)) {
      put(taskId, edited);
      const stored = rowOf(taskId);
      const [read, cancel] = await Promise.all([world.authority.reads.get(taskId), world.cancel(taskId)]);
      expect([what, read]).toMatchObject([what, { ok: false, ...DAMAGED }]);
      expect([what, cancel]).toMatchObject([what, { kind: 'refused', ...DAMAGED }]);
      expect([what, rowOf(taskId)]).toEqual([what, stored]);
      const names = await invariantsOf(taskId);
      expect([what, names.includes('store.seal') || names.includes('store.record')]).toEqual([what, true]);
      edits += 1;
    }
    put(taskId, sound);
    expect(edits).toBeGreaterThan(20);
    expect(await invariantsOf(taskId)).toEqual([]);
    expect(await world.authority.reads.get(taskId)).toMatchObject({ ok: true });
  });

  it('is refused by everything else that may be said of the task', async () => {
    const sound = textOf('running');
    put('running', sound.replace('"r":', '"r":1'));
    const lease = { sessionId: 'somebody', epoch: 1 };
    const cause = causeOf('operator');
    for (const intent of [
      { kind: 'suspend', lease: null, cause },
      { kind: 'resume', newGenerationId: 'g9', spareGenerationId: 'g9', inputJson: null, cause },
      { kind: 'tick', quietSince: 0, chance: 0 },
      { kind: 'session_lost', sessionId: 'somebody', cause },
      { kind: 'hand_back', lease, why: 'forgotten', cause },
    ] as const) {
      expect(await world.apply({ taskId: 'running', intent })).toMatchObject({ kind: 'refused', ...DAMAGED });
    }
    const repeat = await world.submit('key of running', { queue: 'work', args: '{"for":"running"}' });
    expect(repeat).toMatchObject({ kind: 'refused', ...DAMAGED });
    put('running', sound);
  });

  it('is not claimed, and is once it was rebuilt', async () => {
    put('queued', textOf('queued').replace('"r":1', '"r":2'));
    const worker = await openWorker(world, { slots: 9, serves: subscription({ queues: ['nobody'] }) });
    await world.settle();
    expect(worker.sink.claimedIds).not.toContain('queued');
    const claimed = published(world, 'queued', 'reeve.task.claimed');
    expect(await repair('queued', 'rebuild_record')).toMatchObject({ applied: true, record: { revision: 1 } });
    await claimed;
    expect(await invariantsOf('queued')).toEqual([]);
  });
});

describe('a record that is not the one of its task', () => {
  it('but that of another task', async () => {
    const sound = textOf('child');
    put('child', textOf('waiter').replace(/"n":\d+/, /"n":\d+/.exec(sound)?.[0] ?? ''));
    expect(await world.authority.reads.get('child')).toMatchObject({ ok: false, ...DAMAGED });
    put('child', sound);
    // Together with its seal, and under a version that fits.
    const columns = db.prepare(
      'UPDATE tasks SET (version, record, seal) = (SELECT version, record, seal FROM tasks WHERE task_id = ?) WHERE task_id = ?',
    );
    const before = db
      .prepare<[], { version: number; record: string; seal: number }>(
        `SELECT version, record, seal FROM tasks WHERE task_id = 'child'`,
      )
      .get();
    columns.run('waiter', 'child');
    expect(await world.authority.reads.get('child')).toMatchObject({ ok: false, ...DAMAGED });
    expect(await invariantsOf('child')).toContain('store.seal');
    db.prepare(`UPDATE tasks SET version = ?, record = ?, seal = ? WHERE task_id = 'child'`).run(
      before?.version,
      before?.record,
      before?.seal,
    );
    expect(await world.authority.reads.get('child')).toMatchObject({ ok: true });
  });

  it('but from before there were seals is read, and is sealed with its next change', async () => {
    db.prepare(`UPDATE tasks SET seal = NULL WHERE task_id = 'retrying'`).run();
    expect(await invariantsOf('retrying')).toEqual([]);
    expect(await world.cancel('retrying')).toMatchObject({ kind: 'applied' });
    put('retrying', textOf('retrying').replace('"r":', '"r":1'));
    expect(await world.authority.reads.get('retrying')).toMatchObject({ ok: false, ...DAMAGED });
  });
});

describe('a repair that writes the record again as it stands', () => {
  const refused = (mendedBy: string) => ({
    kind: 'refused',
    refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: expect.stringContaining(mendedBy) as string } },
  });

  it.each([
    ['that is sealed', 'child', ''],
    ['from before there were seals', 'parent', ', seal = NULL'],
  ])('never takes an edited one %s for sound', async (_what, taskId, more) => {
    const edit = `UPDATE tasks SET record = replace(record, '"r":', '"r":1'), ready_order = 5${more} WHERE task_id = ?`;
    db.prepare(edit).run(taskId);
    expect(await repair(taskId, 'reindex')).toMatchObject(refused('rebuild_record'));
    expect(await repair(taskId, 'redact_payload')).toMatchObject(refused('rebuild_record'));
    expect(await repair(taskId, 'rebuild_record')).toMatchObject({ applied: true });
    expect(await invariantsOf(taskId)).toEqual([]);
  });

  it('does so neither where no history can tell', async () => {
    db.prepare(`UPDATE tasks SET ready_order = 5 WHERE task_id = 'waiter'`).run();
    put('waiter', textOf('waiter').replace('"r":', '"r":1'));
    const lost = `UPDATE history SET events = '1[' WHERE task_order = (SELECT task_order FROM tasks WHERE task_id = ?)`;
    db.prepare(lost).run('waiter');
    expect(await repair('waiter', 'reindex')).toMatchObject(refused('accept_record'));
  });

  it('takes a sealed one for sound where no history can tell, and one from before there were seals not', async () => {
    const lost = `UPDATE history SET events = '1[' WHERE last_number = 1 AND task_order = (SELECT task_order FROM tasks WHERE task_id = ?)`;
    for (const taskId of ['done', 'again']) db.prepare(lost).run(taskId);
    db.prepare(`UPDATE tasks SET next_due_at = 5 WHERE task_id = 'done'`).run();
    expect(await repair('done', 'reindex')).toMatchObject({ applied: true });
    put('again', textOf('again').replace('"r":', '"r":1'));
    db.prepare(`UPDATE tasks SET next_due_at = 5, seal = NULL WHERE task_id = 'again'`).run();
    expect(await repair('again', 'reindex')).toMatchObject(refused('accept_record'));
    expect(await repair('again', 'redact_payload')).toMatchObject({ refusal: { reason: 'INVALID_TRANSITION' } });
    expect(db.prepare(`SELECT seal FROM tasks WHERE task_id = 'again'`).pluck().get()).toBeNull();
  });
});
