/**
 * The tables of the memory store: the same facts as the SQL adapters keep, as maps of frozen values. Nothing here is
 * judged and nothing is durable.
 */
import { createHash } from 'node:crypto';
import type { TaskEvent } from '../../kernel/event.js';
import type { Admission, TaskRecord } from '../../kernel/record.js';
import { isTerminal } from '../../kernel/status.js';
import {
  type Diagnostic,
  type LedgerEntry,
  MAX_DIAGNOSTICS_PER_EPOCH,
  type RecordIndex,
  type RecordWrite,
  type RepairWrite,
} from '../commit-plan.js';
import { encodeAdmission } from '../admission-codec.js';
import type { KeyName } from '../audit-rows.js';
import type { HistoryChain, Link } from '../history-chain.js';
import { encodeEvents, payloadPlaces } from '../history-codec.js';
import { withoutPayloads } from '../history-row.js';
import type { OperationEntry, OperationWrite, PurgeWrite, TombstoneRepair } from '../purge-rows.js';
import { type HistoryRow, eventsOfRow } from '../stored-row.js';
import type { PurgedTask, StoredEvent } from '../task-store.js';
import { deepFreeze } from '../../lib/deep-freeze.js';
import type { PermitWait } from '../../kernel/permits.js';
import {
  MAX_AHEAD_COUNTED,
  MAX_HOLDERS_NAMED,
  type PermitWrite,
  type PermitsMoved,
  type TaskReady,
  movedBy,
} from '../permit-rows.js';
import type { PermitPlace } from '../permit-rules.js';
import { MemoryFamily } from './memory-family.js';
import { MemoryPermits } from './memory-permits.js';
import { MemorySessions } from './memory-sessions.js';

export interface TaskEntry {
  readonly taskId: string;
  readonly order: number;
  readonly routeKey: string;
  record: TaskRecord;
  index: RecordIndex;
  readonly events: StoredEvent[];
  /** The same as every commit wrote it: what links are made of. */
  readonly rows: HistoryRow[];
  readonly ledger: Map<string, LedgerEntry>;
  readonly diagnostics: Diagnostic[];
}

export interface Written {
  /** Of the first event. */
  readonly firstSequence: number;
  readonly link: Link;
}

export class MemoryTables {
  readonly tasks = new Map<string, TaskEntry>();
  readonly purged = new Map<string, PurgedTask>();
  /** Of those purged, whose tombstones were given up. */
  readonly givenUp = new Set<string>();
  /** In admission order; a purged task leaves its place empty. */
  readonly byOrder: (TaskEntry | undefined)[] = [];
  /** Event n stands at n; those of purged tasks are gone. */
  readonly log: (StoredEvent | undefined)[] = [undefined];
  readonly operations = new Map<string, OperationEntry>();
  /** Events up to here may be gone. */
  horizon = 0;
  readonly sessions = new MemorySessions((sessionId) => this.leasedTo(sessionId));
  readonly routeKeys = new Set<string>();
  /** The partial indexes: only what is ready, due or leased is in them. In no order. */
  readonly ready = new Map<string, Set<TaskEntry>>();
  readonly due = new Set<TaskEntry>();
  readonly purgeable = new Set<TaskEntry>();
  readonly leased = new Map<string, Set<TaskEntry>>();
  readonly family = new MemoryFamily();
  readonly permits = new MemoryPermits(
    (taskId) => this.tasks.get(taskId)?.order ?? null,
    (order) => this.routeNumber(this.byOrder[order - 1]?.routeKey ?? ''),
    (order, readyOrder) => this.setReady(order, readyOrder),
  );
  private readonly keys = new Map<string, string>();
  private readonly routeNumbers = new Map<string, number>();
  private readonly purgedAt = new Map<number, string>();

  constructor(private readonly chain: HistoryChain) {}

  /** The id of the task that has it, if only of a purged one. */
  holderOfKey(namespace: string, idempotencyKey: string): string | null {
    return this.keys.get(`${namespace}\n${idempotencyKey}`) ?? null;
  }

  keyNames(): readonly KeyName[] {
    return [...this.keys.keys()].map((key) => {
      const [namespace = '', idempotencyKey = ''] = key.split('\n');
      return { namespace, idempotencyKey };
    });
  }

  /** Of a task or of one that was purged. */
  idAt(order: number): string | null {
    return this.byOrder[order - 1]?.taskId ?? this.purgedAt.get(order) ?? null;
  }

