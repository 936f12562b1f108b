// Two stores, the same random plans in the same batches: they must agree on every verdict and on everything read
// afterwards. The small world makes plans collide: few tasks, few keys, few sessions, decisions of any age.

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { CommitPlan, SessionWrite } from '../../src/store/commit-plan.js';
import type { EventScope } from '../../src/store/event-pages.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { memoryEngine, sqliteEngine } from './engines.js';
import {
  NOW,
  type Step,
  type TaskShape,
  cancelled,
  claimed,
  completed,
  endOf,
  joined,
  planOf,
  purgeOf,
  sessionRow,
  submitted,
} from './sample-plans.js';
import { historyOf } from './store-under-test.js';

/** What decisions are made on: any record that was ever proposed for a task, whether it was committed or not. */
type Memory = Map<string, TaskRecord[]>;
/** Null where there is nothing to decide on. */
type Part = (run: string, memory: Memory) => CommitPlan | null;

const few = fc.integer({ min: 0, max: 2 });
const age = fc.constantFrom(0, 0, 0, 1, 2);
const taskOf = (run: string, task: number): string => `${run}-t${String(task)}`;
const sessionOf = (run: string, session: number): string => `${run}-s${String(session)}`;

function remembered(memory: Memory, taskId: string, back: number): TaskRecord | null {
  const known = memory.get(taskId) ?? [];
  return known[Math.max(known.length - 1 - back, 0)] ?? null;
}

function proposed(memory: Memory, { plan, record }: Step): CommitPlan {
  const { taskId } = record.admission;
  memory.set(taskId, [...(memory.get(taskId) ?? []), record]);
  return plan;
}

/**
 * What tasks share and wait for: keys of one and of two permits, and a capability, alone and together. A task needs the
 * same whoever proposes it: decisions are made on records of every proposal.
 */
const NEEDS: readonly TaskShape[] = [
  {},
  { concurrencyKey: 'k' },
  { concurrencyKey: 'two', priority: 1 },
  { capabilities: ['gpu'] },
  { concurrencyKey: 'k', capabilities: ['gpu'], priority: 2 },
];
const needsOf = (run: string, task: number): TaskShape => NEEDS[(Number(run.slice(3)) + task) % NEEDS.length] ?? {};

const insert = fc.tuple(few, few).map(([task, key]): Part => (run, memory) => {
  const shape = { ...needsOf(run, task), taskId: taskOf(run, task), key: `${run}-k${String(key)}` };
  return proposed(memory, submitted(shape));
});

const update = fc.tuple(few, age, few, fc.boolean()).map(([task, back, session, cancels]): Part => (run, memory) => {
  const record = remembered(memory, taskOf(run, task), back);
  if (record === null) return null;
  if (cancels && record.cancellation === null && record.finishedAt === null) return proposed(memory, cancelled(record));
  if (record.status === 'queued') return proposed(memory, claimed(record, sessionOf(run, session)));
  if (record.status === 'running') return proposed(memory, completed(record));
  return null;
});

const recordRead = fc.tuple(few, fc.integer({ min: 1, max: 3 }), fc.boolean()).map(
  ([task, version, ofBatch]): Part =>
    (run) =>
      planOf({ recordReads: [{ taskId: taskOf(run, task), version, ...(ofBatch ? { ofBatch } : {}) }] }),
);

const sessionRead = fc.tuple(few, fc.integer({ min: 1, max: 2 }), fc.constantFrom('live', 'not_gone')).map(
  ([session, attachment, needs]): Part =>
    (run) =>
      planOf({ sessionReads: [{ sessionId: sessionOf(run, session), attachment, needs }] }),
);

const kinds = fc.constantFrom('open', 'open', 'attach', 'renew', 'drain', 'expire', 'end');
const sessionWrite = fc
  .tuple(few, fc.integer({ min: 1, max: 2 }), kinds, few)
  .map(([session, attachment, kind, time]): Part => (run) => {
    const sessionId = sessionOf(run, session);
    const expiresAt = NOW + time;
    const writes: Readonly<Record<typeof kind, SessionWrite>> = {
      open: { kind: 'open', session: sessionRow(sessionId, { expiresAt }) },
      attach: {
        kind: 'attach',
        sessionId,
        from: attachment,
        expiresAt,
        ttlMs: 30_000,
        lingerMs: null,
        workerName: 'worker-1',
        helloJson: '{}',
      },
      renew: { kind: 'renew', sessionId, attachment, expiresAt },
      drain: { kind: 'drain', sessionId, attachment },
      expire: { kind: 'expire', sessionId, end: endOf(NOW + 1, { cause: 'expired' }) },
      end: { kind: 'end', sessionId, attachment, end: endOf() },
    };
    return planOf({ sessions: [writes[kind]] });
  });

const ledger = fc.tuple(few, few).map(([task, key]): Part => (run) => {
  const entry = { taskId: taskOf(run, task), intentKey: `i${String(key)}`, contentHash: 'h', answerJson: '{}' };
  return planOf({ ledger: [entry] });
});

const diagnostic = fc.tuple(few, few).map(
  ([task, epoch]): Part =>
    (run) =>
      planOf({ diagnostics: [{ taskId: taskOf(run, task), epoch, at: NOW, text: 'said' }] }),
);

