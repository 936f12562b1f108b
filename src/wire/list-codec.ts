/**
 * What a List asks for, and the token that continues it.
 * Owns the meaning of the filter's defaults and the binding of a page token to its filter and order. A condition that
 * this version cannot judge is refused by name.
 */
import { createHash } from 'node:crypto';
import { canonicalActionKind } from '../kernel/admission/action-kinds.js';
import { DEFAULT_NAMESPACE, resolveNamespace } from '../kernel/admission/identifiers.js';
import type { TaskRecord } from '../kernel/record.js';
import type { TaskStatus } from '../kernel/status.js';
import { ListOrder, type ListRequest, type TaskFilter } from '../gen/reeve/v1/task_service_pb.js';
import { statuses } from './enum-tables.js';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from './frame-limits.js';
import type { TokenMint } from './opaque-token.js';
import { checked, malformedField, unsupportedField } from './refusal-error.js';
import { timestampMs } from './time-values.js';

export interface ListCommand {
  /** Null: every namespace. */
  readonly namespace: string | null;
  readonly queue: string | null;
  readonly statuses: readonly TaskStatus[] | null;
  readonly actionKinds: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly parentTaskId: string | null;
  /** Epoch ms, inclusive; null: no bound. */
  readonly createdFrom: number | null;
  /** Epoch ms, exclusive; null: no bound. */
  readonly createdBefore: number | null;
  readonly descending: boolean;
  readonly pageSize: number;
  /** Admission order to continue after. */
  readonly after: number | null;
  /** What a token for the next page is bound to. */
  readonly purpose: string;
}

const ALL_NAMESPACES = '*';

export function readList(request: ListRequest, tokens: TokenMint): ListCommand {
  const filter = readFilter(request.filter);
  const descending = readOrder(request.order);
  const purpose = `list\n${createHash('sha256')
    .update(JSON.stringify([filter, descending]))
    .digest('base64url')}`;
  const { pageToken } = request;
  const after = pageToken === '' ? null : Number(tokens.read('page_token', purpose, pageToken));
  return { ...filter, descending, pageSize: readPageSize(request.pageSize), after, purpose };
}

export function readPageSize(pageSize: number | undefined): number {
  const size = pageSize ?? DEFAULT_PAGE_SIZE;
  if (size < 1 || size > MAX_PAGE_SIZE) throw malformedField('page_size', `must be from 1 to ${MAX_PAGE_SIZE}`);
  return size;
}

type Filter = Omit<ListCommand, 'descending' | 'pageSize' | 'after' | 'purpose'>;

const NO_FILTER: Filter = {
  namespace: DEFAULT_NAMESPACE,
  queue: null,
  statuses: null,
  actionKinds: null,
  labels: {},
  parentTaskId: null,
  createdFrom: null,
  createdBefore: null,
};

export function readFilter(filter: TaskFilter | undefined): Filter {
  if (filter === undefined) return NO_FILTER;
  if (filter.concurrencyKey !== '') throw unsupportedField('filter.concurrency_key');
  if (filter.scheduleId !== '') throw unsupportedField('filter.schedule_id');
  const { createdFrom, createdBefore } = filter;
  const kinds = filter.actionKinds.map(canonicalActionKind);
  return {
    namespace: filter.namespace === ALL_NAMESPACES ? null : checked(resolveNamespace(filter.namespace), 'filter.'),
    queue: filter.queue === '' ? null : filter.queue,
    statuses: orNull(filter.statuses.map((status, index) => statuses.read(`filter.statuses[${index}]`, status))),
    actionKinds: orNull(kinds),
    // In one order, so that the same conditions are bound to the same token.
    labels: Object.fromEntries(Object.entries(filter.labels).sort(([left], [right]) => (left < right ? -1 : 1))),
    parentTaskId: filter.parentTaskId === '' ? null : filter.parentTaskId,
    createdFrom: createdFrom === undefined ? null : timestampMs('filter.created_from', createdFrom),
    createdBefore: createdBefore === undefined ? null : timestampMs('filter.created_before', createdBefore),
  };
}

function orNull<Item>(items: readonly Item[]): readonly Item[] | null {
  return items.length === 0 ? null : items;
}

function readOrder(order: ListOrder): boolean {
  switch (order) {
    case ListOrder.UNSPECIFIED:
    case ListOrder.NEWEST_FIRST:
      return true;
    case ListOrder.OLDEST_FIRST:
      return false;
    default:
      throw malformedField('order', `${String(order)} is not a known value`);
  }
}

/** The conditions that the store does not judge. */
export function wasCreatedWithin(record: TaskRecord, { createdFrom, createdBefore }: ListCommand): boolean {
  const { createdAt } = record.admission;
  return (createdFrom === null || createdAt >= createdFrom) && (createdBefore === null || createdAt < createdBefore);
}