  write(write: RecordWrite): Written {
    const entry = write.kind === 'insert' ? this.insert(write) : this.tasks.get(write.taskId);
    if (entry === undefined) throw new Error('a checked update has no task');
    this.unindex(entry);
    entry.record = deepFreeze(withAdmission(write.record, entry.record.admission));
    // A task that needs permits is ready when it has passed them all.
    entry.index = deepFreeze(write.index.permits === undefined ? write.index : { ...write.index, readyOrder: null });
    this.reindex(entry);
    return this.append(entry, write.events);
  }

  /** Writes over the record; checked before. */
  repair({ taskId, record, index, event, rederive, redact }: RepairWrite): Written {
    const entry = this.tasks.get(taskId);
    if (entry === undefined) throw new Error('a checked repair has no task');
    if (redact !== null) this.redact(entry, redact);
    this.unindex(entry);
    entry.record = deepFreeze(withAdmission(record, entry.record.admission));
    entry.index = deepFreeze(index.permits === undefined ? index : { ...index, readyOrder: null });
    this.reindex(entry);
    if (rederive) this.rederive(entry);
    return this.append(entry, [event]);
  }

  private redact(entry: TaskEntry, eventNumber: number): void {
    const at = entry.rows.findIndex(([, lastNumber]) => lastNumber >= eventNumber);
    const row = entry.rows[at];
    if (row === undefined) throw new Error('there is no such event to take a payload from');
    const [firstSequence, lastNumber, text, link] = row;
    const redacted: HistoryRow = [
      firstSequence,
      lastNumber,
      withoutPayloads(text, payloadPlaces(text, lastNumber, eventNumber)),
      link,
    ];
    entry.rows[at] = redacted;
    for (const stored of eventsOfRow(entry.taskId, redacted)) {
      entry.events[stored.event.number - 1] = deepFreeze(stored);
      this.log[stored.sequence] = stored;
    }
  }

  private rederive({ taskId, record }: TaskEntry): void {
    const { parent } = record.admission.policy;
    if (parent !== null) {
      this.family.rederiveChild(parent.taskId, taskId, parent.attached && !isTerminal(record.status));
    }
    this.family.recount(taskId);
  }

  private append(entry: TaskEntry, events: readonly TaskEvent[]): Written {
    const { taskId, record } = entry;
    const row = encodeEvents(events);
    const lastNumber = record.lastEvent;
    const previous = entry.rows[entry.rows.length - 1]?.[3] ?? null;
    const admission = previous === null ? encodeAdmission(record.admission) : null;
    const link = this.chain.linkOf({ taskId, lastNumber, previous, admission }, row);
    const firstSequence = this.log.length;
    entry.rows.push([firstSequence, lastNumber, row, link]);
    for (const event of events) {
      const stored = deepFreeze({ sequence: this.log.length, taskId, event, link });
      entry.events.push(stored);
      this.log.push(stored);
    }
    return { firstSequence, link };
  }

  purge({ taskId, tombstone }: PurgeWrite): void {
    const entry = this.tasks.get(taskId);
    if (entry === undefined) throw new Error('a checked purge has no task');
    const { order, events } = entry;
    const sequences = events.map(({ sequence }) => sequence);
    this.horizon = Math.max(this.horizon, ...sequences.slice(-1));
    const firstSequence = sequences[0] ?? 0;
    this.purged.set(taskId, deepFreeze({ kind: 'purged', taskId, order, tombstone, firstSequence }));
    this.purgedAt.set(order, taskId);
    for (const sequence of sequences) this.log[sequence] = undefined;
    this.unindex(entry);
    this.byOrder[order - 1] = undefined;
    this.tasks.delete(taskId);
    this.family.forget(taskId);
  }

  tombstoneFingerprint({ order, taskId, tombstone }: PurgedTask): string {
    const seen = JSON.stringify([order, tombstone, this.givenUp.has(taskId)]);
    return createHash('sha256').update(seen).digest('hex');
  }

  /** What else is left of a purged task is nothing, here. */
  repairTombstone({ taskId, giveUpAt, key, horizon }: TombstoneRepair): void {
    if (giveUpAt !== null) this.givenUp.add(taskId);
    const name = key === null ? null : `${key.namespace}\n${key.idempotencyKey}`;
    if (name !== null && !this.keys.has(name)) this.keys.set(name, taskId);
    this.horizon = Math.max(this.horizon, Math.min(horizon, this.log.length - 1));
  }

