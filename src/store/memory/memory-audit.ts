/**
 * What an audit reads of the memory store. What is damaged here was damaged by its reader; it tells the same as the
 * others all the same, so that one suite holds for all.
 */
import { createHash } from 'node:crypto';
import { applicationHash } from '../../kernel/admission/application-hash.js';
import type { Admission } from '../../kernel/record.js';
import { isTerminal } from '../../kernel/status.js';
import { encodeAdmission } from '../admission-codec.js';
import {
  type AuditPage,
  type AuditQuery,
  type Audited,
  type AuditedCommit,
  type AuditedFamily,
  type AuditedKeys,
  type AuditedPermit,
  type AuditedPermitRow,
  type AuditedPermits,
  type AuditedSessions,
  type AuditedTask,
  type HistoryStretch,
  type KeyName,
  MAX_BYTES_PER_AUDIT,
  MAX_CHILDREN_LOOKED_AT,
  MAX_HISTORY_PER_STRETCH,
  MAX_PLACES_PER_AUDIT,
  type NamedQuery,
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

  entries({ taskIds, after, limit }: AuditQuery): AuditPage {
    const { tables } = this;
    const count = taskIds?.length ?? tables.byOrder.length;
    const entries: (Audited | null)[] = [];
    let at = after;
    for (let bytes = 0; at < count && entries.length < limit && bytes < MAX_BYTES_PER_AUDIT; at++) {
      const taskId = taskIds === null ? tables.idAt(at + 1) : (taskIds[at] ?? null);
      const entry = taskId === null ? undefined : tables.tasks.get(taskId);
      entries.push(entry === undefined ? this.tombstone(taskId) : this.task(entry));
      for (const [, , text] of entry?.rows ?? []) bytes += text.length;
    }
    return { entries, next: at < count ? at : null };
  }

  keys({ names: asked, after, limit }: NamedQuery<KeyName>): AuditedKeys {
    const { tables } = this;
    const isAsked = (name: KeyName): boolean =>
      asked === null
        ? after === null || compareKeys(name, after) > 0
        : asked.some((one) => compareKeys(one, name) === 0);
    const names = tables.keyNames().filter(isAsked);
    const page = names.toSorted(compareKeys).slice(0, limit);
    const keys = page.map((name) => {
      const holder = tables.holderOfKey(name.namespace, name.idempotencyKey) ?? '';
      const order = tables.tasks.get(holder)?.order ?? tables.purged.get(holder)?.order ?? 0;
      return { name, order, leads: order === 0 ? ('nowhere' as const) : ('own' as const) };
    });
    return { keys, next: page.length < names.length ? (page[page.length - 1] ?? null) : null };
  }

  sessions({ names, after, limit }: NamedQuery<string>): AuditedSessions {
    const rows = this.tables.sessions
      .all()
      .filter(({ sessionId }) => (names === null ? after === null || sessionId > after : names.includes(sessionId)));
    const page = rows.slice(0, limit);
    const sessions = page.map(({ sessionId, state, expiresAt, ttlMs }) => ({
      sessionId,
      standing: { state, expiresAt, ttlMs },
    }));
    return { sessions, next: page.length < rows.length ? (page[page.length - 1]?.sessionId ?? null) : null };
  }

  permits({ names, after, limit }: NamedQuery<string>): AuditedPermits {
    const { permits, byOrder } = this.tables;
    const all = permits.states(after, Number.MAX_SAFE_INTEGER);
    const asked = names === null ? all : all.filter(({ name }) => names.includes(name));
    const page: AuditedPermit[] = [];
    let places = 0;
    for (const { name, running, settled } of asked) {
      const tasks = permits.tasksOf(name, Number.MAX_SAFE_INTEGER);
      const taskId = byOrder[(tasks[0] ?? 0) - 1]?.taskId ?? null;
      const found = permits.holdersOf(name).length;
      page.push({ name, running, found, linesAgree: true, settled, taskId });
      places += tasks.length;
      if (page.length >= limit || (names === null && places >= MAX_PLACES_PER_AUDIT)) break;
    }
    return { permits: page, next: page.length < asked.length ? (page[page.length - 1]?.name ?? null) : null };
  }

  history(order: number, afterNumber: number, throughNumber: number): HistoryStretch {
    const entry = this.tables.byOrder[order - 1];
    return entry === undefined ? { commits: [], more: false } : this.stretch(entry, afterNumber, throughNumber);
  }

  private tombstone(taskId: string | null): Audited | null {
    const { tables } = this;
    const purged = taskId === null ? undefined : tables.purged.get(taskId);
    if (purged === undefined) return null;
    const { order, tombstone, firstSequence } = purged;
    const isGivenUp = tables.givenUp.has(purged.taskId);
    const { namespace, idempotencyKey } = tombstone;
    const leads = tables.holderOfKey(namespace, idempotencyKey) === purged.taskId;
    return {
      kind: 'purged',
      order,
      taskId: purged.taskId,
      tombstone: isGivenUp ? { ok: false, detail: 'tombstone was lost, and given up' } : { ok: true, value: tombstone },
      isGivenUp,
      firstSequence,
      keyOrder: leads && !isGivenUp ? order : null,
      awaitsSweep: false,
      left: [],
      horizon: tables.horizon,
      given: tables.log.length - 1,
      fingerprint: tables.tombstoneFingerprint(purged),
    };
  }

  private task(entry: TaskEntry): AuditedTask {
    const { taskId, order, record, index, routeKey, rows } = entry;
    const { admission, lease } = record;
    const { tables } = this;
    const session = lease === null ? null : (tables.sessions.get(lease.sessionId) ?? null);
    return {
      kind: 'task',
      order,
      taskId,
      hasTombstone: false,
      awaitsSweep: false,
      admission: { ok: true, value: admission },
      argsHold: applicationHash(admission.application) === admission.applicationHash,
      record: { ok: true, value: record },
      seal: 'holds',
      version: record.lastEvent,
      routeKey,
      permits: this.permitsOf(order),
      index,
      lastNumber: rows[rows.length - 1]?.[1] ?? null,
      keyOrder: keyOrderOf(tables, admission),
      session: session && { state: session.state, expiresAt: session.expiresAt, ttlMs: session.ttlMs },
      family: this.familyOf(entry),
      history: this.stretch(entry, 0, Number.MAX_SAFE_INTEGER),
      fingerprint: fingerprintOf(entry),
    };
  }

  private permitsOf(order: number): AuditedPermitRow[] {
    const { permits } = this.tables;
    const rows = permits.rowsOf(order).toSorted((left, right) => (left.name < right.name ? -1 : 1));
    const routeNow = permits.routeOf(order);
    return rows.map(({ name, state, route, readyOrder }) => ({
      name,
      state,
      isOfRoute: route === routeNow,
      readyOrder,
    }));
  }

  private familyOf({ taskId, record }: TaskEntry): AuditedFamily {
    const { family, tasks, purged } = this.tables;
    const link = record.admission.policy.parent;
    const parent = link === null ? null : (tasks.get(link.taskId)?.record ?? null);
    const live = link === null ? null : family.childLives(link.taskId, taskId);
    const asked = record.cancellation !== null && !isTerminal(record.status);
    const firstChildren = family.liveChildrenOf(taskId).slice(0, MAX_CHILDREN_LOOKED_AT);
    return {
      counts: family.counts(taskId),
      found: family.found(taskId),
      asChild: live === null ? [] : [{ isNamed: true, live }],
      parent,
      parentPropagates: parent !== null && family.propagationOf(link?.taskId ?? '', parent.generation) !== null,
      hasUnaskedChild: asked && firstChildren.some((childId) => tasks.get(childId)?.record.cancellation === null),
      propagations: family.propagationsOf(taskId),
      awaited: family.awaitedGenerations(taskId),
      edges: family.edgesOf(taskId).map((edge) => ({
        ...edge,
        upstream: tasks.has(edge.upstreamId) ? 'task' : purged.has(edge.upstreamId) ? 'purged' : 'nowhere',
      })),
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
      // No two commits can lie upon each other here: the log is one list.
      commits.push({ firstSequence, lastNumber, events, link, chain: holds ? 'holds' : 'broken', nextSequence: null });
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

/** As the other stores order them: byte by byte. */
function compareKeys(left: KeyName, right: KeyName): number {
  const byNamespace = Buffer.compare(Buffer.from(left.namespace), Buffer.from(right.namespace));
  return byNamespace || Buffer.compare(Buffer.from(left.idempotencyKey), Buffer.from(right.idempotencyKey));
}
