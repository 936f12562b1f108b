// Repairs of a real file that was damaged while the service runs on it: each kind mends what it is for, says so in the
// history, and leaves a task to which everything may be done again. What cannot be mended is refused with what could.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { type RepairAnswer, Repairs } from '../../src/audit/repairs.js';
import type { RepairKind } from '../../src/kernel/event.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { endOf } from '../contract/sample-plans.js';
import { causeOf, subscription } from '../support/submissions.js';
import { type TestWorker, openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';
import { SECRET_OUTPUT, auditAll, published } from './stored-file.js';

let path: string;
let store: TaskStore;
let world: World;
let worker: TestWorker;
let repairs: Repairs;

beforeEach(async () => {
  path = join(temporaryFolder(), 'reeve.db');
  store = await openSqliteStore({ path });
  // Nothing is remembered, so that what is damaged in the file is met at once.
  world = await World.open({ real: store, cacheBytes: 0 });
  worker = await openWorker(world, { slots: 10, serves: subscription({ queues: ['work'] }) });
  repairs = new Repairs(world.authority, new Auditor(world.authority, () => world.clock.nowMs()));
});

afterEach(async () => {
  world.kill();
  await world.authority.stop();
  await store.close();
});

let keys = 0;

function repair(
  taskId: string,
  kind: RepairKind,
  more: { eventNumber?: number; key?: string } = {},
): Promise<RepairAnswer> {
  keys += 1;
  const { eventNumber = 0, key = `repair-${String(keys)}` } = more;
  return repairs.repair({
    taskId,
    kind,
    eventNumber,
    key: { key, contentHash: `sha256:${kind}${String(eventNumber)}` },
    cause: { ...causeOf('admin'), reason: reason('run.repaired.operator', 'a disk went bad') },
  });
}

function tamper(...statements: readonly string[]): void {
  const db = new Database(path);
  for (const statement of statements) {
    if (db.prepare(statement).run().changes === 0) throw new Error(`it changes nothing: ${statement}`);
  }
  db.close();
}

async function findings(): Promise<string[]> {
  const { findings: found } = await auditAll(store, world.clock.nowMs());
  return found.map(({ taskId, invariant }) => `${taskId} ${invariant}`);
}

async function running(taskId: string): Promise<void> {
  const claimed = published(world, taskId, 'reeve.task.claimed');
  await world.admit(`key of ${taskId}`, { taskId, queue: 'work' });
  await claimed;
  await worker.say(taskId, 'accepted', 'started');
}

const OOPS = (taskId: string): string => `UPDATE tasks SET record = '1a{oops' WHERE task_id = '${taskId}'`;
const order = (taskId: string): string => `(SELECT task_order FROM tasks WHERE task_id = '${taskId}')`;

describe('rebuild_record', () => {
  it('makes a damaged task usable again, by an event that says who and why; all others went on meanwhile', async () => {
    await world.admit('bad', { taskId: 'bad' });
    await world.admit('good', { taskId: 'good' });
    tamper(OOPS('bad'));
    expect(await world.cancel('bad')).toMatchObject({ kind: 'refused', refusal: { reason: 'RECORD_DAMAGED' } });
    expect(await world.cancel('good')).toMatchObject({ kind: 'applied' });
    const answer = await repair('bad', 'rebuild_record', { key: 'once' });
    expect(answer).toMatchObject({ kind: 'done', applied: true, replayed: false, record: { status: 'queued' } });
    expect((await world.events('bad')).at(-1)).toMatchObject({
      type: 'reeve.task.repaired',
      revision: null,
      data: { repair: 'rebuild_record', mended: ['store.record'], redacted: null, accepted: null },
      cause: { actor: { type: 'admin' }, reason: { code: 'run.repaired.operator', summary: 'a disk went bad' } },
    });
    expect(await findings()).toEqual([]);
    expect(await repair('bad', 'rebuild_record', { key: 'once' })).toMatchObject({ kind: 'done', replayed: true });
    const conflict = { kind: 'refused', refusal: { reason: 'IDEMPOTENCY_CONFLICT' } };
    expect(await repair('bad', 'reindex', { key: 'once' })).toMatchObject(conflict);
    expect(await world.cancel('bad')).toMatchObject({ kind: 'applied', after: { status: 'cancelled' } });
    expect(await findings()).toEqual([]);
  });

  it('leaves what is sound alone', async () => {
    await world.admit('a', { taskId: 'a' });
    expect(await repair('a', 'rebuild_record')).toMatchObject({ kind: 'done', applied: false, findings: [] });
    expect(await world.eventTypes('a')).toEqual(['submitted']);
    const gone = { kind: 'refused', refusal: { reason: 'TASK_NOT_FOUND' } };
    expect(await repair('nobody', 'rebuild_record')).toMatchObject(gone);
  });

  it('keeps a lease that the history gives, and its holder goes on', async () => {
    await running('a');
    tamper(OOPS('a'));
    expect(await world.cancel('a')).toMatchObject({ kind: 'refused' });
    expect(await repair('a', 'rebuild_record')).toMatchObject({ applied: true, record: { status: 'running' } });
    expect(await worker.say('a', 'completed')).toMatchObject({ kind: 'judged' });
    expect((await world.stored('a')).status).toBe('completed');
    expect(await findings()).toEqual([]);
  });

  it('gives back the lease of a session that went while nothing could be done', async () => {
    await running('a');
    tamper(OOPS('a'));
    const { sessionId, attachment } = worker;
    await world.authority.writeSession({ kind: 'end', sessionId, attachment, end: endOf() });
    const answer = await repair('a', 'rebuild_record');
    expect(answer).toMatchObject({ applied: true, record: { status: 'queued', lease: null, attempt: 1 } });
    expect(await findings()).toEqual([]);
  });

  it('is claimed at once when it is ready, with its args', async () => {
    await world.admit('a', { taskId: 'a', queue: 'later', args: '{"n":1}' });
    tamper(OOPS('a'));
    const remembering = await world.replica();
    const other = await openWorker(remembering, { serves: subscription({ queues: ['later'] }) });
    repairs = new Repairs(remembering.authority, new Auditor(remembering.authority, () => 0));
    const claimed = published(remembering, 'a', 'reeve.task.claimed');
    await repair('a', 'rebuild_record');
    await claimed;
    const { admission, ...record } = other.sink.claimed[0]?.record ?? { admission: undefined };
    expect(record).toMatchObject({ status: 'running', lastEvent: 3 });
    expect(admission?.application.argsJson).toBe('{"n":1}');
    expect(await findings()).toEqual([]);
    remembering.kill();
    await remembering.authority.stop();
  });

  it('takes a record that was changed back to what its history says', async () => {
    await running('a');
    tamper(`UPDATE tasks SET record = '1f' || substr(record, 3) WHERE task_id = 'a'`);
    const answer = await repair('a', 'rebuild_record');
    expect(answer).toMatchObject({ applied: true, record: { status: 'running' } });
    expect(await findings()).toEqual([]);
  });

  it('is refused when the history is not whole, and says what would do', async () => {
    await running('a');
    tamper(`DELETE FROM history WHERE task_order = ${order('a')} AND last_number = 2`);
    expect(await repair('a', 'rebuild_record')).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: 'accept_record' } },
    });
    expect(await world.eventTypes('a')).not.toContain('repaired');
  });

  it('counts a child that ended as ended', async () => {
    const parent = await world.admit('parent', { taskId: 'parent' });
    const link = { taskId: 'parent', generationId: parent.generationId, attached: true };
    await world.admit('child', { taskId: 'child', policy: { parent: link } });
    await world.cancel('child');
    tamper(OOPS('child'), 'UPDATE children SET live = 1', 'UPDATE family_counts SET live_children = 1');
    await repair('child', 'rebuild_record');
    expect(await store.familyCounts(['parent'])).toEqual([{ liveChildren: 0, unsatisfied: 0 }]);
    expect(await findings()).toEqual([]);
  });
});

