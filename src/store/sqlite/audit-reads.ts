/**
 * What an audit reads, in the reader thread: one page in one read transaction, so that each task is seen as it was at
 * one moment. What needs payloads or the chain key is found out here, and args never leave. A transaction is as short
 * as a page is small: it keeps the log from being cut back.
 */
import type { Database, Statement } from 'better-sqlite3';
import { createHash } from 'node:crypto';
import { applicationHash } from '../../kernel/admission/application-hash.js';
import type { Admission } from '../../kernel/record.js';
import { decodeAdmission, withoutArgs } from '../admission-codec.js';
import { type AuditQuery, MAX_BYTES_PER_AUDIT, MAX_HISTORY_PER_STRETCH } from '../audit-rows.js';
import { PERMIT_STATE_CODES } from '../code-tables.js';
import { decoded } from '../decode-guards.js';
import type { HistoryChain } from '../history-chain.js';
import { decodeRecord } from '../record-codec.js';
import type { HistoryRow, TaskRow } from '../stored-row.js';
import { HISTORY, LAST_NUMBER } from './task-columns.js';

type Order = number;

/** Task id, version, route, ready order, next due, lease session, record, purge time. */
type Columns = readonly [
  string,
  number,
  string | null,
  number | null,
  number | null,
  string | null,
  string,
  number | null,
];
/** State, expiry, TTL. */
type SessionColumns = readonly [number, number, number];

export interface ChainedRow {
  readonly row: HistoryRow;
  readonly chain: 'holds' | 'broken' | 'unlinked';
}

export interface HistoryRows {
  readonly rows: readonly ChainedRow[];
  readonly more: boolean;
}

export interface AuditRow {
  readonly order: Order;
  readonly columns: Columns | null;
  /** Without args. */
  readonly admission: string | null;
  readonly argsHold: boolean;
  readonly waitsForPermit: boolean;
  readonly lastNumber: number | null;
  readonly keyOrder: Order | null;
  readonly session: SessionColumns | null;
  /** Live children and open dependencies, as counted. */
  readonly counts: readonly [number, number];
  /** The same, as there are. */
  readonly found: readonly [number, number];
  readonly childLive: number | null;
  readonly parent: TaskRow | null;
  readonly parentPropagates: boolean;
  readonly history: HistoryRows;
  readonly fingerprint: string;
}

export interface AuditRows {
  readonly tasks: readonly (AuditRow | null)[];
  readonly next: number | null;
}

export class AuditReads {
  private readonly statements: ReturnType<typeof auditStatements>;
  private readonly inSnapshot: (query: AuditQuery) => AuditRows;

  constructor(
    db: Database,
    private readonly chain: HistoryChain,
    /** The first sequence of which a link is wanted. */
    private readonly chainFrom: number,
  ) {
    this.statements = auditStatements(db);
    this.inSnapshot = db.transaction((query: AuditQuery) => this.page(query));
  }

  auditTasks(query: AuditQuery): AuditRows {
    return this.inSnapshot(query);
  }

  /** Commits never change but for payloads that are taken out, so that no snapshot is needed. */
  auditHistory(order: Order, afterNumber: number, throughNumber: number): HistoryRows {
    const taskId = this.statements.columns.get(order)?.[0] ?? null;
    const admission = this.statements.admission.get(order) ?? null;
    return this.stretch({ order, taskId, admission }, afterNumber, throughNumber);
  }

  private page({ taskIds, after, limit }: AuditQuery): AuditRows {
    const tasks: (AuditRow | null)[] = [];
    let bytes = 0;
    if (taskIds !== null) {
      let at = after;
      for (; at < taskIds.length && tasks.length < limit && bytes < MAX_BYTES_PER_AUDIT; at++) {
        const order = this.statements.orderOf.get(taskIds[at] ?? '');
        const row = order === undefined ? null : this.task(order);
        tasks.push(row);
        bytes += row === null ? 0 : weightOf(row);
      }
      return { tasks, next: at < taskIds.length ? at : null };
    }
    let order = this.statements.nextOrder.get({ after });
    while (order !== undefined && order !== null && tasks.length < limit && bytes < MAX_BYTES_PER_AUDIT) {
      const row = this.task(order);
      tasks.push(row);
      bytes += weightOf(row);
      order = this.statements.nextOrder.get({ after: order });
    }
    return { tasks, next: order === undefined || order === null ? null : (tasks.at(-1)?.order ?? null) };
  }

