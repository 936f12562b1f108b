/**
 * What an audit reads, in the reader thread: one page in one read transaction, so that each task is seen as it was at
 * one moment. What needs payloads or the chain key is found out here, and args never leave. A transaction is as short
 * as a page is small: it keeps the log from being cut back.
 */
import type { Database } from 'better-sqlite3';
import { createHash } from 'node:crypto';
import { applicationHash } from '../../kernel/admission/application-hash.js';
import { decodeAdmission, withoutArgs } from '../admission-codec.js';
import { type AuditQuery, type Leftover, MAX_BYTES_PER_AUDIT, MAX_HISTORY_PER_STRETCH } from '../audit-rows.js';
import { decoded } from '../decode-guards.js';
import type { HistoryChain } from '../history-chain.js';
import { decodeRecord } from '../record-codec.js';
import type { HistoryRow } from '../stored-row.js';
import { decodeTombstone } from '../tombstone-codec.js';
import { AuditFamily, type FamilyRow } from './audit-family.js';
import {
  type AuditStatements,
  type PermitColumns,
  type SessionColumns,
  type TaskColumns,
  type TombstoneColumns,
  auditStatements,
} from './audit-statements.js';

type Order = number;

export interface ChainedRow {
  readonly row: HistoryRow;
  readonly chain: 'holds' | 'broken' | 'unlinked';
  /** Where the next commit of any task begins; null behind the last. */
  readonly nextSequence: number | null;
}

export interface HistoryRows {
  readonly rows: readonly ChainedRow[];
  readonly more: boolean;
}

export type AuditRow = AuditTaskRow | AuditTombstoneRow | AuditRemainsRow;

export interface AuditTaskRow {
  readonly kind: 'task';
  readonly order: Order;
  readonly columns: TaskColumns;
  readonly hasTombstone: boolean;
  readonly awaitsSweep: boolean;
  /** Without args. */
  readonly admission: string | null;
  readonly argsHold: boolean;
  readonly permits: readonly PermitColumns[];
  readonly lastNumber: number | null;
  readonly keyOrder: Order | null;
  readonly session: SessionColumns | null;
  readonly family: FamilyRow;
  readonly history: HistoryRows;
  readonly fingerprint: string;
}

export interface AuditTombstoneRow {
  readonly kind: 'purged';
  readonly order: Order;
  readonly columns: TombstoneColumns;
  readonly keyOrder: Order | null;
  readonly left: readonly Leftover[];
  readonly horizon: number;
  readonly given: number;
  readonly fingerprint: string;
}

interface AuditRemainsRow {
  readonly kind: 'remains';
  readonly order: Order;
  readonly left: readonly Leftover[];
}

export interface AuditRows {
  readonly entries: readonly (AuditRow | null)[];
  readonly next: number | null;
}

export class AuditReads {
  private readonly statements: AuditStatements;
  private readonly families: AuditFamily;
  private readonly inSnapshot: (query: AuditQuery) => AuditRows;

  constructor(
    db: Database,
    private readonly chain: HistoryChain,
    /** The first sequence of which a link is wanted. */
    private readonly chainFrom: number,
  ) {
    this.statements = auditStatements(db);
    this.families = new AuditFamily(db);
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
    const entries: (AuditRow | null)[] = [];
    let bytes = 0;
    if (taskIds !== null) {
      let at = after;
      for (; at < taskIds.length && entries.length < limit && bytes < MAX_BYTES_PER_AUDIT; at++) {
        const taskId = taskIds[at] ?? '';
        const order = this.statements.orderOf.get(taskId) ?? this.statements.purgedOrder.get(taskId);
        const row = order === undefined ? null : this.entry(order);
        entries.push(row);
        bytes += row === null ? 0 : weightOf(row);
      }
      return { entries, next: at < taskIds.length ? at : null };
    }
    let order = this.nextOrder(after);
    while (order !== null && entries.length < limit && bytes < MAX_BYTES_PER_AUDIT) {
      const row = this.entry(order);
      entries.push(row);
      bytes += weightOf(row);
      order = this.nextOrder(order);
    }
    return { entries, next: order === null ? null : (entries[entries.length - 1]?.order ?? null) };
  }

