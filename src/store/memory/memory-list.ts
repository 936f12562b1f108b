/**
 * What the memory store hands out of its entries, and the filters of `listTasks`: every one that is given must hold.
 */
import type { ListQuery, PurgedTask, ReadyPosition, StoredTask } from '../task-store.js';
import { admissionWithoutArgs } from './memory-events.js';
import type { MemoryTables, TaskEntry } from './memory-tables.js';

export function matches({ record }: TaskEntry, query: ListQuery): boolean {
  const { admission, status } = record;
  const { labels } = record.policy;
  return (
    (query.namespace === null || query.namespace === admission.namespace) &&
    (query.queue === null || query.queue === admission.queue) &&
    (query.statuses === null || query.statuses.includes(status)) &&
    (query.parentTaskId === undefined ||
      query.parentTaskId === null ||
      query.parentTaskId === admission.policy.parent?.taskId) &&
    (query.actionKinds === null || query.actionKinds.includes(admission.application.actionKind)) &&
    Object.entries(query.labels).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)
  );
}

export function taskOf({ taskId, order, record }: TaskEntry): StoredTask {
  return { kind: 'task', taskId, order, record };
}

export function withoutArgs({ taskId, order, record }: TaskEntry): StoredTask {
  return { kind: 'task', taskId, order, record: { ...record, admission: admissionWithoutArgs(record.admission) } };
}

/** A tombstone that was given up is a damaged task: its name is not free, and nothing else is known of it. */
export function purgedOf(tables: MemoryTables, taskId: string): PurgedTask | StoredTask | null {
  const purged = tables.purged.get(taskId) ?? null;
  if (purged === null || !tables.givenUp.has(taskId)) return purged;
  return { kind: 'damaged', taskId, order: purged.order, detail: 'tombstone was lost, and given up' };
}

export function comesAfter(position: ReadyPosition, after: ReadyPosition): boolean {
  return position.readyOrder === after.readyOrder
    ? position.order > after.order
    : position.readyOrder > after.readyOrder;
}
