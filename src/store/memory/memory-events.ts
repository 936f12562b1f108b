/**
 * Pages of events of many tasks in the memory store, in the order of the whole store, with the same bounds as the
 * others have.
 */
import type { Admission } from '../../kernel/record.js';
import { type EventPage, type EventScope, MAX_ROWS_PER_EVENT_PAGE, type ScopedEvent } from '../event-pages.js';
import { historyPage } from '../history-page.js';
import type { MemoryTables, TaskEntry } from './memory-tables.js';

export function readScope(
  tables: MemoryTables,
  scope: EventScope,
  after: number,
  limit: number,
  maxBytes: number,
): EventPage {
  const { log, horizon, purged } = tables;
  const head = log.length - 1;
  const last = Math.min(head, after + MAX_ROWS_PER_EVENT_PAGE);
  const found: ScopedEvent[] = [];
  for (let sequence = after + 1; sequence <= last; sequence++) {
    const stored = log[sequence];
    const entry = stored === undefined ? undefined : tables.tasks.get(stored.taskId);
    if (stored === undefined || entry === undefined || !isIn(tables, scope, entry)) continue;
    found.push({ ...stored, admission: admissionWithoutArgs(entry.record.admission) });
  }
  const events = historyPage(found, limit, maxBytes);
  const through = events.length < found.length ? (events.at(-1)?.sequence ?? after) : Math.max(last, after);
  return { events, through, more: through < head, horizon, purges: purged.size, damaged: [] };
}

function isIn(tables: MemoryTables, scope: EventScope, { taskId, record }: TaskEntry): boolean {
  if (scope.kind === 'queue') {
    const { namespace, queue } = record.admission;
    return namespace === scope.namespace && (scope.queue === null || scope.queue === queue);
  }
  for (let at: string | undefined = taskId; at !== undefined; at = tables.family.parents.get(at)) {
    const order = tables.tasks.get(at)?.order ?? tables.purged.get(at)?.order ?? 0;
    if (order === scope.rootOrder) return true;
  }
  return false;
}

export function admissionWithoutArgs(admission: Admission): Admission {
  return { ...admission, application: { ...admission.application, argsJson: '' } };
}
