/**
 * The ids of a task's generations, as its history has them: an id names one life of its task for ever, and the record
 * knows the current one only. Read for a Resume that names an id, and for nothing else: the history is as long as it is.
 * Where an operator accepted a record in place of what its history had lost (`reeve.task.repaired`), that event says
 * how many generations there were, and only the ids that can still be read are known to be taken.
 */
import type { TaskEvent } from '../kernel/event.js';
import { StoreError } from '../store/store-error.js';
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

  /** Whether those of all generations before this one are known, as far as they can be. */
  covers(generation: number): boolean {
    return this.generations >= generation - 1;
  }

  /** Reads what was committed since it last did. Throws StoreError, `damaged` where nothing was accepted for what is lost. */
  async read(): Promise<void> {
    try {
      await this.readOn();
    } catch (error) {
      if (!(error instanceof StoreError) || error.failure !== 'damaged') throw error;
      if (!(await this.readPastDamage())) throw error;
    }
  }

  private async readOn(): Promise<void> {
    for (;;) {
      const page = await this.store.readHistory(this.taskId, this.readThrough, PAGE_EVENTS, PAGE_BYTES);
      if (page.length === 0) return;
      for (const { event } of page) this.see(event);
    }
  }

  /** As an audit reads it, commit by commit; false when the last that cannot be read was not accepted as lost. */
  private async readPastDamage(): Promise<boolean> {
    const [task] = await this.store.loadTasks([this.taskId]);
    if (task?.kind !== 'task') return false;
    const { lastEvent } = task.record;
    let whole = true;
    for (let more = true; more && this.readThrough < lastEvent;) {
      const stretch = await this.store.auditHistory(task.order, this.readThrough, lastEvent);
      for (const { events, lastNumber } of stretch.commits) {
        whole &&= events.ok;
        if (events.ok) for (const event of events.value) whole = this.see(event) || whole;
        this.readThrough = lastNumber;
      }
      more = stretch.more;
    }
    return whole;
  }

  /** True for the event behind which nothing before it counts. */
  private see(event: TaskEvent): boolean {
    this.readThrough = event.number;
    switch (event.type) {
      case 'task.submitted':
      case 'reeve.task.generation_started':
        this.ids.add(event.data.generationId);
        this.generations += 1;
        return false;
      case 'reeve.task.repaired': {
        const { accepted } = event.data;
        if (accepted === null) return false;
        this.ids.add(accepted.generationId);
        this.generations = accepted.generation;
        return true;
      }
      default:
        return false;
    }
  }
}
