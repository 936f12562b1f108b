/**
 * Pools: the attached sessions of one subscription, those with a free slot in a ring. Whoever asks for a session
 * gets the next in turn, at a cost that does not depend on how many sessions there are.
 */
import type { Subscription } from '../kernel/placement.js';
import type { WorkSession } from './work-session.js';

export class Pool {
  private ring: WorkSession[] = [];
  private head = 0;
  private readonly inRing = new Set<WorkSession>();
  private readonly members = new Set<WorkSession>();

  constructor(
    readonly subscription: Subscription,
    /** The last session left: subscriptions are the callers' to choose, so none is kept for nobody. */
    private readonly onEmpty: () => void,
  ) {}

  join(session: WorkSession): void {
    this.members.add(session);
  }

  /** The session takes nothing from here any more, and nothing here remembers it. */
  leave(session: WorkSession): void {
    if (!this.members.delete(session)) return;
    if (this.inRing.delete(session)) this.ring.splice(this.ring.indexOf(session, this.head), 1);
    if (this.members.size === 0) this.onEmpty();
  }

  get hasCredit(): boolean {
    this.skipSpent();
    return this.head < this.ring.length;
  }

  /** Free slots, counted as far as `most`. */
  freeSlots(most: number): number {
    let free = 0;
    for (let at = this.head; at < this.ring.length && free < most; at++)
      free += Math.max(this.ring[at]?.credit ?? 0, 0);
    return Math.min(free, most);
  }

  /** The session may have a free slot now; it is looked at again when its turn comes. */
  offer(session: WorkSession): void {
    if (session.credit <= 0 || this.inRing.has(session) || !this.members.has(session)) return;
    this.inRing.add(session);
    this.ring.push(session);
  }

  /** Takes one slot of the next session in turn; null when none is free. */
  take(): WorkSession | null {
    this.skipSpent();
    const session = this.ring[this.head];
    if (session === undefined) return null;
    this.dropHead();
    session.reserve();
    this.offer(session);
    return session;
  }

  private skipSpent(): void {
    for (let session = this.ring[this.head]; session !== undefined; session = this.ring[this.head]) {
      if (session.credit > 0) return;
      this.dropHead();
    }
  }

  private dropHead(): void {
    const session = this.ring[this.head];
    if (session !== undefined) this.inRing.delete(session);
    this.head += 1;
    if (this.head >= 1_024 || this.head === this.ring.length) {
      this.ring = this.ring.slice(this.head);
      this.head = 0;
    }
  }
}

/** Subscriptions are equal when their texts are. */
export function subscriptionKey(subscription: Subscription): string {
  const text = (set: ReadonlySet<string> | null): string => (set === null ? '*' : [...set].sort().join('\t'));
  const { namespaces, queues, actionKinds, executionTargets, capabilities } = subscription;
  return [namespaces, queues, actionKinds, executionTargets, capabilities].map(text).join('\n');
}
