// Kill -9 in the middle of purges and of the sweep behind them: a task is there whole or purged whole, what was
// acknowledged is purged, nothing is given twice, and the next run sweeps what this one left.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { fold } from '../../src/kernel/fold.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitBatch } from '../../src/store/commit-plan.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { sweepAll } from '../contract/purge-contract.js';
import { cancelled, claimed, outputOf, planOf, purgeOf, reported, submitted } from '../contract/sample-plans.js';
import { historyOf } from '../contract/store-under-test.js';

const ROUNDS = 12;
const BATCHES_PER_ROUND = 40;
/** More rows than one step of the sweep removes. */
const INTENTS_OF_LARGE_TASK = 1_500;

interface Sent extends CommitBatch {
  readonly purges?: TaskRecord;
}

/** Each pair of batches makes a task and ends it, then purges it; between them are steps of the sweep. */
function batchesOf(round: number): readonly Sent[] {
  const sent: Sent[] = [];
  for (let at = 0; at < BATCHES_PER_ROUND; at++) {
    const name = `r${String(round)}-b${String(at)}`;
    const task = submitted({ taskId: name });
    const claim = claimed(task.record);
    const said = reported(claim.record, { kind: 'accepted' }, { kind: 'started' }, outputOf('"x"'));
    const asked = cancelled(said.record);
    const end = reported(asked.record, { kind: 'cancelled', reason: null, ending: null });
    const intents = at % 20 === 3 ? INTENTS_OF_LARGE_TASK : 2;
    const ledger = Array.from({ length: intents }, (_, key) => ({
      taskId: name,
      intentKey: `i${String(key)}`,
      contentHash: 'h',
      answerJson: '{}',
    }));
    const plans = [task, claim, said, asked, end].map(({ plan }) => plan);
    sent.push({ batchId: `${name} made`, plans: [...plans, planOf({ ledger })] });
    sent.push({ batchId: `${name} purged`, plans: [purgeOf(end.record)], purges: end.record });
    if (at % 3 !== 0) sent.push({ batchId: `${name} swept`, plans: [] });
  }
  return sent;
}

async function killAfter(path: string, sent: readonly Sent[], answers: number): Promise<ReadonlySet<string>> {
  const script = fileURLToPath(new URL('./crash-writer.mjs', import.meta.url));
  const child: ChildProcess = fork(script, [path], { serialization: 'advanced' });
  const exited = once(child, 'exit');
  await once(child, 'message');
  const acknowledged = new Set<string>();
  child.on('message', ({ batchId, error }: { readonly batchId: string; readonly error?: string }) => {
    acknowledged.add(error === undefined ? batchId : `${batchId} failed: ${error}`);
    if (acknowledged.size === answers) child.kill('SIGKILL');
  });
  for (const { batchId, plans } of sent) child.send({ batchId, plans }, () => undefined);
  await exited;
  return acknowledged;
}

async function isPurged(store: TaskStore, record: TaskRecord): Promise<boolean | null> {
  const { taskId, idempotencyKey, namespace } = record.admission;
  const [task] = await store.loadTasks([taskId]);
  const events = await historyOf(store, taskId);
  if (task === null || task === undefined) return null;
  expect(await store.findTaskId(namespace, idempotencyKey)).toBe(taskId);
  if (task.kind === 'purged') {
    expect(events).toEqual([]);
    expect(task.tombstone.lastEvent).toBe(record.lastEvent);
    return true;
  }
  if (task.kind !== 'task') throw new Error(`${taskId} is damaged`);
  expect(
    fold(
      record.admission,
      events.map(({ event }) => event),
    ),
  ).toEqual(task.record);
  return false;
}

/** Rows of tasks that are not there any more, by table. */
function leftovers(path: string): Readonly<Record<string, number>> {
  const db = new Database(path, { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  const count = (table: string): number =>
    db
      .prepare<[], number>(`SELECT count(*) FROM ${table} WHERE task_order NOT IN (SELECT task_order FROM tasks)`)
      .pluck()
      .get() ?? 0;
  const tables = ['history', 'admissions', 'intent_keys', 'diagnostics', 'purging'];
  const left = Object.fromEntries(tables.map((table) => [table, count(table)]));
  db.close();
  return left;
}

it(`leaves every task whole or purged, ${String(ROUNDS)} times on one file`, async () => {
  const path = join(temporaryFolder(), 'reeve.db');
  const NOTHING = { history: 0, admissions: 0, intent_keys: 0, diagnostics: 0, purging: 0 };
  let sweptLater = 0;
  let head = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const sent = batchesOf(round);
    const acknowledged = await killAfter(path, sent, 3 + ((round * 13) % 100));
    expect([...acknowledged].filter((answer) => answer.includes('failed'))).toEqual([]);
    const left = leftovers(path);
    if ((left['purging'] ?? 0) > 0) sweptLater += 1;
    else expect(left).toEqual(NOTHING);
    const store = await openSqliteStore({ path });
    let horizonOfPurged = 0;
    for (const { purges, batchId } of sent) {
      if (purges === undefined) continue;
      const purged = await isPurged(store, purges);
      if (acknowledged.has(batchId)) expect(purged).toBe(true);
      if (purged === true) horizonOfPurged += 1;
    }
    const bounds = await store.eventBounds();
    // Sequences go on where they were, whatever was purged from the end.
    expect(bounds.head).toBeGreaterThanOrEqual(head + acknowledged.size / 3);
    expect(bounds.horizon).toBeLessThanOrEqual(bounds.head);
    expect(bounds.purges).toBeGreaterThanOrEqual(horizonOfPurged);
    await sweepAll(store);
    const [verdict] = await store.commit({
      batchId: 'next',
      plans: [submitted({ taskId: `next ${String(round)}` }).plan],
    });
    if (verdict?.kind !== 'committed') throw new Error('the next task was not admitted');
    expect(verdict.firstSequences[0]).toBe(bounds.head + 1);
    head = bounds.head;
    await store.close();
    expect(leftovers(path)).toEqual(NOTHING);
  }
  // A kill between a purge and its sweep was among them, or this proves nothing of it.
  expect(sweptLater).toBeGreaterThan(0);
}, 60_000);
