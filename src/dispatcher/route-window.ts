/**
 * The window of one route: the first ready tasks in order, as far as they are known without asking the store.
 * Complete means that the store has no ready task of the route beyond the window. It may hold tasks that are no
 * longer ready; claiming finds out. It must never leave out one that is ready while it says that it is complete.
 */
import type { Route } from '../kernel/placement.js';
import type { Pool } from './pool.js';

/** Beyond this many entries the tail is left to the store. */
export const MAX_WINDOW_ENTRIES = 2_048;

export interface ReadyEntry {
  readonly taskId: string;
  readonly readyOrder: number;
}

export class RouteWindow {
  /** Those whose sessions may run what it holds, the ones that suit it best first. */
  readonly pools: Pool[] = [];
  /** Routes of one queue of one namespace are one line, in the order of their tasks. */
  readonly queueKey: string;
  /** Clock reading (monotonic ms) of the last load. */
  loadedAt = Number.NEGATIVE_INFINITY;
  loading = false;
  /** How well each of the pools suits it, in their order. */
  private readonly preferences: number[] = [];
  private entries: ReadyEntry[] = [];
  private head = 0;
  private complete = false;
  private offeredWhileLoading: ReadyEntry[] = [];
  private missedWhileLoading = false;

  constructor(
    readonly key: string,
    readonly route: Route,
  ) {
    this.queueKey = `${route.namespace}\n${route.queue}`;
  }

  get size(): number {
    return this.entries.length - this.head;
  }

  /** Whether the store may have ready tasks that the window lacks. */
  get wantsLoad(): boolean {
    return !this.complete && !this.loading && this.size === 0;
  }

  /** The place of its first entry; beyond all others when it has none. */
  get firstOrder(): number {
    return this.entries[this.head]?.readyOrder ?? Number.POSITIVE_INFINITY;
  }

  /** Behind those that suit as well or better. */
  addPool(pool: Pool, preference: number): void {
    let at = this.pools.length;
    while (at > 0 && (this.preferences[at - 1] ?? 0) < preference) at -= 1;
    this.pools.splice(at, 0, pool);
    this.preferences.splice(at, 0, preference);
  }

  /** False when it was none of them. */
  removePool(pool: Pool): boolean {
    const at = this.pools.indexOf(pool);
    if (at < 0) return false;
    this.pools.splice(at, 1);
    this.preferences.splice(at, 1);
    return true;
  }

  /** The best of the pools that have a free slot for it: a busy one is not waited for. */
  get freePool(): Pool | undefined {
    return this.pools.find((pool) => pool.hasCredit);
  }

  get hasCredit(): boolean {
    return this.freePool !== undefined;
  }

  /** The store has nothing of this route and nobody serves it: it can be made anew when something happens to it. */
  get isIdle(): boolean {
    return this.complete && !this.loading && this.size === 0 && this.pools.length === 0;
  }

  /** A task became ready. Kept when its place is inside the window, else left to the store. */
  offer(entry: ReadyEntry): void {
    if (this.loading) {
      if (this.offeredWhileLoading.length < MAX_WINDOW_ENTRIES) this.offeredWhileLoading.push(entry);
      else this.missedWhileLoading = true;
      return;
    }
    const last = this.entries[this.entries.length - 1];
    const inside = this.complete || (last !== undefined && this.size > 0 && entry.readyOrder < last.readyOrder);
    if (inside) this.insert(entry);
  }

  /** It is ready no more. One that was moved in the queue since may be missed. */
  remove({ taskId, readyOrder }: ReadyEntry): void {
    if (this.loading) this.offeredWhileLoading = this.offeredWhileLoading.filter((entry) => entry.taskId !== taskId);
    for (let at = this.lastAt(readyOrder); this.entries[at]?.readyOrder === readyOrder && at >= this.head; at--) {
      if (this.entries[at]?.taskId === taskId) return void this.entries.splice(at, 1);
    }
  }

  take(): ReadyEntry | null {
    const entry = this.entries[this.head];
    if (entry === undefined) return null;
    this.head += 1;
    if (this.head >= 512 || this.head === this.entries.length) {
      this.entries = this.entries.slice(this.head);
      this.head = 0;
    }
    return entry;
  }

  /** What is known no longer holds: the next need asks the store. */
  forget(): void {
    this.complete = false;
    if (this.loading) this.missedWhileLoading = true;
  }

  beginLoad(): void {
    this.loading = true;
    this.offeredWhileLoading = [];
    this.missedWhileLoading = false;
  }

  /** The first ready tasks of the store, in order; `all` when there are no more. */
  endLoad(loaded: readonly ReadyEntry[], all: boolean, now: number): void {
    this.loading = false;
    this.loadedAt = now;
    const known = new Set(loaded.map((entry) => entry.taskId));
    this.entries = [...loaded];
    this.head = 0;
    this.complete = all && !this.missedWhileLoading;
    const offered = this.offeredWhileLoading;
    this.offeredWhileLoading = [];
    for (const entry of offered) if (!known.has(entry.taskId)) this.offer(entry);
  }

  failLoad(): void {
    this.loading = false;
    this.offeredWhileLoading = [];
  }

  /** Where the last entry stands that has this place or one before it. */
  private lastAt(readyOrder: number): number {
    let [from, to] = [this.head, this.entries.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.entries[middle]?.readyOrder ?? 0) <= readyOrder) from = middle + 1;
      else to = middle;
    }
    return from - 1;
  }

  private insert(entry: ReadyEntry): void {
    let at = this.entries.length;
    // New tasks come last but for priorities: looking from the end is one step for most.
    while (at > this.head && (this.entries[at - 1]?.readyOrder ?? 0) > entry.readyOrder) at -= 1;
    if (at === this.entries.length) this.entries.push(entry);
    else this.entries.splice(at, 0, entry);
    if (this.size > MAX_WINDOW_ENTRIES) {
      this.entries.pop();
      this.complete = false;
    }
  }
}
