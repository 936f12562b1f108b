/**
 * The tables of the memory store: the same facts as the SQL adapters keep, as maps of frozen values. Nothing here is
 * judged and nothing is durable.
 */
import type { Admission, TaskRecord } from '../../kernel/record.js';
import {
  type Diagnostic,
  type LedgerEntry,
  MAX_DIAGNOSTICS_PER_EPOCH,
  type RecordIndex,
  type RecordWrite,
  type SessionRow,
} from '../commit-plan.js';
import type { StoredEvent } from '../task-store.js';
import { deepFreeze } from '../../lib/deep-freeze.js';
import { MemoryFamily } from './memory-family.js';

export interface TaskEntry {
  readonly taskId: string;
  readonly order: number;
  readonly routeKey: string;
  record: TaskRecord;
  index: RecordIndex;
  readonly events: StoredEvent[];
  readonly ledger: Map<string, LedgerEntry>;
  readonly diagnostics: Diagnostic[];
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

  holderOfKey(namespace: string, idempotencyKey: string): TaskEntry | null {
    return this.keys.get(`${namespace}\n${idempotencyKey}`) ?? null;
  }

  /** The sequence of the first event. */
  write(write: RecordWrite): number {
    const entry = write.kind === 'insert' ? this.insert(write) : this.tasks.get(write.taskId);
    if (entry === undefined) throw new Error('a checked update has no task');
    this.unindex(entry);
    entry.record = deepFreeze(withAdmission(write.record, entry.record.admission));
    entry.index = deepFreeze(write.index);
    this.reindex(entry);
    const first = this.nextSequence;
    for (const event of write.events) {
      entry.events.push(deepFreeze({ sequence: this.nextSequence, taskId: entry.taskId, event }));
      this.nextSequence += 1;
    }
    return first;
  }

  private insert({ admission, routeKey, record, index }: RecordWrite & { readonly kind: 'insert' }): TaskEntry {
    const { taskId, namespace, idempotencyKey } = admission;
    const order = this.byOrder.length + 1;
    const entry: TaskEntry = { taskId, order, routeKey, record, index, events: [], ledger: new Map(), diagnostics: [] };
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
