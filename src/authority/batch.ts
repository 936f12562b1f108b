/**
 * A batch in the making: the units of one transaction, found by task and by admission key so that decisions on the
 * same thing chain. Every record comes from the cache, which for a process that is alone on its store is the store.
 */
import type { Draft } from '../kernel/draft.js';
import { followParent } from '../kernel/family.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { RecordRead, SessionWrite } from '../store/commit-plan.js';
import type { LinkWrite } from '../store/family-rows.js';
import { type Tombstone, taskPurged } from '../kernel/tombstone.js';
import type { PermitWrite } from '../store/permit-rows.js';
import type { OperationWrite, PurgeWrite, TombstoneRepair } from '../store/purge-rows.js';
import { type IndexRules, placementIndex } from './placement-index.js';
import type { RepairUnit } from './repair-unit.js';
import { recordDamaged } from './store-refusal.js';
import { LinksUnit, OperationUnit, PermitsUnit, PurgeUnit, RecordUnit, SessionUnit, type Unit } from './unit.js';
import type { Work } from './work.js';

export type Located =
  { readonly kind: 'unit'; readonly unit: RecordUnit } | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Tasks on which a batch notes their first follower: each is a plan more than the works of the batch make. */
export const MAX_NOTES_PER_BATCH = 256;

/** What was read for this batch: a record, or why there is none. */
export type Loaded = TaskRecord | Unreadable | null;

type Unreadable = { readonly damaged: string } | { readonly purged: Tombstone };

export class Batch {
  readonly units: Unit[] = [];
  private readonly byTask = new Map<string, RecordUnit>();
  private readonly byKey = new Map<string, RecordUnit>();
  private places = 0;
  private notes = 0;
  private reordered = false;

  constructor(
    /** Epoch ms, the store's clock; one moment for the whole batch. */
    readonly now: number,
    private readonly loaded: (taskId: string) => Loaded | undefined,
    private readonly liveChildren: (taskId: string) => number,
    readonly rules: IndexRules,
  ) {}

  /**
   * The unit of a task that exists, begun from its record when this batch has not touched it yet. An attached child is
   * first brought to where its parent is, whatever it was looked for.
   */
  locate(taskId: string): Located {
    const known = this.byTask.get(taskId);
    if (known !== undefined) return this.caughtUp(known);
    const record = this.loaded(taskId);
    if (!isRecord(record)) return { kind: 'refused', refusal: refusalFor(record ?? null, taskId) };
    const unit = RecordUnit.changing(record, this.now);
    if (record.hasChildren) unit.draft.liveChildren = this.liveChildren(taskId);
    this.add(unit);
    this.byTask.set(taskId, unit);
    return this.caughtUp(unit);
  }

  private caughtUp(unit: RecordUnit): Located {
    const { draft } = unit;
    const parent = draft.record.admission.policy.parent;
    if (parent?.attached === true && !unit.sealed) {
      draft.parent = this.read(unit, parent.taskId);
      followParent(draft);
    }
    return { kind: 'unit', unit };
  }

  /** The record of a task as this batch leaves it so far. */
  peek(taskId: string): Loaded {
    return this.byTask.get(taskId)?.draft.record ?? this.loaded(taskId) ?? null;
  }

  /**
   * Reads another task's record for a decision: its write checks that it was so. Where this batch changes that task the
   * reader comes after it, and what was read is sealed. Null: there is none that can be trusted.
   */
  read(reader: RecordUnit, taskId: string): TaskRecord | null {
    const record = this.peek(taskId);
    if (!isRecord(record)) return null;
    const unit = this.byTask.get(taskId);
    if (unit !== undefined) {
      unit.sealed = true;
      if (reader.place < unit.place) {
        reader.place = this.places++;
        this.reordered = true;
      }
    }
    reader.readsRecord(this.readOf(record));
    return record;
  }

  /** What rests on a record as this batch has it: if the batch changes it, on that very change. */
  private readOf(record: TaskRecord): RecordRead {
    const { taskId } = record.admission;
    const unit = this.byTask.get(taskId);
    const changed = unit !== undefined && unit.draft.events.length > 0;
    return { taskId, version: record.lastEvent, ...(changed ? { ofBatch: true } : {}) };
  }

  /** Whether there is room for so many notes of first followers; a batch has room for those of any one admission. */
  takeNotes(count: number): boolean {
    if (this.notes + count > MAX_NOTES_PER_BATCH) return false;
    this.notes += count;
    return true;
  }

  /** Whether changing this task again would undo what another decision, or the telling of its followers, rests on. */
  isSealed(taskId: string): boolean {
    const unit = this.byTask.get(taskId);
    return unit !== undefined && (unit.sealed || unit.hasNews);
  }