  private task(order: Order): AuditRow {
    const { statements } = this;
    const columns = statements.columns.get(order) ?? null;
    const taskId = columns?.[0] ?? null;
    const stored = statements.admission.get(order) ?? null;
    const admission = decoded(() => decodeAdmission(taskId ?? '', stored ?? ''));
    const known = admission.ok ? admission.value : null;
    const lastNumber = statements.lastNumber.get(order) ?? null;
    const history = this.stretch({ order, taskId, admission: stored }, 0, Number.MAX_SAFE_INTEGER);
    return {
      order,
      columns,
      admission: stored === null ? null : withoutArgs(stored),
      waitsForPermit: statements.waits.get(order, PERMIT_STATE_CODES.waiting) !== undefined,
      argsHold: known !== null && applicationHash(known.application) === known.applicationHash,
      lastNumber,
      keyOrder: known === null ? null : (statements.keyOrder.get(known.namespace, known.idempotencyKey) ?? null),
      session: this.sessionOf(columns, known),
      ...this.family(order, known),
      history,
      fingerprint: fingerprintOf(columns?.[1] ?? null, columns?.[6] ?? null, lastNumber, this.lastLink(order)),
    };
  }

  private sessionOf(columns: Columns | null, admission: Admission | null): SessionColumns | null {
    if (columns === null || admission === null) return null;
    const record = decoded(() => decodeRecord(columns[6], admission));
    const lease = record.ok ? record.value.lease : null;
    return lease === null ? null : (this.statements.session.get(lease.sessionId) ?? null);
  }

  private family(
    order: Order,
    admission: Admission | null,
  ): Pick<AuditRow, 'counts' | 'found' | 'childLive' | 'parent' | 'parentPropagates'> {
    const { statements } = this;
    const counts = statements.counts.get(order) ?? [0, 0];
    const found = [statements.liveChildren.get(order) ?? 0, statements.openEdges.get(order) ?? 0] as const;
    const link = admission?.policy.parent ?? null;
    const parent = link === null ? undefined : statements.task.get(link.taskId);
    const childLive = link === null ? null : (statements.childLive.get(order) ?? null);
    if (parent === undefined) return { counts, found, childLive, parent: null, parentPropagates: false };
    const [parentOrder, parentId, version, last, record, stored] = parent;
    return {
      counts,
      found,
      childLive,
      parent: [parentOrder, parentId, version, last, record, stored === null ? null : withoutArgs(stored)],
      parentPropagates: statements.propagates.get(parentOrder) !== undefined,
    };
  }

  private stretch(
    { order, taskId, admission }: { order: Order; taskId: string | null; admission: string | null },
    afterNumber: number,
    throughNumber: number,
  ): HistoryRows {
    const rows: ChainedRow[] = [];
    let previous = this.linkBefore(order, afterNumber);
    let size = 0;
    for (const row of this.statements.history.iterate(order, afterNumber, throughNumber)) {
      if (rows.length > 0 && size > MAX_HISTORY_PER_STRETCH) return { rows, more: true };
      const [firstSequence, lastNumber, text, link] = row;
      const place = { taskId: taskId ?? '', lastNumber, previous, admission: previous === null ? admission : null };
      const wanted = firstSequence >= this.chainFrom || previous !== null;
      const chain = link === null ? (wanted ? 'broken' : 'unlinked') : null;
      rows.push({ row, chain: chain ?? (this.chain.holds(link ?? '', place, text) ? 'holds' : 'broken') });
      previous = link ?? previous;
      size += text.length;
    }
    return { rows, more: false };
  }

  private linkBefore(order: Order, number: number): string | null {
    return number === 0 ? null : (this.statements.linkBefore.get(order, number) ?? null);
  }

  private lastLink(order: Order): string | null {
    return this.linkBefore(order, Number.MAX_SAFE_INTEGER);
  }
}