  keepOperation({ entry, forgetBefore }: OperationWrite): void {
    for (const { key, at } of this.operations.values()) if (at < forgetBefore) this.operations.delete(key);
    if (!this.operations.has(entry.key)) this.operations.set(entry.key, deepFreeze(entry));
  }

  /** Whose lease a session holds, in admission order. */
  leasedTo(sessionId: string): readonly TaskEntry[] {
    return [...(this.leased.get(sessionId) ?? [])].sort((left, right) => left.order - right.order);
  }

  /** What a verdict tells of it. */
  writePermits(writes: readonly PermitWrite[]): Partial<PermitsMoved> {
    const taskAt = ({ task, readyOrder }: PermitPlace): TaskReady => {
      const { taskId = '', routeKey = '' } = this.byOrder[task - 1] ?? {};
      return { taskId, routeKey, readyOrder };
    };
    return movedBy(
      writes.map((write) => {
        const { ready, unready, ...others } = this.permits.write(write);
        return { ready: ready.map(taskAt), unready: unready.map(taskAt), ...others };
      }),
    );
  }

  permitWait(taskId: string): PermitWait | null {
    const { permits, tasks, byOrder } = this;
    const task = tasks.get(taskId)?.order ?? 0;
    const row = permits.rowsOf(task).find(({ state }) => state === 'waiting');
    const count = row === undefined ? null : permits.countOf(row.name);
    if (row === undefined || count === null) return null;
    const { name } = row;
    const holders = permits.holdersOf(name).map((order) => byOrder[order - 1]?.taskId ?? '');
    const ahead = Math.min(permits.ahead(row, task), MAX_AHEAD_COUNTED);
    return {
      name,
      limit: count.limit,
      running: count.running,
      holders: holders.slice(0, MAX_HOLDERS_NAMED),
      ahead,
      aheadIsAtLeast: ahead === MAX_AHEAD_COUNTED,
    };
  }

  private routeNumber(routeKey: string): number {
    const known = this.routeNumbers.get(routeKey) ?? this.routeNumbers.size + 1;
    this.routeNumbers.set(routeKey, known);
    return known;
  }

  private setReady(order: number, readyOrder: number | null): void {
    const entry = this.byOrder[order - 1];
    if (entry === undefined) return;
    this.unindex(entry);
    entry.index = deepFreeze({ ...entry.index, readyOrder });
    this.reindex(entry);
  }

  private insert({ admission, routeKey, record, index }: RecordWrite & { readonly kind: 'insert' }): TaskEntry {
    const { taskId, namespace, idempotencyKey } = admission;
    const order = this.byOrder.length + 1;
    const lists = { events: [], rows: [], ledger: new Map<string, LedgerEntry>(), diagnostics: [] };
    const entry: TaskEntry = { taskId, order, routeKey, record, index, ...lists };
    this.byOrder.push(entry);
    this.tasks.set(taskId, entry);
    this.keys.set(`${namespace}\n${idempotencyKey}`, taskId);
    this.routeKeys.add(routeKey);
    return entry;
  }

  private unindex(entry: TaskEntry): void {
    this.ready.get(entry.routeKey)?.delete(entry);
    this.due.delete(entry);
    this.purgeable.delete(entry);
    const { leaseSession } = entry.index;
    if (leaseSession === null) return;
    this.leased.get(leaseSession)?.delete(entry);
    if (this.leased.get(leaseSession)?.size === 0) this.leased.delete(leaseSession);
  }

  private reindex(entry: TaskEntry): void {
    const { readyOrder, nextDueAt, leaseSession, purgeAt } = entry.index;
    if (purgeAt !== null) this.purgeable.add(entry);
    if (readyOrder !== null) addTo(this.ready, entry.routeKey, entry);
    if (nextDueAt !== null) this.due.add(entry);
    if (leaseSession !== null) addTo(this.leased, leaseSession, entry);
  }

  keepDiagnostic(diagnostic: Diagnostic): void {
    const kept = this.tasks.get(diagnostic.taskId)?.diagnostics;
    const ofEpoch = kept?.filter(({ epoch }) => epoch === diagnostic.epoch) ?? [];
    if (ofEpoch.length < MAX_DIAGNOSTICS_PER_EPOCH) kept?.push(deepFreeze(diagnostic));
  }
}

/** An admission is written once: no update changes it, whatever it carries. */
function withAdmission(record: TaskRecord, admission: Admission): TaskRecord {
  return record.admission === admission ? record : { ...record, admission };
}

function addTo(sets: Map<string, Set<TaskEntry>>, key: string, entry: TaskEntry): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([entry]));
  else known.add(entry);
}
