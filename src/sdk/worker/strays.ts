/**
 * Handlers that still run though their claim is over, by task. Two handlers of one task must never run at once in one
 * worker, so a new claim of such a task waits here for the old handler to end. It is accepted all the same: unaccepted it
 * would be handed back, offered here again, and after a few times the task would fail as undeliverable.
 */
import type { HeldClaim } from './held-claim.js';

export class Strays {
  private readonly perTask = new Map<string, number>();
  private readonly waiting = new Map<string, HeldClaim>();
  private total = 0;

  get count(): number {
    return this.total;
  }

  add({ taskId }: HeldClaim): void {
    this.total += 1;
    this.perTask.set(taskId, (this.perTask.get(taskId) ?? 0) + 1);
  }

  /** Whether the claim has to wait; `ended` returns it then. */
  holdUp(held: HeldClaim): boolean {
    if (!this.perTask.has(held.taskId)) return false;
    this.waiting.set(held.taskId, held);
    return true;
  }

  /** A stray has ended. Returns the claim that waited for it, unless that is over or waits for another. */
  ended({ taskId }: HeldClaim): HeldClaim | null {
    this.total -= 1;
    const left = (this.perTask.get(taskId) ?? 0) - 1;
    if (left > 0) {
      this.perTask.set(taskId, left);
      return null;
    }
    this.perTask.delete(taskId);
    const held = this.waiting.get(taskId);
    this.waiting.delete(taskId);
    return held?.phase === 'open' ? held : null;
  }
}
