/**
 * Commits by task: one subscription to the authority, many listeners, each told of its own task only, or of all.
 * Told after the commit and in its order. A listener must be quick and must not throw.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';

export type TaskListener = (commit: Committed) => void;

export class TaskFeed {
  private readonly listeners = new Map<string, Set<TaskListener>>();
  private readonly ofAll = new Set<TaskListener>();
  private readonly unsubscribe: () => void;

  constructor(authority: Authority) {
    this.unsubscribe = authority.subscribe((commit) => {
      for (const listener of this.ofAll) listener(commit);
      if (this.listeners.size === 0) return;
      const interested = this.listeners.get(commit.taskId);
      if (interested !== undefined) for (const listener of interested) listener(commit);
    });
  }

  /** Returns the call that ends the subscription. */
  follow(taskId: string, listener: TaskListener): () => void {
    const known = this.listeners.get(taskId);
    if (known === undefined) this.listeners.set(taskId, new Set([listener]));
    else known.add(listener);
    return () => this.unfollow(taskId, listener);
  }

  followAll(listener: TaskListener): () => void {
    this.ofAll.add(listener);
    return () => void this.ofAll.delete(listener);
  }

  close(): void {
    this.unsubscribe();
    this.ofAll.clear();
    this.listeners.clear();
  }

  private unfollow(taskId: string, listener: TaskListener): void {
    const known = this.listeners.get(taskId);
    if (known === undefined) return;
    known.delete(listener);
    if (known.size === 0) this.listeners.delete(taskId);
  }
}
