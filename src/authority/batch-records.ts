/**
 * The records that a batch is judged on: from the cache, or read for it. What was found stays at hand until the batch
 * is judged, since the cache may let a record go in the meantime, and a task that exists must not seem to be unknown.
 */
import type { StoredTask, TaskStore } from '../store/task-store.js';
import type { Loaded } from './batch.js';
import type { RecordCache } from './record-cache.js';

export class BatchRecords {
  private readonly found = new Map<string, Loaded>();
  private missing: string[] = [];
  /** About what the records that were read weigh, those from the cache not counted. */
  loadedBytes = 0;

  constructor(
    private readonly store: TaskStore,
    private readonly cache: RecordCache,
  ) {}

  get missingCount(): number {
    return this.missing.length;
  }

  /** The batch will ask for this task. */
  need(taskId: string): void {
    if (this.found.has(taskId)) return;
    const cached = this.cache.get(taskId);
    if (cached === undefined) this.missing.push(taskId);
    else this.found.set(taskId, cached);
  }

  /** Reads what is needed and not cached. Throws StoreError. */
  async load(): Promise<void> {
    if (this.missing.length === 0) return;
    const taskIds = [...new Set(this.missing)];
    this.missing = [];
    const tasks = await this.store.loadTasks(taskIds);
    taskIds.forEach((taskId, index) => {
      const task = tasks[index] ?? null;
      this.found.set(taskId, loadedOf(task));
      if (task?.kind === 'task') this.loadedBytes += task.record.admission.application.argsJson.length;
    });
  }

  /** Undefined: it was not asked for before. */
  get(taskId: string): Loaded | undefined {
    return this.cache.get(taskId) ?? this.found.get(taskId);
  }
}

function loadedOf(task: StoredTask | null): Loaded {
  if (task === null) return null;
  return task.kind === 'task' ? task.record : { damaged: task.detail };
}