describe('accept_record', () => {
  it('goes on from the record where the end of the history is lost', async () => {
    await running('a');
    const { lastEvent, revision } = await world.stored('a');
    tamper(`DELETE FROM history WHERE task_order = ${order('a')} AND last_number = ${String(lastEvent)}`);
    expect(await world.cancel('a')).toMatchObject({ refusal: { reason: 'RECORD_DAMAGED' } });
    const answer = await repair('a', 'accept_record');
    expect(answer).toMatchObject({ applied: true, record: { status: 'running', lastEvent: lastEvent + 1, revision } });
    expect(await findings()).toEqual([]);
    expect(await worker.say('a', 'completed')).toMatchObject({ kind: 'judged' });
    expect((await world.stored('a')).status).toBe('completed');
    expect(await findings()).toEqual([]);
  });

  it('goes on where a commit cannot be read, and gives no number again', async () => {
    await running('a');
    await worker.say('a', { kind: 'checkpoint', checkpointJson: '{"at":1}' });
    const { checkpointEvent, epoch } = await world.stored('a');
    tamper(
      `UPDATE history SET events = '1[oops' WHERE task_order = ${order('a')} AND last_number = ${String(checkpointEvent)}`,
      `UPDATE tasks SET version = 1, record = (SELECT record FROM tasks WHERE task_id = 'a') WHERE task_id = 'a'`,
    );
    const answer = await repair('a', 'accept_record');
    // What it can no longer be handed is not promised any more.
    expect(answer).toMatchObject({ applied: true, record: { epoch, checkpointEvent: null } });
    expect(await findings()).toEqual([]);
    expect(await world.cancel('a', 0)).toMatchObject({ kind: 'applied' });
  });

  it('makes peace with a history that somebody has changed', async () => {
    await running('a');
    await worker.say('a', { kind: 'output', output: outputOf('{"page":1}') }, 'completed');
    tamper(`UPDATE history SET events = replace(events, '{"page":1}', '{"page":2}') WHERE events LIKE '%{"page":1}%'`);
    expect(await findings()).toEqual(['a chain.link']);
    expect(await repair('a', 'accept_record')).toMatchObject({ applied: true, record: { status: 'completed' } });
    expect(await findings()).toEqual([]);
    const resume = { kind: 'resume', newGenerationId: 'g2', spareGenerationId: 'g2', inputJson: null } as const;
    expect(await world.apply({ taskId: 'a', intent: { ...resume, cause: causeOf('operator') } })).toMatchObject({
      kind: 'applied',
      after: { generation: 2, status: 'queued' },
    });
    expect(await findings()).toEqual([]);
  });

  it('never puts a task behind a claim that its history has seen', async () => {
    await world.admit('a', { taskId: 'a' });
    const [before] = rows();
    await world.apply({
      taskId: 'a',
      intent: { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') },
    });
    const revision = (await world.stored('a')).revision;
    // The record as it was before, over a history that has gone on.
    const db = new Database(path);
    db.prepare('UPDATE tasks SET version = 1, record = ?').run(before);
    db.close();
    const answer = await repair('a', 'accept_record');
    expect(answer).toMatchObject({ applied: true, record: { status: 'queued', revision, lastEvent: 4 } });
    expect(await findings()).toEqual([]);
  });

  it('needs a record that can be read', async () => {
    await world.admit('a', { taskId: 'a' });
    tamper(OOPS('a'), `UPDATE history SET events = '1[oops'`);
    const answer = { kind: 'refused', refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: '' } } };
    expect(await repair('a', 'accept_record')).toMatchObject(answer);
    expect(await repair('a', 'rebuild_record')).toMatchObject(answer);
  });

  function rows(): string[] {
    const db = new Database(path);
    const records = db.prepare<[], string>('SELECT record FROM tasks').pluck().all();
    db.close();
    return records;
  }
});

