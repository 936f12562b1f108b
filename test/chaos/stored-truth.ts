/**
 * Reads a whole store and checks, from its rows alone, what must hold of every task: everything that `reeve verify`
 * checks but what is only about to be seen to, and sequences that are unique over all tasks.
 */
import { expect } from 'vitest';
import { invariant } from '../../src/audit/invariants.js';
import { auditTask } from '../../src/audit/task-audit.js';
import { auditTombstone } from '../../src/audit/tombstones.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { AuditedCommit, AuditedTask } from '../../src/store/audit-rows.js';
import type { TaskStore } from '../../src/store/task-store.js';

const PAGE = 500;

export interface StoredLife {
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
}

/** Every task of the store by id, each checked. */
export async function storedTruth(store: TaskStore): Promise<Map<string, StoredLife>> {
  const lives = new Map<string, StoredLife>();
  const sequences = new Set<number>();
  for (let after: number | null = 0; after !== null;) {
    const page = await store.auditTasks({ taskIds: null, after, limit: PAGE });
    for (const task of page.entries) {
      if (task === null) throw new Error('a page of all tasks has none');
      if (task.kind === 'remains') throw new Error(`${task.left.join(', ')} are left at ${String(task.order)}`);
      if (task.kind === 'purged') {
        expect(auditTombstone(task)).toEqual([]);
        continue;
      }
      const commits = await checkLife(store, task);
      for (const { firstSequence, events } of commits) {
        for (const [index] of eventsOf(events).entries()) {
          const sequence = firstSequence + index;
          expect(sequences.has(sequence), `sequence ${sequence} twice`).toBe(false);
          sequences.add(sequence);
        }
      }
      if (!task.record.ok) throw new Error(`${task.taskId} cannot be read`);
      lives.set(task.taskId, {
        record: task.record.value,
        events: commits.flatMap(({ events }) => eventsOf(events)),
      });
    }
    after = page.next;
  }
  return lives;
}

/** All commits of the task, which was found to be sound. */
async function checkLife(store: TaskStore, task: AuditedTask): Promise<readonly AuditedCommit[]> {
  const commits = [...task.history.commits];
  const readOn: TaskStore['auditHistory'] = async (...where) => {
    const stretch = await store.auditHistory(...where);
    commits.push(...stretch.commits);
    return stretch;
  };
  const now = Date.now();
  const { findings, links } = await auditTask(task, readOn, { now, quietSince: now });
  expect(findings.filter(({ invariant: name }) => invariant(name).passes !== true)).toEqual([]);
  expect(links).toBe(commits.length);
  return commits;
}

function eventsOf(events: AuditedCommit['events']): readonly TaskEvent[] {
  return events.ok ? events.value : [];
}
