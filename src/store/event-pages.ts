/**
 * Events of many tasks in the order of the whole store: what is asked for, and pages of it. A page says how far purges
 * had come when it was read, so that whoever pages on can tell that nothing was taken away between two pages.
 */
import type { Admission } from '../kernel/record.js';
import type { StoredEvent } from './task-store.js';

export type EventScope =
  /** Null: every queue of the namespace. */
  | { readonly kind: 'queue'; readonly namespace: string; readonly queue: string | null }
  /** A task, by its admission order, and all below it, attached or not, at any depth. */
  | { readonly kind: 'subtree'; readonly rootOrder: number };

export interface ScopedEvent extends StoredEvent {
  /** Without its args, as lists have it. */
  readonly admission: Admission;
}

/** What purges may have taken away, as of the moment at which it was read. */
export interface Purges {
  /** Events up to this sequence may be gone; those behind it are all there. */
  readonly horizon: number;
  /** How many tasks were ever purged: while it stays the same, nothing is gone that was there before. */
  readonly purges: number;
}

export interface EventPage extends Purges {
  readonly events: readonly ScopedEvent[];
  /** Everything in scope up to this sequence is in this page or lay before it. */
  readonly through: number;
  /** There may be more: the rows looked at are bounded, and so are events and bytes, so a page may be empty and go on. */
  readonly more: boolean;
  /** Tasks in scope whose history could not be read here; it is left out. */
  readonly damaged: readonly string[];
}

export interface EventBounds extends Purges {
  /** The sequence of the last event that was committed. */
  readonly head: number;
}

/** How many rows of history one `readEvents` call looks at. */
export const MAX_ROWS_PER_EVENT_PAGE = 5_000;
