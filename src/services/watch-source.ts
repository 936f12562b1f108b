/**
 * What a watch follows, as its stream sees it: pages of what was committed, news of what commits, and a position that
 * moves with what was told. A source sends nothing and knows no reader.
 */
import type { Committed } from '../authority/publisher.js';
import type { TaskEvent } from '../kernel/event.js';
import type { Admission } from '../kernel/record.js';
import type { Link } from '../store/history-chain.js';
import type { TaskFeed, TaskListener } from './task-feed.js';

export interface Told {
  readonly admission: Admission;
  readonly event: TaskEvent;
  readonly sequence: number;
  readonly link: Link | null;
}

export interface SourcePage {
  readonly items: readonly Told[];
  /** What was looked at is bounded: there may be more even if nothing was found. */
  readonly more: boolean;
  /** Everything in scope up to this sequence is in this page or lay before it. */
  readonly through: number;
}

export interface WatchSource {
  /** What its cursors are bound to. */
  readonly purpose: string;
  /** Where the reader stands, for its cursor. */
  readonly position: string;
  /** Everything in scope up to here was told. */
  readonly sequence: number;
  /** Nothing more will come. */
  readonly isOver: boolean;
  follow(feed: TaskFeed, listener: TaskListener): () => void;
  /** Finds the place to begin. Throws RefusalError. */
  open(): Promise<void>;
  /** The next page behind the position. Throws RefusalError. */
  read(): Promise<SourcePage>;
  /** What a commit tells; null when that has to be read from the store. */
  hear(commit: Committed): readonly Told[] | null;
  /** One event was told. */
  passed(told: Told): void;
  /** All that a page or a commit had was told. */
  passedAll(done: SourcePage | Committed): void;
}

export const REPLAY_PAGE_EVENTS = 256;
/** Less than what a live reader may leave unread, so that a replay never gets one cut. */
export const REPLAY_PAGE_BYTES = 262_144;

export function lastSequenceOf({ firstSequence, events }: Committed): number {
  return firstSequence + events.length - 1;
}