describe('reindex', () => {
  it('writes anew what follows from the record', async () => {
    const parent = await world.admit('parent', { taskId: 'parent', policy: { timeoutMs: 60_000 } });
    const link = { taskId: 'parent', generationId: parent.generationId, attached: true };
    await world.admit('child', { taskId: 'child', policy: { parent: link } });
    tamper(
      'UPDATE tasks SET ready_order = NULL, next_due_at = NULL',
      'DELETE FROM task_keys',
      'DELETE FROM children',
      'UPDATE family_counts SET live_children = 4',
    );
    expect(await findings()).toHaveLength(7);
    for (const taskId of ['parent', 'child']) expect(await repair(taskId, 'reindex')).toMatchObject({ applied: true });
    expect(await findings()).toEqual([]);
    expect(await store.findTaskId('default', 'child')).toBe('child');
    expect((await store.dueTasks(world.clock.nowMs() + 60_000, null, 10)).map(({ taskId }) => taskId)).toEqual([
      'parent',
    ]);
  });

  it('does not take a key from another task that owns it', async () => {
    await world.admit('a', { taskId: 'a' });
    await world.admit('b', { taskId: 'b' });
    tamper(`UPDATE task_keys SET task_order = ${order('b')} WHERE idempotency_key = 'a'`);
    await repair('a', 'reindex');
    expect([await store.findTaskId('default', 'a'), await store.findTaskId('default', 'b')]).toEqual(['a', 'b']);
  });

  it('is of no use to a damaged record', async () => {
    await world.admit('a', { taskId: 'a' });
    tamper(OOPS('a'));
    expect(await repair('a', 'reindex')).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'INVALID_TRANSITION', metadata: { mended_by: 'rebuild_record' } },
    });
  });
});

