/**
 * The chains of tasks as the writer continues them: the link before is known for tasks met lately, and is otherwise one
 * look-up in the index of histories.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { HistoryChain, Link } from '../history-chain.js';
import type { KnownTask } from './known-tasks.js';

/** What a commit adds to the history of a task. */
export interface AppendedRow {
  readonly taskId: string;
  readonly events: number;
  readonly history: string;
}

export class TaskChains {
  private readonly last: Statement<[number], string>;
  private readonly admission: Statement<[number], string>;

  constructor(
    db: Database,
    private readonly chain: HistoryChain,
  ) {
    this.last = db
      .prepare<[number], string>(
        'SELECT lower(hex(link)) FROM history WHERE task_order = ? ORDER BY last_number DESC LIMIT 1',
      )
      .pluck();
    this.admission = db.prepare<[number], string>('SELECT admission FROM admissions WHERE task_order = ?').pluck();
  }

  /** The link of this row, which the task then ends with. The task has its new version already. */
  next(task: KnownTask, { taskId, history }: AppendedRow, admission: string | null): Link {
    const previous = task.link === undefined ? this.lastLink(task.order) : task.link;
    const first = previous === null ? (admission ?? this.admission.get(task.order) ?? null) : null;
    const place = { taskId, lastNumber: task.version, previous, admission: first };
    task.link = this.chain.linkOf(place, history);
    return task.link;
  }

  /** Null where there is none, or where the last commit is from before there were links. */
  private lastLink(order: number): Link | null {
    const link = this.last.get(order) ?? '';
    return link === '' ? null : link;
  }
}

export function bytesOf(link: Link): Buffer {
  return Buffer.from(link, 'hex');
}
