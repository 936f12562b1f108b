/**
 * What anybody may ask the authority: records, histories, lists and events, each as the store had it after the call was
 * made. It changes nothing. A store that does not answer and a record that is damaged are refusals, never exceptions.
 */
import { type FamilyContext, NO_FAMILY } from '../kernel/draft.js';
import { fullPermit, type PermitRules, type PermitWait, permitStance, permitsOf } from '../kernel/permits.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { taskPurged } from '../kernel/tombstone.js';
import type { EventBounds, EventPage, EventScope } from '../store/event-pages.js';
import type { OperationEntry } from '../store/purge-rows.js';
import type { ListPage, ListQuery, StoredEvent, TaskStore } from '../store/task-store.js';
import { taskNotFound } from './batch.js';
import type { DamageReports } from './damage-reports.js';
import { GenerationIds } from './generation-ids.js';
import type { RecordCache } from './record-cache.js';
import { recordDamaged, storeRefusal } from './store-refusal.js';
import type { Found } from './submit-work.js';

/** A value read, or the refusal that stands for it. */
export type Read<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly refusal: Refusal };

/** What is read from, and who is told of what went wrong. */
export interface ReadSource {
  readonly store: TaskStore;
  readonly cache: RecordCache;
  readonly permitRules: PermitRules;
  readonly damage: DamageReports;
  readonly noteFailure: (error: unknown) => void;
  readonly onDefect: (error: unknown) => void;
}

export class TaskReader {
  constructor(private readonly source: ReadSource) {}

  /** The record as the store has it after this call was made. */
  async get(taskId: string): Promise<Read<TaskRecord>> {
    const found = await this.find(taskId);
    if (!found.ok) return found;
    const { value } = found;
    return value.kind === 'task' ? { ok: true, value: value.record } : { ok: false, refusal: taskPurged(taskId) };
  }

  /** As `get`, and what is left of a task that was purged. */
  async find(taskId: string): Promise<Read<Found>> {
    const cached = this.source.cache.get(taskId);
    if (cached !== undefined) return { ok: true, value: { kind: 'task', record: cached } };
    return this.read(taskId, async () => {
      const [task] = await this.source.store.loadTasks([taskId]);
      if (task === null || task === undefined) return { ok: false, refusal: taskNotFound(taskId) };
      if (task.kind !== 'damaged') return { ok: true, value: task };
      this.source.damage.met(taskId, task.detail);
      return { ok: false, refusal: recordDamaged(taskId) };
    });
  }

  /** What a decision on this record may know beside it, read from the store; nothing for a task that is alone. */
  async familyOf(record: TaskRecord): Promise<Read<FamilyContext>> {
    const { taskId, policy } = record.admission;
    const link = policy.parent?.attached === true ? policy.parent : null;
    if (link === null && !record.hasChildren && !this.queuesForPermits(record)) return { ok: true, value: NO_FAMILY };
    return this.read(taskId, async () => {
      const [counts] = record.hasChildren ? await this.source.store.familyCounts([taskId]) : [];
      const [parent] = link === null ? [] : await this.source.store.loadTasks([link.taskId]);
      const seen = link === null ? undefined : parent?.kind === 'task' ? parent.record : null;
      const wait = await this.permitWait(record);
      return {
        ok: true,
        value: { parent: seen, liveChildren: counts?.liveChildren ?? 0, permitAwaited: fullPermit(wait) },
      };
    });
  }

  /** Where it stands in the order of admission. */
  async orderOf(taskId: string): Promise<Read<number>> {
    return this.read(taskId, async () => {
      const [task] = await this.source.store.loadTasks([taskId]);
      if (task === null || task === undefined) return { ok: false, refusal: taskNotFound(taskId) };
      if (task.kind === 'purged') return { ok: false, refusal: taskPurged(taskId) };
      return { ok: true, value: task.order };
    });
  }

  /** The permit that the task waits for; null for nearly every task. Throws StoreError. */
  async permitWait(record: TaskRecord): Promise<PermitWait | null> {
    return this.queuesForPermits(record) ? this.source.store.permitWait(record.admission.taskId) : null;
  }

  async findTaskId(namespace: string, idempotencyKey: string): Promise<Read<string>> {
    return this.read(null, async () => {
      const taskId = await this.source.store.findTaskId(namespace, idempotencyKey);
      if (taskId !== null) return { ok: true, value: taskId };
      return {
        ok: false,
        refusal: refuse('TASK_NOT_FOUND', 'no task was admitted under this key', {
          namespace,
          idempotency_key: idempotencyKey,
        }),
      };
    });
  }

  /** Events above `afterNumber`, ascending; see TaskStore.readHistory for the bounds. */
  async history(
    taskId: string,
    afterNumber: number,
    limit: number,
    maxBytes: number,
  ): Promise<Read<readonly StoredEvent[]>> {
    return this.read(taskId, async () => ({
      ok: true,
      value: await this.source.store.readHistory(taskId, afterNumber, limit, maxBytes),
    }));
  }

  async event(taskId: string, eventNumber: number): Promise<Read<StoredEvent | null>> {
    return this.read(taskId, async () => ({ ok: true, value: await this.source.store.readEvent(taskId, eventNumber) }));
  }

  /** Events of many tasks in the order of the store; see TaskStore.readEvents for the bounds. */
  async events(scope: EventScope, after: number, limit: number, maxBytes: number): Promise<Read<EventPage>> {
    return this.read(null, async () => ({
      ok: true,
      value: await this.source.store.readEvents(scope, after, limit, maxBytes),
    }));
  }

  async eventBounds(): Promise<Read<EventBounds>> {
    return this.read(null, async () => ({ ok: true, value: await this.source.store.eventBounds() }));
  }

  async operation(key: string): Promise<Read<OperationEntry | null>> {
    return this.read(null, async () => ({ ok: true, value: await this.source.store.findOperation(key) }));
  }

  async list(query: ListQuery): Promise<Read<ListPage>> {
    return this.read(null, async () => ({ ok: true, value: await this.source.store.listTasks(query) }));
  }

  /** The ids of the generations a task has had, for who judges a Resume without applying it. */
  async generationIds(taskId: string): Promise<Read<ReadonlySet<string>>> {
    return this.read(taskId, async () => {
      const ids = new GenerationIds(this.source.store, taskId);
      await ids.read();
      return { ok: true, value: ids.known };
    });
  }

  private queuesForPermits(record: TaskRecord): boolean {
    return permitStance(record) === 'queued' && permitsOf(record.admission, this.source.permitRules).length > 0;
  }

  /** Runs a read; what the store throws is a refusal of it. */
  async read<Value>(taskId: string | null, reading: () => Promise<Read<Value>>): Promise<Read<Value>> {
    try {
      return await reading();
    } catch (error) {
      this.source.noteFailure(error);
      const refusal = storeRefusal(error, taskId);
      if (refusal.reason === 'INTERNAL') this.source.onDefect(error);
      if (refusal.reason === 'RECORD_DAMAGED' && taskId !== null) this.source.damage.met(taskId, String(error));
      return { ok: false, refusal };
    }
  }
}
