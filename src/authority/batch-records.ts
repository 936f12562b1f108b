/**
 * The records that a batch is judged on: from the cache, or read for it. What was found stays at hand until the batch
 * is judged, since the cache may let a record go in the meantime, and a task that exists must not seem to be unknown.
 */
import { type FamilyCounts, NO_COUNTS } from '../store/family-rows.js';
import type { PurgedTask, StoredTask, TaskStore } from '../store/task-store.js';
import { type Loaded, isRecord } from './batch.js';
import type { DamageReports } from './damage-reports.js';
import type { RecordCache } from './record-cache.js';

export class BatchRecords {
  private readonly found = new Map<string, Loaded>();
  /** Attached children are judged with their parents in sight, and parents with the count of theirs. */
  private readonly parents = new Set<string>();
  private readonly counted = new Map<string, FamilyCounts | null>();
  private missing: string[] = [];
  /** About what the records that were read weigh, those from the cache not counted. */
  loadedBytes = 0;

  constructor(
    private readonly store: TaskStore,
    private readonly cache: RecordCache,
    private readonly damage: DamageReports,
  ) {}

  get missingCount(): number {
    return this.missing.length;
  }

  /** The batch will ask for this task. */
  need(taskId: string): void {
    if (this.found.has(taskId) && !this.parents.has(taskId)) return;
    const cached = this.cache.get(taskId);
    if (cached === undefined) this.missing.push(taskId);
    else this.keep(taskId, cached);
  }

  /** Reads what is needed and not cached. Throws StoreError. */
  async load(): Promise<void> {
    await this.loadMissing();
    if (this.parents.size > 0) await this.loadParents();
    if (this.counted.size > 0) await this.count();
  }

  /** Attached children of a task that live, as the store counts them. */
  liveChildren(taskId: string): number {
    return this.counted.get(taskId)?.liveChildren ?? 0;
  }

  private async loadMissing(): Promise<void> {
    if (this.missing.length === 0) return;
    const taskIds = [...new Set(this.missing)];
    this.missing = [];
    const tasks = await this.store.loadTasks(taskIds);
    taskIds.forEach((taskId, index) => {
      const task = tasks[index] ?? null;
      if (task?.kind === 'task') this.loadedBytes += task.record.admission.application.argsJson.length;
      this.damage.read(taskId, task !== null);
      this.keep(taskId, this.loadedOf(task));
    });
  }

  private keep(taskId: string, loaded: Loaded): void {
    this.parents.delete(taskId);
    this.found.set(taskId, loaded);
    if (!isRecord(loaded)) return;
    const { parent } = loaded.admission.policy;
    if (parent?.attached === true && !this.found.has(parent.taskId)) this.parents.add(parent.taskId);
    if (loaded.hasChildren && !this.counted.has(taskId)) this.counted.set(taskId, null);
  }

  /** Only to be read: their own families are not looked up. */
  private async loadParents(): Promise<void> {
    const wanted = [...this.parents].filter((taskId) => !this.found.has(taskId));
    const absent: string[] = [];
    for (const taskId of wanted) {
      const cached = this.cache.get(taskId);
      if (cached === undefined) absent.push(taskId);
      else this.found.set(taskId, cached);
    }
    if (absent.length === 0) return;
    const tasks = await this.store.loadTasks(absent);
    absent.forEach((taskId, index) => this.found.set(taskId, this.loadedOf(tasks[index] ?? null)));
  }

  private async count(): Promise<void> {
    const taskIds = [...this.counted].filter(([, counts]) => counts === null).map(([taskId]) => taskId);
    if (taskIds.length === 0) return;
    const counts = await this.store.familyCounts(taskIds);
    taskIds.forEach((taskId, index) => this.counted.set(taskId, counts[index] ?? NO_COUNTS));
  }

  /** Undefined: it was not asked for before. */
  get(taskId: string): Loaded | undefined {
    return this.cache.get(taskId) ?? this.found.get(taskId);
  }

  private loadedOf(task: StoredTask | PurgedTask | null): Loaded {
    if (task === null) return null;
    if (task.kind === 'purged') return { purged: task.tombstone };
    if (task.kind === 'task') return task.record;
    this.damage.met(task.taskId, task.detail);
    return { damaged: task.detail };
  }
}
