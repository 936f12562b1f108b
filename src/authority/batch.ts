/**
 * A batch in the making: the units of one transaction, found by task and by admission key so that decisions on the
 * same thing chain. Every record comes from the cache, which for a process that is alone on its store is the store.
 */
import type { Draft } from '../kernel/draft.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { SessionWrite } from '../store/commit-plan.js';
import { recordDamaged } from './store-refusal.js';
import { RecordUnit, SessionUnit, type Unit } from './unit.js';
import type { Work } from './work.js';

export type Located =
  { readonly kind: 'unit'; readonly unit: RecordUnit } | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What was read for this batch: a record, or why there is none. */
export type Loaded = TaskRecord | { readonly damaged: string } | null;

export class Batch {
  readonly units: Unit[] = [];
  private readonly byTask = new Map<string, RecordUnit>();
  private readonly byKey = new Map<string, RecordUnit>();

  constructor(
    /** Epoch ms, the store's clock; one moment for the whole batch. */
    readonly now: number,
    private readonly loaded: (taskId: string) => Loaded | undefined,
  ) {}

  /** The unit of a task that exists, begun from its record when this batch has not touched it yet. */
  locate(taskId: string): Located {
    const known = this.byTask.get(taskId);
    if (known !== undefined) return { kind: 'unit', unit: known };
    const record = this.loaded(taskId);
    if (record === undefined || record === null) return { kind: 'refused', refusal: taskNotFound(taskId) };
    if ('damaged' in record) return { kind: 'refused', refusal: recordDamaged(taskId) };
    const unit = RecordUnit.changing(record, this.now);
    this.units.push(unit);
    this.byTask.set(taskId, unit);
    return { kind: 'unit', unit };
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
    const unit = RecordUnit.admitting(draft);
    this.units.push(unit);
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

  writeSession(write: SessionWrite): SessionUnit {
    const unit = new SessionUnit(write);
    this.units.push(unit);
    return unit;
  }

  private isKnown(taskId: string): boolean {
    return this.byTask.has(taskId) || (this.loaded(taskId) ?? null) !== null;
  }
}

function admissionKey(namespace: string, idempotencyKey: string): string {
  return `${namespace}\n${idempotencyKey}`;
}

export function taskNotFound(taskId: string): Refusal {
  return refuse('TASK_NOT_FOUND', 'there is no such task', { task_id: taskId });
}
