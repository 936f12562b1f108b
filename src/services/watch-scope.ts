/**
 * The events of many tasks as a source, in the order of the whole store: of a namespace, a queue, or a task and all
 * below it. Its position is a sequence. What a purge may have taken from behind the reader's back is never passed over:
 * the horizon comes with every page, and a reader who stands below it is told that its cursor has expired.
 */
import type { Authority } from '../authority/authority.js';
import type { Committed } from '../authority/publisher.js';
import type { EventScope, Purges } from '../store/event-pages.js';
import { StoreError } from '../store/store-error.js';
import { type CursorMint, expiredCursor, invalidCursor } from '../wire/cursor.js';
import type { RefusalError } from '../wire/refusal-error.js';
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
import type { ScopeMembers } from './watch-members.js';

/** Where a reader begins: with all that is kept, with what commits from now on, or behind the position of a cursor. */
export type ScopeStart = 'beginning' | 'now' | Continued;

/** Null: the cursor is of another incarnation of the store. */
interface Continued {
  readonly position: string | null;
}

export interface ScopeSourceOptions {
  readonly authority: Authority;
  readonly cursors: CursorMint;
  readonly purpose: string;
  readonly members: ScopeMembers;
  readonly start: ScopeStart;
  /** Histories that cannot be read are left out of what is told, and reported here. */
  readonly onDefect: (error: unknown) => void;
}

const POSITION = /^(\d{1,15})(?::(\d{1,15}))?$/;

export class ScopeSource implements WatchSource {
  readonly isOver = false;
  sequence = 0;
  /** How many tasks had been purged when the reading began: below the horizon it holds while that is all. */
  private purges = 0;
  private horizon = 0;
  private scope: EventScope | null = null;
  private readonly reported = new Set<string>();

  constructor(private readonly options: ScopeSourceOptions) {}

  get purpose(): string {
    return this.options.purpose;
  }

  get position(): string {
    return this.sequence < this.horizon ? `${String(this.sequence)}:${String(this.purges)}` : String(this.sequence);
  }

  follow(feed: TaskFeed, listener: TaskListener): () => void {
    return feed.followAll(listener);
  }

  async open(): Promise<void> {
    const { authority, members, start } = this.options;
    this.scope = await members.open();
    const bounds = valueOf(await authority.reads.eventBounds());
    if (start === 'now') this.sequence = bounds.head;
    else if (start === 'beginning') this.purges = bounds.purges;
    else if (start.position === null) throw this.expired(bounds.horizon);
    else this.goOn(start.position, bounds.head);
    this.refuseHoles(bounds);
  }

  async read(): Promise<SourcePage> {
    const { authority, members } = this.options;
    if (this.scope === null) throw new Error('the source was not opened');
    const page = valueOf(
      await authority.reads.events(this.scope, this.sequence, REPLAY_PAGE_EVENTS, REPLAY_PAGE_BYTES),
    );
    // Before anything was told, nothing can be missing from it.
    if (this.options.start === 'beginning' && this.sequence === 0) this.purges = page.purges;
    this.refuseHoles(page);
    members.found(page);
    for (const taskId of page.damaged) this.report(taskId);
    return { items: page.events, more: page.more, through: page.through };
  }

  /** Null: it cannot be told from the commit alone, or it is not the next one, and then the store knows what is missing. */
  hear(commit: Committed): readonly Told[] | null {
    const { record, events, firstSequence, link } = commit;
    if (lastSequenceOf(commit) <= this.sequence) return [];
    if (firstSequence > this.sequence + 1) return null;
    const isMember = this.options.members.has(commit);
    if (isMember === null) return null;
    if (!isMember) return [];
    return events
      .map((event, index) => ({ admission: record.admission, event, sequence: firstSequence + index, link }))
      .filter(({ sequence }) => sequence > this.sequence);
  }

  passed({ sequence }: Told): void {
    this.sequence = sequence;
  }

  passedAll(done: SourcePage | Committed): void {
    const through = 'record' in done ? lastSequenceOf(done) : done.through;
    this.sequence = Math.max(this.sequence, through);
  }

  private goOn(position: string, head: number): void {
    const [, sequence, purges] = POSITION.exec(position) ?? [];
    if (sequence === undefined || Number(sequence) > head) throw invalidCursor('lies beyond what this store has');
    this.sequence = Number(sequence);
    this.purges = Number(purges ?? -1);
  }

  private refuseHoles({ horizon, purges }: Purges): void {
    this.horizon = horizon;
    if (this.sequence >= horizon || this.purges === purges) return;
    throw this.expired(horizon);
  }

  /** Behind the horizon everything is there. */
  private expired(horizon: number): RefusalError {
    const { cursors, purpose } = this.options;
    return expiredCursor(cursors.give(purpose, String(horizon)));
  }

  private report(taskId: string): void {
    if (this.reported.has(taskId)) return;
    this.reported.add(taskId);
    this.options.onDefect(new StoreError('damaged', `history of ${taskId}: left out of a watch`));
  }
}
