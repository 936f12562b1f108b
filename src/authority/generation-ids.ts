/**
 * The ids of a task's generations, as its history has them: an id names one life of its task for ever, and the record
 * knows the current one only. Read for a Resume that names an id, and for nothing else: the history is as long as it is.
 */
import type { TaskStore } from '../store/task-store.js';

const PAGE_EVENTS = 1_000;
const PAGE_BYTES = 1_048_576;

export class GenerationIds {
  private readonly ids = new Set<string>();
  private generations = 0;
  private readThrough = 0;

  constructor(
    private readonly store: TaskStore,
    private readonly taskId: string,
  ) {}

  get known(): ReadonlySet<string> {
    return this.ids;
  }

  /** Whether those of all generations before this one are known. */
  covers(generation: number): boolean {
    return this.generations >= generation - 1;
  }

  /** Reads what was committed since it last did. Throws StoreError. */
  async read(): Promise<void> {
    for (;;) {
      const page = await this.store.readHistory(this.taskId, this.readThrough, PAGE_EVENTS, PAGE_BYTES);
      if (page.length === 0) return;
      for (const { event } of page) {
        this.readThrough = event.number;
        if (event.type !== 'task.submitted' && event.type !== 'reeve.task.generation_started') continue;
        this.ids.add(event.data.generationId);
        this.generations += 1;
      }
    }
  }
}