  /** The next place at which anything is kept, whatever it is. */
  private nextOrder(after: Order): Order | null {
    return this.statements.nextOrder.get({ after }) ?? null;
  }

  private entry(order: Order): AuditRow {
    const { statements } = this;
    const columns = statements.columns.get(order);
    if (columns !== undefined) return this.task(order, columns);
    const left = statements.leftovers.flatMap(({ name, anyOf }) => (anyOf.get(order) === undefined ? [] : [name]));
    const tombstone = statements.tombstone.get(order);
    if (tombstone === undefined) return { kind: 'remains', order, left };
    const horizon = Number(statements.horizon.get() ?? 0);
    return {
      kind: 'purged',
      order,
      columns: tombstone,
      keyOrder: this.keyOfTombstone(tombstone),
      left,
      horizon,
      given: Math.max(statements.lastCommit.get() ?? 0, horizon),
      fingerprint: tombstoneFingerprint(order, tombstone[0], tombstone[3]),
    };
  }

  private keyOfTombstone([taskId, , , stored]: TombstoneColumns): Order | null {
    const tombstone = decoded(() => decodeTombstone(taskId, stored));
    if (!tombstone.ok) return null;
    const { namespace, idempotencyKey } = tombstone.value;
    return this.statements.keyOrder.get(namespace, idempotencyKey) ?? null;
  }

  private task(order: Order, columns: TaskColumns): AuditTaskRow {
    const { statements } = this;
    const [taskId, version, , , , , storedRecord] = columns;
    const stored = statements.admission.get(order) ?? null;
    const admission = decoded(() => decodeAdmission(taskId, stored ?? ''));
    const known = admission.ok ? admission.value : null;
    const read = known === null ? null : decoded(() => decodeRecord(storedRecord, known));
    const record = read?.ok === true ? read.value : null;
    const lastNumber = statements.lastNumber.get(order) ?? null;
    const history = this.stretch({ order, taskId, admission: stored }, 0, Number.MAX_SAFE_INTEGER);
    const lease = record?.lease ?? null;
    const session = lease === null ? undefined : statements.session.get(lease.sessionId);
    return {
      kind: 'task',
      order,
      columns,
      hasTombstone: statements.hasTombstone.get(order, taskId) !== undefined,
      awaitsSweep: statements.awaitsSweep.get(order) !== undefined,
      admission: stored === null ? null : withoutArgs(stored),
      permits: statements.permits.all(order),
      argsHold: known !== null && applicationHash(known.application) === known.applicationHash,
      lastNumber,
      keyOrder: known === null ? null : (statements.keyOrder.get(known.namespace, known.idempotencyKey) ?? null),
      session: session ?? null,
      family: this.families.read(order, known, record),
      history,
      fingerprint: fingerprintOf(version, storedRecord, lastNumber, this.lastLink(order)),
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
      rows.push({
        row,
        chain: chain ?? (this.chain.holds(link ?? '', place, text) ? 'holds' : 'broken'),
        nextSequence: this.statements.nextSequence.get(firstSequence) ?? null,
      });
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

/** What the repair of a tombstone is decided on, and what its write finds again. */
export function tombstoneFingerprint(order: Order, taskId: string, tombstone: string): string {
  return createHash('sha256')
    .update(JSON.stringify([order, taskId, tombstone]))
    .digest('hex');
}

function weightOf(row: AuditRow): number {
  if (row.kind !== 'task') return row.kind === 'purged' ? row.columns[3].length : 0;
  const { columns, admission, history, family } = row;
  const records = columns[6].length + (admission?.length ?? 0) + (family.parent?.[4].length ?? 0);
  return history.rows.reduce((sum, { row: [, , text] }) => sum + text.length, records);
}