const purge = fc.tuple(few, age).map(([task, back]): Part => (run, memory) => {
  const record = remembered(memory, taskOf(run, task), back);
  return record === null || record.finishedAt === null ? null : purgeOf(record);
});

const part = fc.oneof(
  { weight: 4, arbitrary: insert },
  { weight: 6, arbitrary: update },
  { weight: 2, arbitrary: recordRead },
  { weight: 2, arbitrary: sessionRead },
  { weight: 3, arbitrary: sessionWrite },
  { weight: 2, arbitrary: ledger },
  { weight: 1, arbitrary: diagnostic },
  { weight: 2, arbitrary: purge },
);
const batches = fc.array(fc.array(fc.array(part, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 6,
});

/** Parts joined into one plan, unless it would write one thing twice, which is a defect and not a plan. */
function planFrom(parts: readonly Part[], run: string, memory: Memory): CommitPlan {
  let plan = planOf({});
  for (const make of parts) {
    const next = make(run, memory);
    if (next !== null && !overlaps(plan, next)) plan = joined(plan, next);
  }
  return plan;
}

function overlaps(one: CommitPlan, other: CommitPlan): boolean {
  const names = ({ records, sessions, ledger: entries }: CommitPlan): readonly string[] => [
    ...records.map((write) => (write.kind === 'insert' ? write.admission.taskId : write.taskId)),
    ...records.flatMap((write) => (write.kind === 'insert' ? [write.admission.idempotencyKey] : [])),
    ...sessions.map((write) => (write.kind === 'open' ? write.session.sessionId : write.sessionId)),
    ...entries.map(({ taskId, intentKey }) => `${taskId} ${intentKey}`),
  ];
  // A purge stands beside no write of a record, nor another purge.
  const [first, second] = [one, other].map(({ purge: gone, records }) => ({ gone: gone !== undefined, records }));
  if (first?.gone === true && (second?.gone === true || (second?.records.length ?? 0) > 0)) return true;
  if (second?.gone === true && (first?.records.length ?? 0) > 0) return true;
  const taken = new Set(names(one));
  return names(other).some((name) => taken.has(name));
}

const ROUTES = ['', 'gpu'].map((capability) => `default\nmain\nagent\nhost\n${capability}`);

async function everythingOf(store: TaskStore, run: string): Promise<unknown> {
  const three = [0, 1, 2];
  const tasks = three.map((task) => taskOf(run, task));
  const sessions = three.map((session) => sessionOf(run, session));
  const bounds = await store.eventBounds();
  const events: EventScope = { kind: 'queue', namespace: 'default', queue: null };
  return {
    bounds,
    events: await store.readEvents(events, Math.max(bounds.head - 40, 0), 1_000, 1e9),
    tasks: await store.loadTasks(tasks),
    ready: await Promise.all(ROUTES.map((route) => store.readyTasks(route, null, 1_000))),
    permits: await store.permits(null, 100),
    waits: await Promise.all(tasks.map((taskId) => store.permitWait(taskId))),
    keys: await Promise.all(three.map((key) => store.findTaskId('default', `${run}-k${String(key)}`))),
    histories: await Promise.all(tasks.map((taskId) => historyOf(store, taskId))),
    sessions: await Promise.all(sessions.map((sessionId) => store.loadSession(sessionId))),
    gone: await store.goneSessions(null, 1_000),
    leased: await Promise.all(sessions.map((sessionId) => store.tasksOfSession(sessionId, 0, 10))),
    diagnostics: await Promise.all(tasks.map((taskId) => store.readDiagnostics(taskId, 100))),
    ledger: await Promise.all(
      tasks.flatMap((taskId) => three.map((key) => store.findLedgerEntry(taskId, `i${String(key)}`))),
    ),
  };
}

describe('memory and sqlite', () => {
  let runs = 0;

  it('agree on every verdict and on everything read', async () => {
    const [memory, sqlite] = [await memoryEngine.open(), await sqliteEngine.open()];
    onTestFinished(() => sqlite.close());
    const verdictKinds = new Set<string>();
    await fc.assert(
      fc.asyncProperty(batches, async (given) => {
        runs += 1;
        const run = `run${String(runs)}`;
        const known: Memory = new Map();
        for (const [at, plansOfParts] of given.entries()) {
          const plans = plansOfParts.map((parts) => planFrom(parts, run, known));
          const batch = { batchId: `${run}-${String(at)}`, plans };
          const [expected, actual] = [await memory.commit(batch), await sqlite.commit(batch)];
          expect(actual).toEqual(expected);
          for (const { kind } of expected) verdictKinds.add(kind);
        }
        expect(plain(await everythingOf(sqlite, run))).toEqual(plain(await everythingOf(memory, run)));
      }),
      // Seeded: among this many runs each kind of verdict is met.
      { numRuns: 300, seed: 7 },
    );
    expect([...verdictKinds].sort()).toEqual(['committed', 'conflict', 'duplicate', 'repeated', 'task_id_taken']);
  });
});

/** Through JSON: a missing member and one that is undefined are the same here. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
