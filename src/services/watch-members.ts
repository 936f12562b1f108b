/**
 * Who belongs to a scope. A namespace or a queue is told from the task itself; whether a task is below another one is
 * known of those met before, and of others the store has to say. What is remembered is bounded.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import type { EventPage, EventScope } from '../store/event-pages.js';
import { valueOf } from './task-views.js';

/** Tasks remembered on each side, of ids of at most 128 characters. */
const MAX_REMEMBERED = 10_000;

export interface ScopeMembers {
  /** Throws RefusalError. */
  open(): Promise<EventScope>;
  /** Null: the store has to say. */
  has(commit: Committed): boolean | null;
  /** What the store said. */
  found(page: EventPage): void;
}

export class QueueMembers implements ScopeMembers {
  constructor(
    private readonly namespace: string,
    /** Null: every queue. */
    private readonly queue: string | null,
  ) {}

  open(): Promise<EventScope> {
    const { namespace, queue } = this;
    return Promise.resolve({ kind: 'queue', namespace, queue });
  }

  has({ record }: Committed): boolean {
    const { namespace, queue } = record.admission;
    return namespace === this.namespace && (this.queue === null || queue === this.queue);
  }

  found(): void {
    return;
  }
}

export class SubtreeMembers implements ScopeMembers {
  private readonly inside = new Set<string>();
  private readonly outside = new Set<string>();
  /** Asked for and not answered yet: its last event, and the task. */
  private asked: { readonly sequence: number; readonly taskId: string } | null = null;

  constructor(
    private readonly authority: Authority,
    private readonly rootId: string,
  ) {}

  async open(): Promise<EventScope> {
    return { kind: 'subtree', rootOrder: valueOf(await this.authority.reads.orderOf(this.rootId)) };
  }

  has({ taskId, record, firstSequence, events }: Committed): boolean | null {
    if (taskId === this.rootId || this.inside.has(taskId)) return true;
    const { parent } = record.admission.policy;
    if (parent === null || this.outside.has(taskId)) return false;
    if (parent.taskId === this.rootId || this.inside.has(parent.taskId)) {
      remember(this.inside, taskId);
      return true;
    }
    this.asked = { taskId, sequence: firstSequence + events.length - 1 };
    return null;
  }

  found({ events, through }: EventPage): void {
    for (const { taskId } of events) remember(this.inside, taskId);
    const { asked } = this;
    if (asked === null || asked.sequence > through) return;
    this.asked = null;
    if (!this.inside.has(asked.taskId)) remember(this.outside, asked.taskId);
  }
}

function remember(known: Set<string>, taskId: string): void {
  if (known.size >= MAX_REMEMBERED) known.clear();
  known.add(taskId);
}
