/**
 * Reading many tasks, and the history of one, page by page: no more is held than a page. Throws RefusalError.
 */
import type { Authority } from '../authority/authority.js';
import { canonicalActionKind } from '../kernel/admission/action-kinds.js';
import { DEFAULT_NAMESPACE, resolveNamespace } from '../kernel/admission/identifiers.js';
import { type TaskStatus, TASK_STATUSES } from '../kernel/status.js';
import { valueOf } from '../services/value-of.js';
import type { ListPage, ListQuery } from '../store/task-store.js';
import { checked, malformedField } from '../wire/refusal-error.js';
import { type TaskEvent, eventOf } from './event.js';
import { type Task, taskOf } from './task.js';

/** Every condition that is set must hold. */
export interface ListOptions {
  /** `*`: every namespace. Default: `default`. */
  readonly namespace?: string;
  readonly queue?: string;
  readonly statuses?: readonly TaskStatus[];
  readonly kinds?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  /** Children of this task, attached or not. */
  readonly parentTaskId?: string;
  /** Default: newest_first. */
  readonly order?: 'newest_first' | 'oldest_first';
  /** Told of tasks whose records cannot be trusted; they are passed over, so that one does not hide the others. */
  readonly onDamaged?: (taskId: string) => void;
}

export interface EventsOptions {
  /** Events with a greater number than this. Default: 0, the beginning. */
  readonly afterEventNumber?: number;
}

const TASKS_PER_PAGE = 100;
const EVENTS_PER_PAGE = 256;
const BYTES_PER_PAGE = 1_048_576;

export async function* tasksOf(authority: Authority, options: ListOptions): AsyncGenerator<Task, void, undefined> {
  const query = queryOf(options);
  for (let after: number | null = null; ;) {
    const page: ListPage = valueOf(await authority.reads.list({ ...query, after }));
    for (const stored of page.tasks) {
      if (stored.kind === 'task') yield taskOf(stored.record);
      else options.onDamaged?.(stored.taskId);
    }
    if (page.next === null) return;
    after = page.next;
  }
}

function queryOf(options: ListOptions): ListQuery {
  const { namespace = DEFAULT_NAMESPACE, queue, statuses = [], kinds = [], labels = {}, parentTaskId, order } = options;
  for (const status of statuses) if (!TASK_STATUSES.includes(status)) throw malformedField('statuses', 'is no status');
  return {
    namespace: namespace === '*' ? null : checked(resolveNamespace(namespace)),
    queue: queue ?? null,
    statuses: statuses.length === 0 ? null : statuses,
    actionKinds: kinds.length === 0 ? null : kinds.map(canonicalActionKind),
    labels,
    parentTaskId: parentTaskId ?? null,
    descending: order !== 'oldest_first',
    after: null,
    limit: TASKS_PER_PAGE,
    withArgs: true,
  };
}

export async function* eventsOf(
  authority: Authority,
  taskId: string,
  { afterEventNumber = 0 }: EventsOptions,
): AsyncGenerator<TaskEvent, void, undefined> {
  if (!Number.isSafeInteger(afterEventNumber) || afterEventNumber < 0) {
    throw malformedField('afterEventNumber', 'must be a whole number from 0');
  }
  const { admission } = valueOf(await authority.reads.get(taskId));
  for (let after = afterEventNumber; ;) {
    const page = valueOf(await authority.reads.history(taskId, after, EVENTS_PER_PAGE, BYTES_PER_PAGE));
    if (page.length === 0) return;
    for (const { event, sequence } of page) {
      after = event.number;
      yield eventOf(admission, event, sequence);
    }
  }
}
