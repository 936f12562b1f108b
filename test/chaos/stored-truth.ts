/**
 * Reads a whole store and checks, from its rows alone, what must hold of every task: numbers without gaps, declared
 * edges, one terminal fact per generation, a record that is the fold of its history, sequences that are unique.
 */
import { expect } from 'vitest';
import { isDeclaredEdge } from '../../src/kernel/edges.js';
import { fold } from '../../src/kernel/fold.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { isTerminal } from '../../src/kernel/status.js';
import type { StoredEvent, TaskStore } from '../../src/store/task-store.js';

const PAGE = 500;
const HISTORY_BYTES = 1_048_576;

export interface StoredLife {
  readonly record: TaskRecord;
  readonly history: readonly StoredEvent[];
}

/** Every task of the store by id, each checked. */
export async function storedTruth(store: TaskStore): Promise<Map<string, StoredLife>> {
  const lives = new Map<string, StoredLife>();
  const sequences = new Set<number>();
  let after: number | null = null;
  do {
    const page = await store.listTasks({
      namespace: null,
      queue: null,
      statuses: null,
      actionKinds: null,
      labels: {},
      descending: false,
      after,
      limit: PAGE,
      withArgs: true,
    });
    for (const task of page.tasks) {
      if (task.kind === 'damaged') throw new Error(`${task.taskId} is damaged: ${task.detail}`);
      const history = await wholeHistory(store, task.taskId);
      checkLife(task.record, history);
      for (const { sequence } of history) {
        expect(sequences.has(sequence), `sequence ${sequence} twice`).toBe(false);
        sequences.add(sequence);
      }
      lives.set(task.taskId, { record: task.record, history });
    }
    after = page.next;
  } while (after !== null);
  return lives;
}

async function wholeHistory(store: TaskStore, taskId: string): Promise<StoredEvent[]> {
  const history: StoredEvent[] = [];
  for (;;) {
    const page = await store.readHistory(taskId, history.at(-1)?.event.number ?? 0, PAGE, HISTORY_BYTES);
    if (page.length === 0) return history;
    history.push(...page);
  }
}

function checkLife(record: TaskRecord, history: readonly StoredEvent[]): void {
  const events = history.map(({ event }) => event);
  expect(fold(record.admission, events)).toEqual(record);
  const terminal = new Set<number>();
  let revision = 0;
  for (const [index, event] of events.entries()) {
    expect(event.number).toBe(index + 1);
    if (event.revision !== null) expect(event.revision).toBe(++revision);
    if (event.to === null) continue;
    expect(isDeclaredEdge(event.from, event.to), `${String(event.from)} → ${event.to}`).toBe(true);
    if (!isTerminal(event.to)) continue;
    expect(terminal.has(event.generation), `two ends of generation ${event.generation}`).toBe(false);
    terminal.add(event.generation);
  }
}
