/**
 * What a CancelBatch asks for: tasks by name or by description, and the token that continues it.
 * Owns that it is one of the two, that tasks which are over are never looked for, and the binding of a page token to
 * its filter and its request id.
 */
import { createHash } from 'node:crypto';
import type { CancelBatchRequest } from '../gen/reeve/v1/task_service_pb.js';
import { TASK_STATUSES, isTerminal } from '../kernel/status.js';
import { MAX_PAGE_SIZE } from './frame-limits.js';
import { type ListCommand, readFilter, readPageSize } from './list-codec.js';
import type { TokenMint } from './opaque-token.js';
import { malformedField } from './refusal-error.js';
import { type IntentCommand, readCancel } from './transition-codec.js';

const MAX_TASKS_PER_CALL = 1_000;
const LIVE = TASK_STATUSES.filter((status) => !isTerminal(status));

export interface CancelBatchCommand {
  /** As the caller wrote them, also those that are no ids; null: found by the filter. */
  readonly taskIds: readonly string[] | null;
  /** Null: named. */
  readonly filter: ListCommand | null;
  /** What each of the tasks is asked. */
  readonly cancel: Omit<IntentCommand, 'taskId'>;
}

export function readCancelBatch(request: CancelBatchRequest, tokens: TokenMint): CancelBatchCommand {
  const { taskIds, filter, pageSize, pageToken } = request;
  const cancel = readCancel(request);
  if (filter === undefined) {
    if (taskIds.length === 0) throw malformedField('task_ids', 'at least one is required, or a filter');
    if (taskIds.length > MAX_TASKS_PER_CALL) {
      throw malformedField('task_ids', `must not be more than ${MAX_TASKS_PER_CALL}`);
    }
    if (pageSize !== undefined) throw malformedField('page_size', 'only with a filter');
    if (pageToken !== '') throw malformedField('page_token', 'only with a filter');
    return { taskIds, filter: null, cancel };
  }
  if (taskIds.length > 0) throw malformedField('task_ids', 'not together with a filter');
  const wanted = readFilter(filter);
  const digest = createHash('sha256')
    .update(JSON.stringify([wanted, cancel.key]))
    .digest('base64url');
  const purpose = `cancel\n${digest}`;
  return {
    taskIds: null,
    filter: {
      ...wanted,
      statuses: (wanted.statuses ?? LIVE).filter((status) => !isTerminal(status)),
      descending: false,
      pageSize: readPageSize(pageSize ?? MAX_PAGE_SIZE),
      after: pageToken === '' ? null : Number(tokens.read('page_token', purpose, pageToken)),
      purpose,
    },
    cancel,
  };
}
