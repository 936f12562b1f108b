/**
 * The history of one task as a source: from any event on, over all generations, until the current one is over and told.
 * Its position is the number of an event.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import type { TaskRecord } from '../kernel/record.js';
import { isTerminal } from '../kernel/status.js';
import { invalidCursor } from '../wire/cursor.js';
import type { TaskFeed, TaskListener } from './task-feed.js';
import { valueOf } from './task-views.js';
import {
  REPLAY_PAGE_BYTES,
  REPLAY_PAGE_EVENTS,
  type SourcePage,
  type Told,
  type WatchSource,
  lastSequenceOf,
} from './watch-source.js';

export class TaskSource implements WatchSource {
  sequence = 0;
  /** The number of the last event told or passed over. */
  private last = 0;
  private record: TaskRecord | null = null;

  constructor(
    private readonly authority: Authority,
    private readonly taskId: string,
    readonly purpose: string,
    /** The number of the last event the reader has; null: only what commits from now on. */
    private readonly after: number | null,
  ) {}

  get position(): string {
    return String(this.last);
  }

  get isOver(): boolean {
    const { record } = this;
    return record !== null && isTerminal(record.status) && record.lastEvent === this.last;
  }

  follow(feed: TaskFeed, listener: TaskListener): () => void {
    return feed.follow(this.taskId, listener);
  }

  /** A cursor may be of an event that is committed and not told to this thread yet; beyond that it is not of this task. */
  async open(): Promise<void> {
    const record = valueOf(await this.authority.reads.get(this.taskId));
    this.last = this.after ?? record.lastEvent;
    if (this.last === 0) return;
    const stored = valueOf(await this.authority.reads.event(this.taskId, this.last));
    if (stored === null) {
      valueOf(await this.authority.reads.get(this.taskId));
      throw invalidCursor('lies beyond the history of this task');
    }
    this.sequence = stored.sequence;
  }

  /**
   * The record is read before the history, so the history reaches at least as far. It may reach further: a commit is
   * seen by readers before its listeners hear of it. That one comes as it is published, and finds its events told.
   */
  async read(): Promise<SourcePage> {
    const { authority, taskId } = this;
    const record = valueOf(await authority.reads.get(taskId));
    const page = valueOf(await authority.reads.history(taskId, this.last, REPLAY_PAGE_EVENTS, REPLAY_PAGE_BYTES));
    if (page.length === 0 && record.lastEvent > this.last) {
      // Purged since, and then the task says so.
      valueOf(await authority.reads.get(taskId));
      throw new Error('the history ends before the record does');
    }
    this.record = record;
    const items = page.map(({ event, sequence, link }) => ({ admission: record.admission, event, sequence, link }));
    return { items, more: items.length > 0, through: this.sequence };
  }

  hear(commit: Committed): readonly Told[] {
    const { record, events, firstSequence, link } = commit;
    return events
      .map((event, index) => ({ admission: record.admission, event, sequence: firstSequence + index, link }))
      .filter(({ event }) => event.number > this.last);
  }

  passed({ event, sequence }: Told): void {
    this.last = event.number;
    this.sequence = sequence;
  }

  passedAll(done: SourcePage | Committed): void {
    if (!('record' in done)) return;
    this.record = done.record;
    this.sequence = Math.max(this.sequence, lastSequenceOf(done));
  }
}
