/**
 * Publishing: tells listeners what was committed, after the commit and in commit order, never before.
 * A listener that fails changes nothing: the error is reported and the others are still told.
 */
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { Link } from '../store/history-chain.js';

/** One record's share of a commit. */
export interface Committed {
  readonly taskId: string;
  /** Null: the task was admitted by this commit, or mended and cannot be trusted as it was before. */
  readonly before: TaskRecord | null;
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
  /** The sequence of `events[0]`; the others follow one by one. */
  readonly firstSequence: number;
  /** Of the task's hash chain; the events share it. */
  readonly link: Link;
}

export type CommitListener = (commit: Committed) => void;

export class Publisher {
  private readonly listeners = new Set<CommitListener>();

  constructor(private readonly onListenerError: (error: unknown) => void) {}

  /** Returns the call that ends the subscription. */
  subscribe(listener: CommitListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  publish(commit: Committed): void {
    for (const listener of this.listeners) {
      try {
        listener(commit);
      } catch (error) {
        this.onListenerError(error);
      }
    }
  }
}
