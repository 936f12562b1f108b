/**
 * What was committed, told to listeners and readers inside the process: after the commit, in its order, frozen
 * (lifecycle.md section 4). A listener that fails changes nothing and keeps nobody else from being told; a reader that
 * does not read is cut, so that nothing grows without bound.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import { refuse } from '../kernel/refusal.js';
import { type Commit, commitOf } from './event.js';
import { ReeveRefusal } from './refusal.js';

export type CommitListener = (commit: Commit) => void | PromiseLike<void>;

export interface CommitsOptions {
  /** Only those of this task. */
  readonly taskId?: string;
  /** Ends the reading without an error. */
  readonly signal?: AbortSignal;
}

/** Commits that a reader may leave unread before it is cut. */
export const MAX_UNREAD_COMMITS = 10_000;

export class Commits {
  private readonly listeners = new Set<CommitListener>();
  private readonly readers = new Set<CommitReader>();
  private readonly unsubscribe: () => void;

  constructor(
    authority: Authority,
    private readonly onDefect: (error: unknown) => void,
  ) {
    this.unsubscribe = authority.subscribe((committed) => this.tell(committed));
  }

  /** Returns the call that ends the subscription. */
  subscribe(listener: CommitListener): () => void {
    // Of its own, so that a listener that is given twice is told twice and each subscription ends alone.
    const own: CommitListener = (commit) => listener(commit);
    this.listeners.add(own);
    return () => this.listeners.delete(own);
  }

  /** Listens from this call on, not from the first read. */
  read({ taskId, signal }: CommitsOptions): AsyncIterableIterator<Commit> {
    const onAbort = (): void => reader.end();
    const reader = new CommitReader(taskId, () => {
      this.readers.delete(reader);
      signal?.removeEventListener('abort', onAbort);
    });
    if (signal?.aborted === true) {
      reader.end();
      return reader;
    }
    this.readers.add(reader);
    signal?.addEventListener('abort', onAbort, { once: true });
    return reader;
  }

  close(): void {
    this.unsubscribe();
    this.listeners.clear();
    for (const reader of this.readers) reader.end();
  }

  private tell(committed: Committed): void {
    const readers = [...this.readers].filter((reader) => reader.wants(committed.taskId));
    if (this.listeners.size === 0 && readers.length === 0) return;
    const commit = commitOf(committed);
    for (const reader of readers) reader.add(commit);
    for (const listener of this.listeners) this.guarded(listener, commit);
  }

  private guarded(listener: CommitListener, commit: Commit): void {
    try {
      Promise.resolve(listener(commit)).catch(this.onDefect);
    } catch (error) {
      this.onDefect(error);
    }
  }
}

type Step = IteratorResult<Commit, undefined>;

class CommitReader implements AsyncIterableIterator<Commit> {
  private unread: Commit[] = [];
  private waiting: ((step: Step) => void)[] = [];
  private ended = false;
  private failure: ReeveRefusal | null = null;

  constructor(
    private readonly taskId: string | undefined,
    private readonly onEnd: () => void,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  wants(taskId: string): boolean {
    return this.taskId === undefined || this.taskId === taskId;
  }

  add(commit: Commit): void {
    const waiting = this.waiting.shift();
    if (waiting !== undefined) return waiting({ done: false, value: commit });
    if (this.unread.length < MAX_UNREAD_COMMITS) return void this.unread.push(commit);
    const message = 'too much was left unread; what is missing is in the histories of the tasks';
    this.failure = new ReeveRefusal(refuse('SLOW_READER', message, { unread: String(MAX_UNREAD_COMMITS) }));
    this.end();
  }

  /** No more is added; what is unread can still be read. */
  end(): void {
    this.ended = true;
    this.onEnd();
    for (const waiting of this.waiting.splice(0)) waiting({ done: true, value: undefined });
  }

  async next(): Promise<Step> {
    const commit = this.unread.shift();
    if (commit !== undefined) return { done: false, value: commit };
    if (this.failure !== null) throw this.failure;
    if (this.ended) return { done: true, value: undefined };
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async return(): Promise<Step> {
    this.unread = [];
    this.end();
    return { done: true, value: undefined };
  }
}
