/**
 * Reads that may be long, on a read-only connection in a thread of their own, so that they never delay a commit.
 * Each statement is short and finished before the next: a read transaction held open would keep the log from being
 * cut back. A history row is as large as its commit was: of a large one only the page that was asked for is handed out.
 */
import type { Database, Statement } from 'better-sqlite3';
import { decodeAdmission, withoutArgs } from '../admission-codec.js';
import { decoded } from '../decode-guards.js';
import { decodeEvents, encodeEvents } from '../history-codec.js';
import { historyPage } from '../history-page.js';
import { decodeRecord, statusOfEncoded } from '../record-codec.js';
import { type HistoryRow, type TaskRow, weightOfRow } from '../stored-row.js';
import { type ListQuery, MAX_BYTES_PER_LIST, MAX_ROWS_PER_LIST, type StoredEvent } from '../task-store.js';
import { HISTORY, TASK } from './task-columns.js';

/** Order, route, record: what the filters look at first. */
type ScanRow = readonly [number, number, string];
type Route = readonly [namespace: string, queue: string, actionKind: string];

const ROWS_PER_STATEMENT = 500;
/** A history row longer than this, in UTF-16 units, is read here and handed out in pages. */
const MAX_WHOLE_ROW = 64 * 1024;

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
  /** The large row that was read last, its text for as long as it is that: its next page is most likely asked for next. */
  private open: { readonly text: string; readonly events: readonly StoredEvent[] } | null = null;

  constructor(db: Database) {
    const scan = 'SELECT task_order, route_id, record FROM tasks WHERE task_order';
    this.forwards = db.prepare<[number, number], ScanRow>(`${scan} > ? ORDER BY task_order LIMIT ?`).raw();
    this.backwards = db.prepare<[number, number], ScanRow>(`${scan} < ? ORDER BY task_order DESC LIMIT ?`).raw();
    const children = (order: string): Statement<[string, number, number], ScanRow> =>
      db
        .prepare<[string, number, number], ScanRow>(
          `WITH parent (task_order) AS MATERIALIZED (SELECT coalesce(
             (SELECT task_order FROM tasks WHERE task_id = named.id),
             (SELECT task_order FROM tombstones WHERE task_id = named.id)) FROM (SELECT ? AS id) AS named)
           SELECT t.task_order, t.route_id, t.record FROM children c JOIN tasks t ON t.task_order = c.child_order
           WHERE c.parent_order = (SELECT task_order FROM parent) AND c.child_order ${order} LIMIT ?`,
        )
        .raw();
    this.children = {
      up: children('> ? ORDER BY c.child_order'),
      down: children('< ? ORDER BY c.child_order DESC'),
    };
    this.task = db
      .prepare<[number], TaskRow>(
        `SELECT ${TASK}
         FROM tasks t LEFT JOIN admissions a ON a.task_order = t.task_order WHERE t.task_order = ?`,
      )
      .raw();
    this.routeById = db.prepare<[number], string>('SELECT route_key FROM routes WHERE route_id = ?').pluck();
    this.history = db
      .prepare<[string, number], HistoryRow>(
        `SELECT ${HISTORY} FROM tasks t JOIN history h ON h.task_order = t.task_order
         WHERE t.task_id = ? AND h.last_number > ? ORDER BY h.last_number`,
      )
      .raw();
  }

  /** Rows enough to hold what was asked for: whole ones, but for large ones, of which a page each. */
  readHistory(taskId: string, afterNumber: number, limit: number, maxBytes: number): HistoryRow[] {
    const rows: HistoryRow[] = [];
    let bytes = 0;
    for (const stored of this.history.iterate(taskId, afterNumber)) {
      const row = stored[2].length > MAX_WHOLE_ROW ? this.pageOf(taskId, stored, afterNumber, limit, maxBytes) : stored;
      rows.push(row);
      bytes += row[2].length;
      if (row[1] < stored[1] || row[1] - afterNumber >= limit || bytes >= maxBytes) break;
    }
    return rows;
  }

  /** A row of its own for the events of a large one that follow `afterNumber`, as many as a page holds. */
  pageOf(taskId: string, row: HistoryRow, afterNumber: number, limit: number, maxBytes: number): HistoryRow {
    const [firstSequence, lastNumber, text, link] = row;
    if (this.open?.text !== text || this.open.events[0]?.sequence !== firstSequence) {
      const events = decoded(() => decodeEvents(text, lastNumber));
      // What cannot be read is told to be damaged where all rows are judged.
      if (!events.ok) return row;
      const stored = events.value.map((event, at) => ({ sequence: firstSequence + at, taskId, event, link }));
      this.open = { text, events: stored };
    }
    const wanted = this.open.events.filter(({ event }) => event.number > afterNumber);
    const page = historyPage(wanted, limit, maxBytes);
    const first = page[0];
    const last = page[page.length - 1];
    if (first === undefined || last === undefined) return row;
    if (last.event.number === lastNumber) this.open = null;
    return [first.sequence, last.event.number, encodeEvents(page.map(({ event }) => event)), link];
  }

  listTasks(query: ListQuery): ListedRows {
    const { descending, parentTaskId = null } = query;
    const all = descending ? this.backwards : this.forwards;
    const children = descending ? this.children.down : this.children.up;
    const rows: TaskRow[] = [];
    let bytes = 0;
    let position = query.after ?? (descending ? Number.MAX_SAFE_INTEGER : 0);
    for (let seen = 0; seen < MAX_ROWS_PER_LIST;) {
      const wanted = Math.min(ROWS_PER_STATEMENT, MAX_ROWS_PER_LIST - seen);
      const scanned = parentTaskId === null ? all.all(position, wanted) : children.all(parentTaskId, position, wanted);
      for (const row of scanned) {
        position = row[0];
        if (!this.matches(row, query)) continue;
        const task = this.taskAt(row[0], query);
        if (task === undefined || !hasLabels(task, query)) continue;
        rows.push(task);
        bytes += weightOfRow(task);
        if (rows.length >= query.limit || bytes >= MAX_BYTES_PER_LIST) return { rows, next: position };
      }
      seen += scanned.length;
      if (scanned.length < wanted) return { rows, next: null };
    }
    return { rows, next: position };
  }

  private taskAt(order: number, { withArgs }: ListQuery): TaskRow | undefined {
    const row = this.task.get(order);
    if (row === undefined || withArgs) return row;
    const [taskOrder, taskId, version, lastNumber, record, admission, seal] = row;
    return [taskOrder, taskId, version, lastNumber, record, admission === null ? null : withoutArgs(admission), seal];
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

  route(routeId: number): Route {
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
  const admission = decoded(() => decodeAdmission(task[1], task[5] ?? '', 'without_args'));
  if (!admission.ok) return true;
  // The labels in force: an update of the policy stands in the record.
  const record = decoded(() => decodeRecord(task[4], admission.value));
  if (!record.ok) return true;
  const has = record.value.policy.labels;
  return wanted.every(([key, value]) => Object.hasOwn(has, key) && has[key] === value);
}
