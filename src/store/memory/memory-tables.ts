/**
 * The tables of the memory store: the same facts as the SQL adapters keep, as maps of frozen values. Nothing here is
 * judged and nothing is durable.
 */
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
  type SessionRow,
} from '../commit-plan.js';
import { encodeAdmission } from '../admission-codec.js';
import type { HistoryChain, Link } from '../history-chain.js';
import { encodeEvents, payloadPlaces } from '../history-codec.js';
import { withoutPayloads } from '../history-row.js';
import { type HistoryRow, eventsOfRow } from '../stored-row.js';
import type { StoredEvent } from '../task-store.js';
import { deepFreeze } from './deep-freeze.js';
import { MemoryFamily } from './memory-family.js';

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
  /** In admission order. */
  readonly byOrder: TaskEntry[] = [];
  readonly sessions = new Map<string, SessionRow>();
  readonly routeKeys = new Set<string>();
  /** The partial indexes: only what is ready, due or leased is in them. In no order. */
  readonly ready = new Map<string, Set<TaskEntry>>();
  readonly due = new Set<TaskEntry>();
  readonly leased = new Map<string, Set<TaskEntry>>();
  readonly family = new MemoryFamily();
  private readonly keys = new Map<string, TaskEntry>();
  private nextSequence = 1;

  constructor(private readonly chain: HistoryChain) {}

  holderOfKey(namespace: string, idempotencyKey: string): TaskEntry | null {
    return this.keys.get(`${namespace}\n${idempotencyKey}`) ?? null;
  }

  write(write: RecordWrite): Written {
    const entry = write.kind === 'insert' ? this.insert(write) : this.tasks.get(write.taskId);
    if (entry === undefined) throw new Error('a checked update has no task');
    this.unindex(entry);
    entry.record = deepFreeze(withAdmission(write.record, entry.record.admission));
    entry.index = deepFreeze(write.index);
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
    entry.index = deepFreeze(index);
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
    for (const stored of eventsOfRow(entry.taskId, redacted))
      entry.events[stored.event.number - 1] = deepFreeze(stored);
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
    const firstSequence = this.nextSequence;
    entry.rows.push([firstSequence, lastNumber, row, link]);
    for (const event of events) {
      entry.events.push(deepFreeze({ sequence: this.nextSequence, taskId, event, link }));
      this.nextSequence += 1;
    }
    return { firstSequence, link };
  }

  private insert({ admission, routeKey, record, index }: RecordWrite & { readonly kind: 'insert' }): TaskEntry {
    const { taskId, namespace, idempotencyKey } = admission;
    const order = this.byOrder.length + 1;
    const lists = { events: [], rows: [], ledger: new Map<string, LedgerEntry>(), diagnostics: [] };
    const entry: TaskEntry = { taskId, order, routeKey, record, index, ...lists };
    this.byOrder.push(entry);
    this.tasks.set(taskId, entry);
    this.keys.set(`${namespace}\n${idempotencyKey}`, entry);
    this.routeKeys.add(routeKey);
    return entry;
  }

  private unindex(entry: TaskEntry): void {
    this.ready.get(entry.routeKey)?.delete(entry);
    this.due.delete(entry);
    const { leaseSession } = entry.index;
    if (leaseSession === null) return;
    this.leased.get(leaseSession)?.delete(entry);
    if (this.leased.get(leaseSession)?.size === 0) this.leased.delete(leaseSession);
  }

  private reindex(entry: TaskEntry): void {
    const { readyOrder, nextDueAt, leaseSession } = entry.index;
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
