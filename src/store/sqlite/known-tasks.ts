/**
 * Where tasks stand: order, version and the last link of their chain by task id, for those met lately. Only the writer
 * thread is to change them, so what is known is right until a transaction is rolled back, and where it turns out to be
 * wrong it is looked up again; it saves look-ups. Bounded: two halves, the older one dropped whole when the younger is
 * full.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Link } from '../history-chain.js';

export interface KnownTask {
  readonly order: number;
  version: number;
  /** Null: the task has none yet. Undefined: not looked up. */
  link?: Link | null;
  /** The batch that wrote this version, as the writer counts them; 0: one that is not known any more. */
  writtenIn: number;
}

const HALF_CAPACITY = 50_000;

export class KnownTasks {
  private young = new Map<string, KnownTask>();
  private old = new Map<string, KnownTask>();
  /** Counts the batches of this process. */
  batch = 0;
  private readonly select: Statement<[string], [number, number]>;

  constructor(
    db: Database,
    private readonly halfCapacity: number = HALF_CAPACITY,
  ) {
    this.select = db
      .prepare<[string], [number, number]>('SELECT task_order, version FROM tasks WHERE task_id = ?')
      .raw();
  }

  get(taskId: string): KnownTask | null {
    const known = this.young.get(taskId) ?? this.old.get(taskId);
    if (known !== undefined) return known;
    const row = this.select.get(taskId);
    return row === undefined ? null : this.remember(taskId, { order: row[0], version: row[1], writtenIn: 0 });
  }

  /** As the file has it, whatever was known: another program may have written to it. */
  lookAgain(taskId: string): KnownTask | null {
    const known = this.young.get(taskId) ?? this.old.get(taskId);
    // This transaction's own write is what is there.
    if (known?.writtenIn === this.batch) return known;
    this.drop(taskId);
    return this.get(taskId);
  }

  remember(taskId: string, task: KnownTask): KnownTask {
    if (this.young.size >= this.halfCapacity) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(taskId, task);
    return task;
  }

  drop(taskId: string): void {
    this.young.delete(taskId);
    this.old.delete(taskId);
  }

  forget(): void {
    this.young = new Map();
    this.old = new Map();
  }
}