  /** The units in the order in which they are to be committed. */
  inOrder(): readonly Unit[] {
    return this.reordered ? this.units.toSorted((left, right) => left.place - right.place) : this.units;
  }

  private add(unit: Unit): void {
    unit.place = this.places++;
    this.units.push(unit);
  }

  /** The unit of a task that this batch has admitted or changed already. */
  unitOf(taskId: string): RecordUnit | undefined {
    return this.byTask.get(taskId);
  }

  /** The unit that admits this key in this very batch. */
  admitted(namespace: string, idempotencyKey: string): RecordUnit | undefined {
    return this.byKey.get(admissionKey(namespace, idempotencyKey));
  }

  /**
   * The store decides whether its key and its id are free. An id that the caller wants may be that of a task that is
   * there: what is said of that task in this batch then stays apart, and is not lost with this unit.
   */
  admit(draft: Draft, id: 'made' | 'wanted'): RecordUnit {
    const { taskId, namespace, idempotencyKey } = draft.record.admission;
    const unit = RecordUnit.admitting(draft, id === 'made');
    this.add(unit);
    if (id === 'made' || !this.isKnown(taskId)) this.byTask.set(taskId, unit);
    this.byKey.set(admissionKey(namespace, idempotencyKey), unit);
    return unit;
  }

  /** Drops what a defect may have left half done; the other works of that unit are judged in a later batch. */
  discard(taskId: string, again: (work: Work) => void): void {
    const unit = this.byTask.get(taskId);
    if (unit === undefined) return;
    this.byTask.delete(taskId);
    const { admission } = unit.draft.record;
    this.byKey.delete(admissionKey(admission.namespace, admission.idempotencyKey));
    this.units.splice(this.units.indexOf(unit), 1);
    for (const { work } of unit.answers) again(work);
  }

  writeLinks(links: readonly LinkWrite[]): LinksUnit {
    const unit = new LinksUnit(links);
    this.add(unit);
    return unit;
  }

  addRepair(unit: RepairUnit): void {
    this.add(unit);
  }

  /**
   * What the store keeps of a task's permits is brought to what its record says; with nothing to write for a task that
   * needs none. Null: there is no record that can be trusted.
   */
  align(taskId: string): PermitsUnit | null {
    const record = this.peek(taskId);
    if (record === null || 'damaged' in record || 'purged' in record) return null;
    const { readyOrder, permits: wish } = placementIndex(record, this.rules);
    return this.writePermits(
      [this.readOf(record)],
      wish === undefined ? [] : [{ kind: 'aligned', taskId, readyOrder, wish }],
    );
  }

  writePermits(reads: readonly RecordRead[], permits: readonly PermitWrite[]): PermitsUnit {
    const unit = new PermitsUnit(reads, permits);
    this.add(unit);
    return unit;
  }

  writeSession(write: SessionWrite): SessionUnit {
    const unit = new SessionUnit(write);
    this.add(unit);
    return unit;
  }

  /** What the purge rests on is checked by its write: the task at its version, its parent's record as it was read. */
  purge(write: PurgeWrite, parent: TaskRecord | null): PurgeUnit {
    const unit = new PurgeUnit(write, parent === null ? [] : [this.readOf(parent)]);
    this.add(unit);
    return unit;
  }

  /** Also what the operation did to tombstones. */
  keepOperation(write: OperationWrite, tombstones?: readonly TombstoneRepair[]): OperationUnit {
    const unit = new OperationUnit(write, tombstones);
    this.add(unit);
    return unit;
  }

  private isKnown(taskId: string): boolean {
    return this.byTask.has(taskId) || (this.loaded(taskId) ?? null) !== null;
  }
}

function admissionKey(namespace: string, idempotencyKey: string): string {
  return `${namespace}\n${idempotencyKey}`;
}

export function isRecord(loaded: Loaded | undefined): loaded is TaskRecord {
  return loaded !== null && loaded !== undefined && !('damaged' in loaded) && !('purged' in loaded);
}

/** Why there is no record. */
export function refusalFor(
  loaded: Unreadable | null,
  taskId: string,
  metadata: Readonly<Record<string, string>> = {},
): Refusal {
  if (loaded === null) return taskNotFound(taskId, metadata);
  return 'damaged' in loaded ? recordDamaged(taskId) : taskPurged(taskId, metadata);
}

export function taskNotFound(taskId: string, metadata: Readonly<Record<string, string>> = {}): Refusal {
  return refuse('TASK_NOT_FOUND', 'there is no such task', { task_id: taskId, ...metadata });
}
