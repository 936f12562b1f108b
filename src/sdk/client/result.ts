/**
 * Waiting for a task's end, and the errors that say how it ended when it did not end well.
 */
import type { Task, TaskErrorInfo } from './task.js';
import { endsGeneration } from './event.js';
import { pause } from '../transport/retry.js';
import type { WatchItem } from './watch.js';
import { isTerminal } from './words.js';

/** The task is over and not completed. */
export class TaskNotCompleted extends Error {
  override readonly name: string = 'TaskNotCompleted';

  constructor(
    readonly task: Task,
    message: string,
  ) {
    super(message);
  }
}

export class TaskFailed extends TaskNotCompleted {
  override readonly name = 'TaskFailed';

  /** What went wrong, in the worker's or the authority's words. */
  get error(): TaskErrorInfo | undefined {
    return this.task.error;
  }
}

export class TaskCancelled extends TaskNotCompleted {
  override readonly name = 'TaskCancelled';
}

export class TaskTimedOut extends TaskNotCompleted {
  override readonly name = 'TaskTimedOut';
}

export class TaskSkipped extends TaskNotCompleted {
  override readonly name = 'TaskSkipped';
}

/** It completed and was purged since: its result is gone. */
export class TaskPurged extends TaskNotCompleted {
  override readonly name = 'TaskPurged';
}

export interface ResultSource {
  /** The task in full. */
  get(): Promise<Task>;
  /** What commits from now on. */
  watch(): AsyncIterable<WatchItem>;
}

/** A watch that ends at once without news must not be opened in a tight loop. */
const REOPEN_MS = 100;

/** The task once it is over, however it ended. */
export async function waitForEnd(source: ResultSource, signal?: AbortSignal): Promise<Task> {
  for (;;) {
    const task = await source.get();
    if (isTerminal(task.status)) return task;
    let looked = false;
    for await (const item of source.watch()) {
      if (item.kind === 'event' && endsGeneration(item.event)) return source.get();
      if (looked) continue;
      // The watch is open now: what ended between the first look and its opening is seen here.
      looked = true;
      const again = await source.get();
      if (isTerminal(again.status)) return again;
    }
    await pause(REOPEN_MS, signal);
  }
}

/** The completed task, or the error that its end deserves. */
export function requireCompleted(task: Task): Task {
  const because = task.error?.message ?? task.reason?.summary ?? '';
  const message = `task ${task.id} ${task.status}${because === '' ? '' : `: ${because}`}`;
  switch (task.status) {
    case 'completed':
      if (task.purged) throw new TaskPurged(task, `task ${task.id} completed and was purged: its result is gone`);
      return task;
    case 'failed':
      throw new TaskFailed(task, message);
    case 'cancelled':
      throw new TaskCancelled(task, message);
    case 'timed_out':
      throw new TaskTimedOut(task, message);
    case 'skipped':
      throw new TaskSkipped(task, message);
    default:
      throw new TaskNotCompleted(task, message);
  }
}
