/**
 * Reads in the order of the whole store, on the reader's connection: which rows of history are in a scope, and their
 * texts. Horizon and rows are read in one short transaction, so that no purge can come between them. A row's text is
 * read only where its task is in scope; how many rows are looked at is bounded.
 */
import type { Database, Statement } from 'better-sqlite3';
import { withoutArgs } from '../admission-codec.js';
import { decoded } from '../decode-guards.js';
import { type EventBounds, type EventScope, type Purges, MAX_ROWS_PER_EVENT_PAGE } from '../event-pages.js';
import type { ScopedRows } from '../event-rows.js';
import { countEvents } from '../history-codec.js';
import type { Link } from '../history-chain.js';
import type { HistoryRow } from '../stored-row.js';
import type { LongReads } from './long-reads.js';
import { LINK } from './task-columns.js';

type Order = number;
/** First sequence, number of the last event, order, task id and route; a purged task has left neither. */
type ScanRow = [number, number, Order, string | null, number | null];

/** The scan is as many statements as it needs. */
const ROWS_PER_STATEMENT = 500;
/** A row longer than this, in UTF-16 units, is handed out in pages. */
const MAX_WHOLE_ROW = 64 * 1024;
/** Tasks of which it is remembered whether they are below the root that was asked for last. */
const MAX_REMEMBERED = 20_000;

export class EventReads {
  private readonly startOf: Statement<[number], number | null>;
  private readonly scan: Statement<[number, number], ScanRow>;
  private readonly text: Statement<[number], [string, Link | null]>;
  private readonly lastRow: Statement<[], [number, string]>;
  private readonly admission: Statement<[Order], string>;
  private readonly meta: Statement<[string], string>;
  private readonly parentOf: Statement<[Order, Order], Order>;
  private readonly inOneMoment: <Value>(read: () => Value) => Value;
  private root: Order = 0;
  private readonly below = new Map<Order, boolean>();

  constructor(
    db: Database,
    private readonly rows: LongReads,
  ) {
    this.startOf = db
      .prepare<[number], number | null>('SELECT max(first_sequence) FROM history WHERE first_sequence <= ?')
      .pluck();
    this.scan = db
      .prepare<[number, number], ScanRow>(
        `SELECT h.first_sequence, h.last_number, h.task_order, t.task_id, t.route_id
         FROM history h LEFT JOIN tasks t ON t.task_order = h.task_order
         WHERE h.first_sequence >= ? ORDER BY h.first_sequence LIMIT ?`,
      )
      .raw();
    this.text = db
      .prepare<[number], [string, Link | null]>(`SELECT events, ${LINK} FROM history h WHERE first_sequence = ?`)
      .raw();
    this.lastRow = db
      .prepare<[], [number, string]>('SELECT first_sequence, events FROM history ORDER BY first_sequence DESC LIMIT 1')
      .raw();
    this.admission = db.prepare<[Order], string>('SELECT admission FROM admissions WHERE task_order = ?').pluck();
    this.meta = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck();
    this.parentOf = db
      .prepare<[Order, Order], Order>(
        `SELECT parent_order FROM children WHERE child_order = ?
         UNION ALL SELECT parent_order FROM tombstones WHERE task_order = ? AND parent_order IS NOT NULL LIMIT 1`,
      )
      .pluck();
    this.inOneMoment = (read) => db.transaction(read)();
  }

  eventBounds(): EventBounds {
    return this.inOneMoment(() => {
      const purged = this.purged();
      return { ...purged, head: Math.max(this.head(), purged.horizon) };
    });
  }

  readEvents(scope: EventScope, after: number, limit: number, maxBytes: number): ScopedRows {
    return this.inOneMoment(() => this.page(scope, after, limit, maxBytes));
  }

  private page(scope: EventScope, after: number, limit: number, maxBytes: number): ScopedRows {
    const purged = this.purged();
    const found: [string, HistoryRow][] = [];
    const admissions = new Map<string, string | null>();
    let bytes = 0;
    let last = (this.startOf.get(after + 1) ?? 0) - 1;
    for (let seen = 0; seen < MAX_ROWS_PER_EVENT_PAGE; seen += ROWS_PER_STATEMENT) {
      const scanned = this.scan.all(last + 1, ROWS_PER_STATEMENT);
      for (const [first, lastNumber, order, taskId, routeId] of scanned) {
        last = first;
        if (taskId === null || routeId === null || !this.isIn(scope, order, routeId)) continue;
        const [text, link] = this.text.get(first) ?? ['', null];
        const row = this.rowAt([first, lastNumber, text, link], taskId, after, limit, maxBytes);
        if (row === null) continue;
        found.push([taskId, row]);
        bytes += row[2].length;
        if (!admissions.has(taskId)) admissions.set(taskId, this.admissionOf(order));
        if (row[1] < lastNumber || found.length >= limit || bytes >= maxBytes) {
          return { ...purged, rows: found, admissions: [...admissions], through: null, more: true };
        }
      }
      if (scanned.length < ROWS_PER_STATEMENT) {
        const through = Math.max(this.head(), purged.horizon, after);
        return { ...purged, rows: found, admissions: [...admissions], through, more: false };
      }
    }
    // The last row looked at may hold more than its first event; what was not looked at begins behind that.
    return { ...purged, rows: found, admissions: [...admissions], through: Math.max(last, after), more: true };
  }

  /** The row whole; of a large one a page behind `after`; null when all of it lies before. */
  private rowAt(row: HistoryRow, taskId: string, after: number, limit: number, maxBytes: number): HistoryRow | null {
    const [first, lastNumber, text] = row;
    const isLarge = text.length > MAX_WHOLE_ROW;
    if (first > after && !isLarge) return row;
    const events = decoded(() => countEvents(text));
    // What cannot be read is told to be damaged where all rows are judged, once.
    if (!events.ok) return first > after ? row : null;
    const numberAfter = lastNumber - events.value + Math.max(after - first + 1, 0);
    if (numberAfter >= lastNumber) return null;
    return isLarge ? this.rows.pageOf(taskId, row, numberAfter, limit, maxBytes) : row;
  }

  private isIn(scope: EventScope, order: Order, routeId: number): boolean {
    if (scope.kind === 'subtree') return this.isBelow(scope.rootOrder, order);
    const [namespace, queue] = this.rows.route(routeId);
    return namespace === scope.namespace && (scope.queue === null || scope.queue === queue);
  }

  /** Parents were admitted before their children: beyond the root there is nothing to look for. */
  private isBelow(root: Order, order: Order): boolean {
    if (this.root !== root || this.below.size > MAX_REMEMBERED) this.below.clear();
    this.root = root;
    const path: Order[] = [];
    let at: Order | undefined = order;
    let isBelow: boolean | undefined;
    while (at !== undefined && at > root && isBelow === undefined) {
      isBelow = this.below.get(at);
      path.push(at);
      at = this.parentOf.get(at, at);
    }
    isBelow ??= at === root;
    for (const passed of path) this.below.set(passed, isBelow);
    return isBelow;
  }

  private admissionOf(order: Order): string | null {
    const admission = this.admission.get(order);
    return admission === undefined ? null : withoutArgs(admission);
  }

  private purged(): Purges {
    return { horizon: Number(this.meta.get('horizon') ?? 0), purges: Number(this.meta.get('purges') ?? 0) };
  }

  /** A last row that cannot be read counts as one event: what comes behind it begins higher in any case. */
  private head(): number {
    const last = this.lastRow.get();
    if (last === undefined) return 0;
    const events = decoded(() => countEvents(last[1]));
    return last[0] + (events.ok ? events.value : 1) - 1;
  }
}
