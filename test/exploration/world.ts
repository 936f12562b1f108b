// An explored world as a value: the store, the time, and what everybody outside knows. Nothing here chooses; moves.ts
// says what may happen, proposal.ts decides it with the real kernel, and world-invariants.ts judges where it led.

import type { Follow } from '../../src/authority/follow-work.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { TerminalStatus } from '../../src/kernel/status.js';
import type { Propagation } from '../../src/store/family-rows.js';
import { Invariants } from '../kernel/history-invariants.js';
import type { ModelStore } from './model-store.js';

/**
 * A claim that was committed, and so may have been sent. The bag of messages is what its worker can say of it: any
 * word in it may arrive at any time, after any other, again, or never.
 */
export interface SentClaim {
  readonly taskId: string;
  readonly sessionId: string;
  readonly generation: number;
  readonly epoch: number;
  /** The worker's own knowledge: its event numbers that were answered, as far as the answers reached it. */
  readonly answered: number;
}

/** The loop that tells followers, somewhere in its row: what it read, and whom it has still to tell. */
export interface Telling {
  readonly row: Propagation;
  readonly pending: readonly Follow[];
}

/** The history of a task, latest first; paths through the worlds share what they have in common. */
export interface Chapter {
  readonly events: readonly TaskEvent[];
  readonly before: Chapter | null;
}

export interface World {
  /** Epoch ms. */
  readonly now: number;
  readonly store: ModelStore;
  readonly claims: readonly SentClaim[];
  readonly telling: Telling | null;
  /** How often the clock may still be set back. */
  readonly clockSteps: number;
  readonly known: Known;
}

/** What is not part of a state but is remembered on the way to it, for the invariants alone. */
export interface Known {
  readonly tasks: ReadonlyMap<string, Invariants>;
  readonly histories: ReadonlyMap<string, Chapter>;
  /** How each generation ended, by `task generation`. */
  readonly ends: ReadonlyMap<string, TerminalStatus>;
  /** What the first use of a key asked for and was answered with, by `task key`. */
  readonly answers: ReadonlyMap<string, KeyedAnswer>;
}

export interface KeyedAnswer {
  readonly contentHash: string;
  /** Of the fact that answered it; null where there was nothing to do. */
  readonly revision: number | null;
}

export const NOTHING_KNOWN: Known = { tasks: new Map(), histories: new Map(), ends: new Map(), answers: new Map() };

export function eventsOf(chapter: Chapter | undefined): readonly TaskEvent[] {
  const chapters: (readonly TaskEvent[])[] = [];
  for (let at = chapter ?? null; at !== null; at = at.before) chapters.push(at.events);
  return chapters.reverse().flat();
}

/** The invariants of a task as they are known here, to go on from on one path. */
export function forkOf(known: Known, taskId: string): Invariants {
  return known.tasks.get(taskId)?.fork() ?? new Invariants();
}
