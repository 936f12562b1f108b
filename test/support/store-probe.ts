// A store between the authority and the real one: it counts what is committed, holds commits at a gate, and fails as it
// is told. Every method not named here is the real store's.

import type { CommitBatch, CommitPlan, PlanVerdict } from '../../src/store/commit-plan.js';
import { StoreError } from '../../src/store/store-error.js';
import type { PurgedTask, StoredTask, TaskStore } from '../../src/store/task-store.js';
import { Signal } from './turns.js';

/** What the next commit does instead of what it should. `lost_answer`: it is written, and then nobody says so. */
export type CommitFault = 'unavailable' | 'lost_answer' | 'lost_request' | 'fatal';

type Fault = CommitFault | 'none';

export interface StoreProbe {
  readonly store: TaskStore;
  /** Batches that reached the real store, in order. */
  readonly batches: CommitBatch[];
  readonly plans: () => readonly CommitPlan[];
  /** How often each method was called. */
  readonly calls: ReadonlyMap<string, number>;
  /** From now on commits wait until `release`. Resolves when one is waiting. */
  hold(): Promise<CommitBatch>;
  release(): void;
  /** The faults of the next commits, one each. */
  failNext(...faults: CommitFault[]): void;
  /** So many more commits go well, and then one fails. */
  failAfter(commits: number, fault: CommitFault): void;
  /** No fault is left to come. */
  heal(): void;
  /** While true every call but `secret` and `close` throws `unavailable`. */
  down: boolean;
  /** The store must not be used any more, and says so by itself. */
  die: (error: StoreError) => void;
  /** While true `outcomeOf` cannot tell. */
  outcomeHidden: boolean;
  /** These tasks read as damaged. */
  readonly damaged: Set<string>;
  /** Runs before a commit is passed on, outside the real store: another writer's chance. */
  beforeCommit: (batch: CommitBatch) => Promise<void>;
  /** A plan that gets a verdict here is lost by it, and never reaches the real store. */
  overrule: (plan: CommitPlan) => PlanVerdict | null;
}

export function probeStore(real: TaskStore): StoreProbe {
  const calls = new Map<string, number>();
  const outcomes = new Map<string, readonly PlanVerdict[]>();
  let faults: Fault[] = [];
  let gate: { readonly waiting: Signal<CommitBatch>; readonly open: Signal } | null = null;

  const probe: StoreProbe = {
    store: undefined as never,
    batches: [],
    plans: () => probe.batches.flatMap((batch) => batch.plans),
    calls,
    hold() {
      gate = { waiting: new Signal(), open: new Signal() };
      return gate.waiting.reached;
    },
    release() {
      gate?.open.reach();
      gate = null;
    },
    failNext: (...next) => void (faults = [...faults, ...next]),
    failAfter: (commits, fault) => void (faults = [...faults, ...new Array<Fault>(commits).fill('none'), fault]),
    heal: () => void (faults = []),
    down: false,
    die: () => undefined,
    outcomeHidden: false,
    damaged: new Set(),
    beforeCommit: () => Promise.resolve(),
    overrule: () => null,
  };

  /** Settles with every commit begun so far: a ready read must see them (the contract of the port). */
  let begun: Promise<unknown> = Promise.resolve();

  const commit = (batch: CommitBatch): Promise<readonly PlanVerdict[]> => {
    const committing = commitAsTold(batch);
    begun = Promise.allSettled([begun, committing]);
    return committing;
  };

  const commitAsTold = async (batch: CommitBatch): Promise<readonly PlanVerdict[]> => {
    if (gate !== null) {
      gate.waiting.reach(batch);
      await gate.open.reached;
    }
    await probe.beforeCommit(batch);
    const fault = faults.shift();
    if (probe.down || fault === 'unavailable') throw new StoreError('unavailable', 'told to fail');
    if (fault === 'fatal') throw new StoreError('fatal', 'told to end');
    if (fault === 'lost_request') throw new StoreError('outcome_unknown', 'told to lose the request');
    const ruled = batch.plans.map((plan) => probe.overrule(plan));
    const judged = await real.commit({ ...batch, plans: batch.plans.filter((_, at) => ruled[at] === null) });
    const rest = judged.values();
    const verdicts = ruled.map((verdict) => verdict ?? (rest.next().value as PlanVerdict));
    probe.batches.push(batch);
    outcomes.set(batch.batchId, verdicts);
    if (fault === 'lost_answer') throw new StoreError('outcome_unknown', 'told to lose the answer');
    return verdicts;
  };

  const outcomeOf = async (batch: CommitBatch): Promise<readonly PlanVerdict[] | null> => {
    if (probe.down || probe.outcomeHidden) throw new StoreError('unavailable', 'cannot tell');
    return outcomes.get(batch.batchId) ?? null;
  };

  const asRead = <Task extends StoredTask | PurgedTask | null>(task: Task): Task | StoredTask =>
    task !== null && probe.damaged.has(task.taskId)
      ? { kind: 'damaged', taskId: task.taskId, order: task.order, detail: 'told to be' }
      : task;

  const own: Partial<TaskStore> = {
    commit,
    outcomeOf,
    onDeath: (listener) => void (probe.die = listener),
    loadTasks: async (taskIds) => (await real.loadTasks(taskIds)).map(asRead),
    readyTasks: async (...args) => {
      await begun;
      return real.readyTasks(...args);
    },
  };

  const store = new Proxy(real, {
    get(target, name) {
      const method: unknown = Reflect.get(own, name) ?? Reflect.get(target, name);
      return (...args: unknown[]) => {
        calls.set(String(name), (calls.get(String(name)) ?? 0) + 1);
        if (
          probe.down &&
          name !== 'secret' &&
          name !== 'incarnation' &&
          name !== 'close' &&
          name !== 'commit' &&
          name !== 'outcomeOf'
        ) {
          return Promise.reject(new StoreError('unavailable', 'told to be down'));
        }
        return (method as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return Object.assign(probe, { store });
}
