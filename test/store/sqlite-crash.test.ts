// Promise C1: what was acknowledged is there after kill -9, exactly once, and what was not is there whole or not at all.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { fold } from '../../src/kernel/fold.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitBatch, PlanVerdict } from '../../src/store/commit-plan.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { ListPage, TaskStore } from '../../src/store/task-store.js';
import { temporaryFolder } from '../contract/engines.js';
import { checkPermits } from '../contract/permit-truth.js';
import { RULES, type Step, claimed, completed, joined, submitted } from '../contract/sample-plans.js';
import { historyOf, recordOf } from '../contract/store-under-test.js';

const ROUNDS = 20;
const BATCHES_PER_ROUND = 60;

interface Sent extends CommitBatch {
  /** The steps whose plans the batch holds, the last one of each task. */
  readonly steps: readonly Step[];
}

interface Acknowledged {
  readonly batchId: string;
  readonly verdicts?: readonly PlanVerdict[];
}

/**
 * Each batch ends a task of the batch before, admits three, two of them in one plan, and claims the first: that one has
 * the permit of its key only since the other ended. The two others wait for a key that is never free.
 */
function batchesOf(round: number): readonly Sent[] {
  const sent: Sent[] = [];
  let running: Step | null = null;
  for (let at = 0; at < BATCHES_PER_ROUND; at++) {
    const fresh = ['a', 'b', 'c'].map((name) => {
      const concurrencyKey = name === 'a' ? `round ${round}` : 'taken';
      return submitted({ taskId: `r${round}-b${at}-${name}`, concurrencyKey });
    });
    const [one, two, three] = fresh;
    if (one === undefined || two === undefined || three === undefined) throw new Error('three were made');
    const claim = claimed(one.record);
    const end: Step | null = running && completed(running.record);
    const plans = [...(end === null ? [] : [end.plan]), one.plan, joined(two.plan, three.plan), claim.plan];
    sent.push({ batchId: `r${round}-b${at}`, plans, steps: [claim, two, three, ...(end === null ? [] : [end])] });
    running = claim;
  }
  return sent;
}

/** Sends everything at once and kills the process when so many answers have come. */
async function killAfter(path: string, sent: readonly Sent[], answers: number): Promise<readonly Acknowledged[]> {
  const script = fileURLToPath(new URL('./crash-writer.mjs', import.meta.url));
  const child: ChildProcess = fork(script, [path], { serialization: 'advanced' });
  const exited = once(child, 'exit');
  await once(child, 'message');
  const acknowledged: Acknowledged[] = [];
  child.on('message', (message: Acknowledged) => {
    acknowledged.push(message);
    if (acknowledged.length === answers) child.kill('SIGKILL');
  });
  for (const { batchId, plans } of sent) child.send({ batchId, plans }, () => undefined);
  await exited;
  return acknowledged;
}

async function allRecords(store: TaskStore): Promise<TaskRecord[]> {
  const all = { namespace: null, queue: null, statuses: null, actionKinds: null, labels: {}, descending: false };
  const records: TaskRecord[] = [];
  for (let after: number | null = null; ;) {
    const page: ListPage = await store.listTasks({ ...all, after, limit: 500, withArgs: true });
    for (const task of page.tasks) if (task.kind === 'task') records.push(task.record);
    if (page.next === null) return records;
    after = page.next;
  }
}

async function isThere(store: TaskStore, { record }: Step): Promise<boolean> {
  const stored = await recordOf(store, record.admission.taskId);
  return stored !== null && stored.lastEvent >= record.lastEvent;
}

describe('kill -9 in the middle of commits', () => {
  it(`loses nothing that was acknowledged, ${ROUNDS} times on one file`, async () => {
    const path = join(temporaryFolder(), 'reeve.db');
    const durable: Step[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const sent = batchesOf(round);
      const acknowledged = await killAfter(path, sent, 1 + ((round * 7) % 40));
      for (const { verdicts } of acknowledged) {
        expect(verdicts?.every(({ kind }) => kind === 'committed')).toBe(true);
      }
      const store = await openSqliteStore({ path });
      // Batches are whole, and they are there in the order in which they were sent.
      const whole: boolean[] = [];
      for (const { steps } of sent) {
        const there = await Promise.all(steps.map((step) => isThere(store, step)));
        expect(new Set(there).size).toBe(1);
        whole.push(there[0] === true);
      }
      expect(whole.lastIndexOf(true)).toBe(whole.indexOf(false) === -1 ? whole.length - 1 : whole.indexOf(false) - 1);
      expect(whole.filter(Boolean).length).toBeGreaterThanOrEqual(acknowledged.length);
      durable.push(...sent.filter((_, at) => whole[at]).flatMap(({ steps }) => steps));
      if (round % 10 === 9) await checkPermits(store, await allRecords(store), RULES);
      await store.close();
    }
    await checkAll(path, durable);
  }, 60_000);
});

async function checkAll(path: string, durable: readonly Step[]): Promise<void> {
  const store = await openSqliteStore({ path });
  const last = new Map(durable.map(({ record }) => [record.admission.taskId, record]));
  const sequences: number[] = [];
  for (const [taskId, record] of last) {
    const events = await historyOf(store, taskId);
    expect(await recordOf(store, taskId)).toEqual(record);
    expect(
      fold(
        record.admission,
        events.map(({ event }) => event),
      ),
    ).toEqual(record);
    expect(await store.findTaskId('default', record.admission.idempotencyKey)).toBe(taskId);
    sequences.push(...events.map(({ sequence }) => sequence));
  }
  expect(sequences.sort((left, right) => left - right)).toEqual(sequences.map((_, at) => at + 1));
  await store.close();
  const db = new Database(path, { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(db.prepare('SELECT count(*) FROM tasks').pluck().get()).toBe(last.size);
  db.close();
}
