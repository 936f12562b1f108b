/**
 * Reads that may be long, on a read-only connection in a thread of their own, so that they never delay a commit.
 * Each statement is short and finished before the next: a read transaction held open would keep the log from being
 * cut back.
 */
import type { Database, Statement } from 'better-sqlite3';
import { decodeAdmission } from '../admission-codec.js';
import { decoded } from '../decode-guards.js';
import { statusOfEncoded } from '../record-codec.js';
import type { HistoryRow, TaskRow } from '../stored-row.js';
import { type ListQuery, MAX_ROWS_PER_LIST } from '../task-store.js';
import { LAST_NUMBER } from './task-columns.js';

/** Order, route, record: what the filters look at first. */
type ScanRow = readonly [number, number, string];
type Route = readonly [namespace: string, queue: string, actionKind: string];

const ROWS_PER_STATEMENT = 500;

export interface ListedRows {
  readonly rows: readonly TaskRow[];
  readonly next: number | null;
}

export class LongReads {
  private readonly forwards: Statement<[number, number], ScanRow>;
  private readonly backwards: Statement<[number, number], ScanRow>;
  private readonly children: Readonly<Record<'up' | 'down', Statement<[string, number, number], ScanRow>>>;
  private readonly task: Statement<[number], TaskRow>;
  private readonly routeById: Statement<[number], string>;
  private readonly history: Statement<[string, number], HistoryRow>;
  private readonly routes = new Map<number, Route>();

  constructor(db: Database) {
    const scan = 'SELECT task_order, route_id, record FROM tasks WHERE task_order';
    this.forwards = db.prepare<[number, number], ScanRow>(`${scan} > ? ORDER BY task_order LIMIT ?`).raw();
    this.backwards = db.prepare<[number, number], ScanRow>(`${scan} < ? ORDER BY task_order DESC LIMIT ?`).raw();
    const children = (order: string): Statement<[string, number, number], ScanRow> =>
      db
        .prepare<[string, number, number], ScanRow>(
          `SELECT t.task_order, t.route_id, t.record FROM children c JOIN tasks t ON t.task_order = c.child_order
           WHERE c.parent_order = (SELECT task_order FROM tasks WHERE task_id = ?) AND c.child_order ${order} LIMIT ?`,
        )
        .raw();
    this.children = {
      up: children('> ? ORDER BY c.child_order'),
      down: children('< ? ORDER BY c.child_order DESC'),
    };
    this.task = db
      .prepare<[number], TaskRow>(
        `SELECT t.task_order, t.task_id, t.version, ${LAST_NUMBER}, t.record, a.admission
         FROM tasks t LEFT JOIN admissions a ON a.task_order = t.task_order WHERE t.task_order = ?`,
      )
      .raw();
    this.routeById = db.prepare<[number], string>('SELECT route_key FROM routes WHERE route_id = ?').pluck();
    this.history = db
      .prepare<[string, number], HistoryRow>(
        `SELECT h.first_sequence, h.last_number, h.events FROM tasks t JOIN history h ON h.task_order = t.task_order
         WHERE t.task_id = ? AND h.last_number > ? ORDER BY h.last_number`,
      )
      .raw();
  }

  /** Whole rows: enough of them to hold what was asked for, and at most one more than the bytes allow. */
  readHistory(taskId: string, afterNumber: number, limit: number, maxBytes: number): HistoryRow[] {
    const rows: HistoryRow[] = [];
    let bytes = 0;
    for (const row of this.history.iterate(taskId, afterNumber)) {
      rows.push(row);
      bytes += row[2].length;
      if (row[1] - afterNumber >= limit || bytes >= maxBytes) break;
    }
    return rows;
  }

  listTasks(query: ListQuery): ListedRows {
    const { descending, parentTaskId = null } = query;
    const all = descending ? this.backwards : this.forwards;
    const children = descending ? this.children.down : this.children.up;
    const rows: TaskRow[] = [];
    let position = query.after ?? (descending ? Number.MAX_SAFE_INTEGER : 0);
    for (let seen = 0; seen < MAX_ROWS_PER_LIST;) {
      const wanted = Math.min(ROWS_PER_STATEMENT, MAX_ROWS_PER_LIST - seen);
      const scanned = parentTaskId === null ? all.all(position, wanted) : children.all(parentTaskId, position, wanted);
      for (const row of scanned) {
        position = row[0];
        if (!this.matches(row, query)) continue;
        const task = this.task.get(row[0]);
        if (task === undefined || !hasLabels(task, query)) continue;
        rows.push(task);
        if (rows.length >= query.limit) return { rows, next: position };
      }
      seen += scanned.length;
      if (scanned.length < wanted) return { rows, next: null };
    }
    return { rows, next: position };
  }

  private matches([, routeId, record]: ScanRow, query: ListQuery): boolean {
    const { statuses, namespace, queue, actionKinds } = query;
    if (statuses !== null) {
      const status = statusOfEncoded(record);
      if (status !== undefined && !statuses.includes(status)) return false;
    }
    if (namespace === null && queue === null && actionKinds === null) return true;
    const [ofNamespace, ofQueue, ofKind] = this.route(routeId);
    return (
      (namespace === null || namespace === ofNamespace) &&
      (queue === null || queue === ofQueue) &&
      (actionKinds === null || actionKinds.includes(ofKind))
    );
  }

  private route(routeId: number): Route {
    const known = this.routes.get(routeId);
    if (known !== undefined) return known;
    const [namespace = '', queue = '', actionKind = ''] = (this.routeById.get(routeId) ?? '').split('\n');
    const route: Route = [namespace, queue, actionKind];
    this.routes.set(routeId, route);
    return route;
  }
}

/** A task whose admission can't be read is listed, so that it is seen to be damaged. */
function hasLabels(task: TaskRow, { labels }: ListQuery): boolean {
  const wanted = Object.entries(labels);
  if (wanted.length === 0) return true;
  const admission = decoded(() => decodeAdmission(task[1], task[5] ?? ''));
  if (!admission.ok) return true;
  const has = admission.value.policy.labels;
  return wanted.every(([key, value]) => Object.hasOwn(has, key) && has[key] === value);
}