describe('redact_payload', () => {
  const text = () => {
    const db = new Database(path);
    const all = db.prepare<[], string>('SELECT events FROM history').pluck().all().join('\n');
    db.close();
    return all;
  };

  it('takes one payload out of a commit of several; the chain holds, and the fold still counts it', async () => {
    await running('a');
    await worker.say(
      'a',
      { kind: 'output', output: outputOf('{"kept":1}') },
      { kind: 'output', output: outputOf(SECRET_OUTPUT) },
      { kind: 'output', output: { ...outputOf(null), binaryBase64: 'c2VjcmV0', contentType: 'text/plain' } },
    );
    const links = (await world.real.readHistory('a', 0, 100, 1e9)).map(({ link }) => link);
    const { outputBytes } = (await world.stored('a')).lease ?? { outputBytes: 0 };
    const numbers = (await world.events('a')).flatMap(({ type, number }) => (type === 'task.output' ? [number] : []));
    for (const eventNumber of numbers.slice(1)) {
      expect(await repair('a', 'redact_payload', { eventNumber })).toMatchObject({ applied: true });
    }
    expect(text()).not.toMatch(/the output that must go|c2VjcmV0/);
    expect(text()).toContain('{"kept":1}');
    const events = await world.events('a');
    const outputs = events.flatMap((event) => (event.type === 'task.output' ? [event.data] : []));
    expect(outputs.map(({ outputJson, binaryBase64 }) => [outputJson, binaryBase64])).toEqual([
      ['{"kept":1}', null],
      ['{"redacted":true}', null],
      ['{"redacted":true}', null],
    ]);
    expect(events.slice(-2).map((event) => event.data)).toMatchObject(
      numbers.slice(1).map((redacted) => ({ repair: 'redact_payload', redacted })),
    );
    expect((await world.stored('a')).lease?.outputBytes).toBe(outputBytes);
    expect((await world.real.readHistory('a', 0, links.length, 1e9)).map(({ link }) => link)).toEqual(links);
    expect(await findings()).toEqual([]);
    await worker.say('a', 'completed');
    expect(await findings()).toEqual([]);
  });

  it('takes a result out of a task that is over, once', async () => {
    await running('a');
    await worker.say('a', { kind: 'completed', resultJson: '{"secret":1}', ending: null });
    const { resultEvent } = await world.stored('a');
    const eventNumber = resultEvent ?? 0;
    expect(await repair('a', 'redact_payload', { eventNumber })).toMatchObject({ applied: true });
    expect(await world.authority.reads.event('a', eventNumber)).toMatchObject({
      value: { event: { data: { resultJson: '{"redacted":true}' } } },
    });
    expect(await repair('a', 'redact_payload', { eventNumber })).toMatchObject({ applied: false });
    expect(await findings()).toEqual([]);
  });

  it('cannot be used to change anything else unseen', async () => {
    await running('a');
    await worker.say('a', { kind: 'output', output: outputOf(SECRET_OUTPUT) });
    const eventNumber = (await world.stored('a')).lastEvent;
    await repair('a', 'redact_payload', { eventNumber });
    tamper(
      `UPDATE history SET events = replace(events, '"2', '"3') WHERE events LIKE '2[[0,"%'
            AND events <> replace(events, '"2', '"3')`
        .replaceAll('"2', hashStart())
        .replaceAll('"3', '"zz'),
    );
    expect(await findings()).toContain('a chain.link');
  });

  it('is refused for what has none, and for no event at all', async () => {
    await running('a');
    for (const eventNumber of [1, 2, 99]) {
      expect(await repair('a', 'redact_payload', { eventNumber })).toMatchObject({
        kind: 'refused',
        refusal: { reason: 'INVALID_TRANSITION' },
      });
    }
  });

  function hashStart(): string {
    const row = text()
      .split('\n')
      .find((line) => line.startsWith('2[[0,'));
    return row?.slice(5, 8) ?? 'none';
  }
});

it('a task that keeps changing is told to be contended, and nothing is written half', async () => {
  await world.admit('a', { taskId: 'a' });
  tamper('UPDATE tasks SET ready_order = NULL');
  let writes = 0;
  world.probe.beforeCommit = async (batch) => {
    if (batch.plans.every((plan) => plan.repairs === undefined)) return;
    writes += 1;
    // Another writer, behind the back of this process.
    tamper(`UPDATE tasks SET record = record || ' ', seal = NULL WHERE task_id = 'a'`);
  };
  expect(await repair('a', 'reindex')).toMatchObject({ kind: 'refused', refusal: { reason: 'CONTENTION' } });
  expect(writes).toBe(8);
  world.probe.beforeCommit = () => Promise.resolve();
  expect(await world.eventTypes('a')).toEqual(['submitted']);
});

function outputOf(outputJson: string | null) {
  return { outputJson, binaryBase64: null, contentType: null, truncated: false };
}
