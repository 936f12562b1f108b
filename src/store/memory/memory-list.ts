/**
 * The filters of `listTasks`: every one that is given must hold.
 */
import type { ListQuery } from '../task-store.js';
import type { TaskEntry } from './memory-tables.js';

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
