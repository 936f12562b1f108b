/**
 * The two names of a task: its id, or its namespace and key. One rule for every request that takes either.
 */
import type { Authority } from '../authority/authority.js';
import { checkOperationKey, resolveNamespace } from '../kernel/admission/identifiers.js';
import { checked, malformedField } from '../wire/refusal-error.js';
import { requiredTaskId } from '../wire/transition-codec.js';
import { valueOf } from './task-views.js';

export interface TaskName {
  readonly taskId: string;
  readonly namespace: string;
  readonly idempotencyKey: string;
}

/** The id of the task named. Throws MALFORMED when it has no name or two, TASK_NOT_FOUND for an unknown key. */
export async function namedTask(authority: Authority, name: TaskName): Promise<string> {
  const { taskId, idempotencyKey } = name;
  if (taskId !== '') {
    if (idempotencyKey !== '') throw malformedField('idempotency_key', 'only without task_id');
    if (name.namespace !== '') checked(resolveNamespace(name.namespace));
    return requiredTaskId('task_id', taskId);
  }
  if (idempotencyKey === '') throw malformedField('task_id', 'is required, or the idempotency_key of the task');
  const namespace = checked(resolveNamespace(name.namespace));
  const key = checked(checkOperationKey(idempotencyKey, 'idempotency_key'));
  return valueOf(await authority.reads.findTaskId(namespace, key));
}
