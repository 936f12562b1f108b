/**
 * How commands name a task: by its id, or by the key it was submitted under.
 */
import type { Connection } from '../connection.js';
import { UsageError } from '../usage-error.js';

export interface TaskNameOptions {
  readonly key?: string;
  readonly namespace: string;
}

export interface TaskName {
  readonly taskId: string;
  readonly namespace: string;
  readonly idempotencyKey: string;
}

export const TASK_ARGUMENT = '[task-id]';
export const KEY_FLAG = '--key <key>';
export const KEY_HELP = 'name the task by the key it was submitted under';

/** Throws UsageError unless exactly one of the two is given. */
export function taskNameOf(taskId: string | undefined, options: TaskNameOptions): TaskName {
  if ((taskId === undefined) === (options.key === undefined)) {
    throw new UsageError('name the task: either its id, or --key');
  }
  return taskId === undefined
    ? { taskId: '', namespace: options.namespace, idempotencyKey: options.key ?? '' }
    : { taskId, namespace: '', idempotencyKey: '' };
}

/** The id, asked for when the task is named by its key. Throws ReeveError. */
export async function resolveTaskId(connection: Connection, name: TaskName): Promise<string> {
  if (name.taskId !== '') return name.taskId;
  const { task } = await connection.call((call) => connection.tasks.get(name, call));
  return task?.taskId ?? '';
}
