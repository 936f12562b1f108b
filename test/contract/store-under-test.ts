// A store as the contract suite sees it: how to get an empty one, and short forms of what every test does with it.

import { expect } from 'vitest';
import type { CommitPlan, PlanVerdict } from '../../src/store/commit-plan.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { StoredEvent, TaskStore } from '../../src/store/task-store.js';
import type { Step } from './sample-plans.js';

export interface Engine {
  readonly name: string;
  /** A new, empty store; closed and removed after the test. */
  open(): Promise<TaskStore>;
}

/** Gives each test of a describe block a store of its own. */
export type StoreSource = () => TaskStore;

let batches = 0;

export async function commit(store: TaskStore, ...plans: readonly CommitPlan[]): Promise<readonly PlanVerdict[]> {
  batches += 1;
  return store.commit({ batchId: `batch-${String(batches)}`, plans });
}

/** Commits steps that must all succeed; the records they leave. */
export async function committed(store: TaskStore, ...steps: readonly Step[]): Promise<readonly TaskRecord[]> {
  const verdicts = await commit(store, ...steps.map(({ plan }) => plan));
  for (const verdict of verdicts) {
    if (verdict.kind !== 'committed') throw new Error(`not committed: ${JSON.stringify(verdict)}`);
  }
  return steps.map(({ record }) => record);
}

export async function committedOne(store: TaskStore, step: Step): Promise<TaskRecord> {
  await committed(store, step);
  return step.record;
}

export async function recordOf(store: TaskStore, taskId: string): Promise<TaskRecord | null> {
  const [task] = await store.loadTasks([taskId]);
  if (task === null || task === undefined || task.kind === 'purged') return null;
  if (task.kind === 'damaged') throw new Error(`${taskId} is damaged: ${task.detail}`);
  return task.record;
}

export async function historyOf(store: TaskStore, taskId: string): Promise<readonly StoredEvent[]> {
  return store.readHistory(taskId, 0, 1_000_000, 1_000_000_000);
}

export function kindsOf(verdicts: readonly PlanVerdict[]): readonly string[] {
  return verdicts.map(({ kind }) => kind);
}

/** The verdict of a plan whose records begin at these sequences; every record has a link of its own. */
export function writtenAt(...firstSequences: readonly number[]): PlanVerdict {
  const links = firstSequences.map(() => expect.stringMatching(/^[0-9a-f]{64}$/) as string);
  return { kind: 'committed', firstSequences, links };
}