/** What a repair is decided on, and what its write finds again: the record as stored and where its history ends. */
export function fingerprintOf(
  version: number | null,
  record: string | null,
  lastNumber: number | null,
  lastLink: string | null,
): string {
  const seen = JSON.stringify([version, record, lastNumber, lastLink]);
  return createHash('sha256').update(seen).digest('hex');
}

function weightOf({ columns, admission, history, parent }: AuditRow): number {
  const records = (columns?.[6].length ?? 0) + (admission?.length ?? 0) + (parent?.[4].length ?? 0);
  return history.rows.reduce((sum, { row }) => sum + row[2].length, records);
}

function auditStatements(db: Database) {
  const nextOrder: Statement<{ after: Order }, Order | null> = db
    .prepare<{ after: Order }, Order | null>(
      // Also what is left of a task whose own row is lost, but for what a purge has not swept yet.
      `SELECT min(task_order) FROM (
         SELECT min(task_order) AS task_order FROM tasks WHERE task_order > :after
         UNION ALL SELECT * FROM (SELECT task_order FROM admissions a WHERE task_order > :after
           AND NOT EXISTS (SELECT 1 FROM purging p WHERE p.task_order = a.task_order) ORDER BY task_order LIMIT 1)
         UNION ALL SELECT * FROM (SELECT task_order FROM history h WHERE task_order > :after
           AND NOT EXISTS (SELECT 1 FROM purging p WHERE p.task_order = h.task_order) ORDER BY task_order LIMIT 1))`,
    )
    .pluck();
  const pluck = <Values extends unknown[], Value>(sql: string): Statement<Values, Value> =>
    db.prepare<Values, Value>(sql).pluck();
  return {
    nextOrder,
    orderOf: pluck<[string], Order>('SELECT task_order FROM tasks WHERE task_id = ?'),
    columns: db
      .prepare<[Order], Columns>(
        `SELECT task_id, version, route_key, ready_order, next_due_at, lease_session, record, purge_at
         FROM tasks LEFT JOIN routes USING (route_id) WHERE task_order = ?`,
      )
      .raw(),
    admission: pluck<[Order], string>('SELECT admission FROM admissions WHERE task_order = ?'),
    waits: pluck<[Order, number], number>('SELECT 1 FROM permit_rows WHERE task_order = ? AND state = ? LIMIT 1'),
    lastNumber: pluck<[Order], number | null>('SELECT max(last_number) FROM history WHERE task_order = ?'),
    keyOrder: pluck<[string, string], Order>(
      'SELECT task_order FROM task_keys WHERE namespace = ? AND idempotency_key = ?',
    ),
    session: db
      .prepare<[string], SessionColumns>('SELECT state, expires_at, ttl_ms FROM sessions WHERE session_id = ?')
      .raw(),
    counts: db
      .prepare<[Order], readonly [number, number]>(
        'SELECT live_children, unsatisfied FROM family_counts WHERE task_order = ?',
      )
      .raw(),
    liveChildren: pluck<[Order], number>('SELECT count(*) FROM children WHERE parent_order = ? AND live = 1'),
    openEdges: pluck<[Order], number>('SELECT count(*) FROM dependencies WHERE waiter_order = ?'),
    // By the child alone: its parent may be purged, and goes on naming its children.
    childLive: pluck<[Order], number>('SELECT live FROM children WHERE child_order = ?'),
    task: db
      .prepare<[string], TaskRow>(
        `SELECT t.task_order, t.task_id, t.version, ${LAST_NUMBER}, t.record, a.admission
         FROM tasks t LEFT JOIN admissions a ON a.task_order = t.task_order WHERE t.task_id = ?`,
      )
      .raw(),
    propagates: pluck<[Order], number>('SELECT 1 FROM propagations WHERE task_order = ? LIMIT 1'),
    history: db
      .prepare<[Order, number, number], HistoryRow>(
        `SELECT ${HISTORY} FROM history h
         WHERE h.task_order = ? AND h.last_number > ? AND h.last_number <= ? ORDER BY h.last_number, h.first_sequence`,
      )
      .raw(),
    linkBefore: pluck<[Order, number], string | null>(
      `SELECT nullif(lower(hex(link)), '') FROM history
       WHERE task_order = ? AND last_number <= ? ORDER BY last_number DESC LIMIT 1`,
    ),
  };
}
