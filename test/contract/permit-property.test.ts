// Whatever is admitted, claimed, ended, lost, held, delayed or moved, in whatever batches: never more run with a permit
// than may, of each route as many are ready as there is room for, and nobody is forgotten. For tasks of one permit there is
// a model that needs no history: who is ready are the first of their route that queue.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judge } from '../../src/kernel/decide.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { isTerminal } from '../../src/kernel/status.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { memoryEngine, sqliteEngine } from './engines.js';
import {
  NOW,
  OPERATOR,
  RULES,
  type Step,
  type TaskShape,
  changed,
  claimed,
  completed,
  submitted,
} from './sample-plans.js';
import { checkPermits } from './permit-truth.js';
import { commit } from './store-under-test.js';

const SHAPES: readonly TaskShape[] = [
  { concurrencyKey: 'k' },
  { concurrencyKey: 'k' },
  { concurrencyKey: 'two' },
  { capabilities: ['gpu'] },
  { concurrencyKey: 'k', capabilities: ['gpu'] },
  { concurrencyKey: 'two', capabilities: ['gpu'] },
  { concurrencyKey: 'k', queue: 'other' },
  { concurrencyKey: 'two', queue: 'other' },
  {},
];

type Move = (town: Town) => Step | null;

const anyTask = fc.integer({ min: 0, max: 11 });
const priority = fc.integer({ min: -2, max: 2 });

const admission = fc
  .tuple(fc.integer({ min: 0, max: SHAPES.length - 1 }), priority, fc.integer({ min: 0, max: 9 }), fc.boolean())
  .map(
    ([shape, urgency, later, delayed]): Move =>
      (town) =>
        town.admit({
          ...SHAPES[shape],
          priority: urgency,
          at: NOW + later,
          ...(delayed && later === 0 ? { notBeforeAt: NOW + 1_000 } : {}),
        }),
  );

/** Judged on the newest record, whatever it is: what is refused makes no step. */
function deciding(make: (record: TaskRecord) => Intent | null) {
  return anyTask.map((at): Move => (town) => {
    const record = town.recordAt(at);
    const intent = record === null ? null : make(record);
    if (record === null || intent === null) return null;
    const step = changed(record, (draft) => judge(draft, intent), NOW + 5_000);
    return step.record === record ? null : step;
  });
}

const claim = fc.nat({ max: 11 }).map((at): Move => (town) => {
  const record = town.recordAt(at);
  return record?.status === 'queued' && record.notBeforeAt === null ? claimed(record) : null;
});
const completion = anyTask.map((at): Move => (town) => {
  const record = town.recordAt(at);
  return record?.status === 'running' ? completed(record) : null;
});
const cause = OPERATOR;
const moves = fc.oneof(
  { weight: 6, arbitrary: admission },
  { weight: 8, arbitrary: claim },
  { weight: 4, arbitrary: completion },
  {
    weight: 2,
    arbitrary: deciding(({ lease }) => lease && { kind: 'session_lost', sessionId: lease.sessionId, cause }),
  },
  {
    weight: 2,
    arbitrary: deciding(({ lease }) => {
      const ending = { error: { code: 'x', message: '', retryable: true, detailsJson: null } };
      const rest = { exitCode: null, errorDetail: null, invocationId: null, resultRef: null, evidenceRefs: [] };
      const proof = lease && { epoch: lease.epoch, sessionId: null };
      return {
        kind: 'settle',
        outcome: 'failed',
        resultJson: null,
        ending: { ...ending, ...rest },
        lease: proof,
        authoritativeEvent: null,
        chance: 0,
        cause,
      };
    }),
  },
  { weight: 2, arbitrary: deciding(() => ({ kind: 'request_cancellation', graceMs: null, cause })) },
  { weight: 2, arbitrary: deciding(() => ({ kind: 'suspend', lease: null, cause })) },
  {
    weight: 3,
    arbitrary: deciding((record) => {
      const next = `${record.admission.taskId}-${String(record.generation + 1)}`;
      return { kind: 'resume', newGenerationId: null, spareGenerationId: next, inputJson: null, cause };
    }),
  },
  { weight: 3, arbitrary: deciding(() => ({ kind: 'tick', quietSince: 0, chance: 0 })) },
  {
    weight: 2,
    arbitrary: deciding(({ policy }) => {
      const values = { ...policy, priority: -policy.priority + 1 };
      return { kind: 'update_policy', fields: ['priority'], values, cause };
    }),
  },
);
const lives = fc.array(fc.array(moves, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 25 });

class Town {
  private readonly records = new Map<string, TaskRecord>();
  private readonly ids: string[] = [];
  /** What the batch in the making would leave. */
  private pending = new Map<string, TaskRecord>();

  constructor(private readonly store: TaskStore) {}

  admit(shape: TaskShape): Step | null {
    return this.ids.length + this.pending.size < 12 ? submitted(shape) : null;
  }

  recordAt(at: number): TaskRecord | null {
    const taskId = this.ids[at % Math.max(this.ids.length, 1)];
    if (taskId === undefined || this.pending.has(taskId)) return null;
    return this.records.get(taskId) ?? null;
  }

  /** One plan each; a claim of a task whose permit is full may be refused, and nothing else is. */
  async act(batch: readonly Move[]): Promise<void> {
    this.pending = new Map();
    const steps: Step[] = [];
    for (const move of batch) {
      const step = move(this);
      if (step === null || step.plan.records.some(({ events }) => events.length === 0)) continue;
      steps.push(step);
      this.pending.set(step.record.admission.taskId, step.record);
    }
    const verdicts = await commit(this.store, ...steps.map(({ plan }) => plan));
    steps.forEach(({ record }, index) => {
      const verdict = verdicts[index];
      const { taskId } = record.admission;
      if (verdict?.kind !== 'committed') {
        expect(verdict).toMatchObject({ kind: 'conflict', subject: 'permit' });
        expect(record.status).toBe('running');
        return;
      }
      if (!this.records.has(taskId)) this.ids.push(taskId);
      this.records.set(taskId, record);
    });
    this.pending = new Map();
  }

  check(): Promise<void> {
    return checkPermits(this.store, [...this.records.values()], RULES);
  }

  /** In the end everything is over, and no permit is left. */
  async end(): Promise<void> {
    for (const [taskId, record] of this.records) {
      if (isTerminal(record.status)) continue;
      const cancel = { kind: 'request_cancellation', graceMs: null, cause } as const;
      const running = record.status === 'running';
      const end = running ? completed(record) : changed(record, (draft) => judge(draft, cancel));
      expect(await commit(this.store, end.plan)).toMatchObject([{ kind: 'committed' }]);
      this.records.set(taskId, end.record);
      await this.check();
    }
    expect(await this.store.permits(null, 9)).toEqual([]);
  }
}

describe.each([memoryEngine, sqliteEngine])('permits on $name', (engine) => {
  it('are never run with by too many, and never idle while somebody waits', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(lives, async (batches) => {
        const store = await engine.open();
        try {
          const town = new Town(store);
          for (const batch of batches) {
            await town.act(batch);
            await town.check();
          }
          await town.end();
        } finally {
          await store.close();
        }
      }),
      { numRuns: engine.name === 'memory' ? 300 : 25 },
    );
  });
});
