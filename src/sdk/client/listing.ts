/**
 * Lists as async iterators over their pages: tasks by filter, and the history of one task.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  ListEventsRequestSchema,
  type ListEventsRequest,
  type ListEventsResponse,
  type ListRequest,
  ListRequestSchema,
  type ListResponse,
  type TaskFilterSchema,
} from '../../gen/reeve/v1/task_service_pb.js';
import { toTimestamp } from '../transport/time.js';
import { readEvent, type TaskEvent } from './event.js';
import type { Task } from './task.js';
import { readTask } from './task-codec.js';
import { orderWords, statusWords, type TaskStatusWord, type TaskViewWord, viewWords } from './words.js';

/** Every condition that is set must hold. */
export interface TaskFilter {
  /** Default: the client's, else `default`. `*`: every namespace the caller may see. */
  readonly namespace?: string;
  readonly queue?: string;
  readonly statuses?: readonly TaskStatusWord[];
  readonly kinds?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly parentTaskId?: string;
  readonly concurrencyKey?: string;
  readonly scheduleId?: string;
  readonly createdFrom?: Date;
  readonly createdBefore?: Date;
}

export interface ListOptions extends TaskFilter {
  readonly order?: 'newest_first' | 'oldest_first';
  /** Tasks per round trip. 1 … 1,000; default 100. */
  readonly pageSize?: number;
  /** Default: basic, without args and results. */
  readonly view?: TaskViewWord;
  readonly signal?: AbortSignal;
}

export interface EventsOptions {
  /** Events with a greater number than this. Default: 0, the beginning. */
  readonly afterEventNumber?: number;
  /** Events per round trip. 1 … 1,000; default 100. */
  readonly pageSize?: number;
  readonly aepOnly?: boolean;
  readonly signal?: AbortSignal;
}

type TaskFilterInit = MessageInitShape<typeof TaskFilterSchema>;

export async function* listTasks(
  page: (request: ListRequest) => Promise<ListResponse>,
  options: ListOptions,
): AsyncGenerator<Task, void, undefined> {
  let pageToken = '';
  do {
    const response = await page(toListRequest(options, pageToken));
    for (const task of response.tasks) yield readTask(task);
    pageToken = response.nextPageToken;
  } while (pageToken !== '');
}

export async function* listEvents(
  page: (request: ListEventsRequest) => Promise<ListEventsResponse>,
  taskId: string,
  options: EventsOptions,
): AsyncGenerator<TaskEvent, void, undefined> {
  let after = BigInt(options.afterEventNumber ?? 0);
  let more = true;
  while (more) {
    const response = await page(
      create(ListEventsRequestSchema, {
        taskId,
        afterEventNumber: after,
        aepOnly: options.aepOnly ?? false,
        ...(options.pageSize !== undefined && { pageSize: options.pageSize }),
      }),
    );
    for (const event of response.events) {
      after = event.eventNumber;
      yield readEvent(event);
    }
    // A page that brings nothing cannot say where the next one begins.
    more = response.hasMore && response.events.length > 0;
  }
}

export function toTaskFilter(filter: TaskFilter): TaskFilterInit {
  const { createdFrom, createdBefore } = filter;
  return {
    namespace: filter.namespace ?? '',
    queue: filter.queue ?? '',
    statuses: (filter.statuses ?? []).map((word) => statusWords.value(word)),
    actionKinds: [...(filter.kinds ?? [])],
    labels: { ...filter.labels },
    parentTaskId: filter.parentTaskId ?? '',
    concurrencyKey: filter.concurrencyKey ?? '',
    scheduleId: filter.scheduleId ?? '',
    ...(createdFrom !== undefined && { createdFrom: toTimestamp(createdFrom) }),
    ...(createdBefore !== undefined && { createdBefore: toTimestamp(createdBefore) }),
  };
}

function toListRequest(options: ListOptions, pageToken: string): ListRequest {
  const { order, pageSize, view } = options;
  return create(ListRequestSchema, {
    filter: toTaskFilter(options),
    pageToken,
    ...(order !== undefined && { order: orderWords.value(order) }),
    ...(pageSize !== undefined && { pageSize }),
    ...(view !== undefined && { view: viewWords.value(view) }),
  });
}
