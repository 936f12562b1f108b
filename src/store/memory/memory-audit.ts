/**
 * What an audit reads of the memory store. What is damaged here was damaged by its reader; it tells the same as the
 * others all the same, so that one suite holds for all.
 */
import { createHash } from 'node:crypto';
import { applicationHash } from '../../kernel/admission/application-hash.js';
import type { Admission } from '../../kernel/record.js';
import { encodeAdmission } from '../admission-codec.js';
import {
  type AuditPage,
  type AuditQuery,
  type AuditedCommit,
  type AuditedTask,
  type HistoryStretch,
  MAX_BYTES_PER_AUDIT,
  MAX_HISTORY_PER_STRETCH,
} from '../audit-rows.js';
import { decoded } from '../decode-guards.js';
import type { HistoryChain } from '../history-chain.js';
import { decodeEvents } from '../history-codec.js';
import { encodeRecord } from '../record-codec.js';
import type { MemoryTables, TaskEntry } from './memory-tables.js';

export class MemoryAudit {
  constructor(
    private readonly tables: MemoryTables,
    private readonly chain: HistoryChain,
  ) {}

  tasks({ taskIds, after, limit }: AuditQuery): AuditPage {
    const wanted = taskIds?.map((taskId) => this.tables.tasks.get(taskId) ?? null) ?? this.tables.byOrder;
    const tasks: (AuditedTask | null)[] = [];
    let at = after;
    for (let bytes = 0; at < wanted.length && tasks.length < limit && bytes < MAX_BYTES_PER_AUDIT; at++) {
      const entry = wanted[at] ?? null;
      // A purged task leaves its place empty.
      if (entry === null && taskIds === null) continue;
      tasks.push(entry === null ? null : this.task(entry));
      for (const [, , text] of entry?.rows ?? []) bytes += text.length;
    }
    return { tasks, next: at < wanted.length ? at : null };
  }

  history(order: number, afterNumber: number, throughNumber: number): HistoryStretch {
    const entry = this.tables.byOrder[order - 1];
    return entry === undefined ? { commits: [], more: false } : this.stretch(entry, afterNumber, throughNumber);
  }

  private task(entry: TaskEntry): AuditedTask {
    const { taskId, order, record, index, routeKey, rows } = entry;
    const { admission, lease } = record;
    const { tables } = this;
    const link = admission.policy.parent;
    const parent = link === null ? undefined : tables.tasks.get(link.taskId);
    const session = lease === null ? null : (tables.sessions.get(lease.sessionId) ?? null);
    return {
      order,
      taskId,
      admission: { ok: true, value: admission },
      argsHold: applicationHash(admission.application) === admission.applicationHash,
      record: { ok: true, value: record },
      version: record.lastEvent,
      routeKey,
      waitsForPermit: tables.permits.rowsOf(order).some(({ state }) => state === 'waiting'),
      index,
      lastNumber: rows[rows.length - 1]?.[1] ?? null,
      keyOrder: keyOrderOf(tables, admission),
      session: session && { state: session.state, expiresAt: session.expiresAt, ttlMs: session.ttlMs },
      family: {
        counts: tables.family.counts(taskId),
        found: tables.family.found(taskId),
        livesAsChild: link === null ? null : tables.family.childLives(link.taskId, taskId),
        parent: parent?.record ?? null,
        parentPropagates: parent !== undefined && tables.family.propagates(parent.taskId),
      },
      history: this.stretch(entry, 0, Number.MAX_SAFE_INTEGER),
      fingerprint: fingerprintOf(entry),
    };
  }

  private stretch({ taskId, rows, record }: TaskEntry, afterNumber: number, throughNumber: number): HistoryStretch {
    const commits: AuditedCommit[] = [];
    let size = 0;
    for (const [at, [firstSequence, lastNumber, text, link]] of rows.entries()) {
      if (lastNumber <= afterNumber || lastNumber > throughNumber) continue;
      if (commits.length > 0 && size > MAX_HISTORY_PER_STRETCH) return { commits, more: true };
      const previous = rows[at - 1]?.[3] ?? null;
      const admission = previous === null ? encodeAdmission(record.admission) : null;
      const holds = link !== null && this.chain.holds(link, { taskId, lastNumber, previous, admission }, text);
      const events = decoded(() => decodeEvents(text, lastNumber));
      commits.push({ firstSequence, lastNumber, events, link, chain: holds ? 'holds' : 'broken' });
      size += text.length;
    }
    return { commits, more: false };
  }
}

export function fingerprintOf({ record, rows }: TaskEntry): string {
  const seen = JSON.stringify([record.lastEvent, encodeRecord(record), rows[rows.length - 1]?.[3] ?? null]);
  return createHash('sha256').update(seen).digest('hex');
}

function keyOrderOf(tables: MemoryTables, { namespace, idempotencyKey }: Admission): number | null {
  const holder = tables.holderOfKey(namespace, idempotencyKey);
  return holder === null ? null : (tables.tasks.get(holder)?.order ?? null);
}
