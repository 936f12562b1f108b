/**
 * Propagation: telling those who follow a task what became of it, beyond what its own transaction had room for
 * (lifecycle.md section 8). Each fact that concerns followers leaves a row; this loop works the rows off in bounded
 * steps and ends them. A crash anywhere leaves the row, and telling somebody twice changes nothing.
 */
import type { Authority } from '../authority/authority.js';
import type { Follow } from '../authority/follow-work.js';
import { type FollowRow, childrenOf, waitersOf } from '../authority/followers.js';
import { propagationOf } from '../authority/family-links.js';
import type { Timer } from '../lib/clock.js';
import type { Propagation as Row, StoredPropagation } from '../store/family-rows.js';

/** Rows that another process left behind are looked for this often. */
const POLL_PERIOD_MS = 1_000;
/** What could not be worked off (a lost race, a damaged record) is tried again this much later, not at once for ever. */
const LEFTOVER_PERIOD_MS = 250;
const ROWS_PER_PAGE = 256;
/** Followers told at a time: their writes share transactions, and leave room for others. */
const FOLLOWERS_PER_STEP = 256;

type Pages = (afterOrder: number) => Promise<readonly FollowRow[]>;

export class Propagation {
  private timer: Timer | null = null;
  private running = false;
  private work: Promise<void> = Promise.resolve();
  private wanted = false;
  private stopped = false;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly authority: Authority,
    private readonly onError: (error: unknown) => void,
  ) {
    this.unsubscribe = authority.subscribe(({ before, record }) => {
      if (propagationOf(before, record) !== null) this.wake();
    });
  }

  /** Works off what a crash left, and whatever comes. */
  start(): void {
    this.wake();
  }

  /** Begins nothing more. Resolves when the step in hand is over: until then the store is in use. */
  stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    this.unsubscribe();
    return this.work;
  }

  private wake(): void {
    this.wanted = true;
    if (this.running || this.stopped) return;
    this.running = true;
    this.timer?.cancel();
    this.work = this.run();
  }

  private async run(): Promise<void> {
    let sleepMs = POLL_PERIOD_MS;
    try {
      while (this.wanted && !this.stopped) {
        this.wanted = false;
        sleepMs = (await this.workOff()) ? POLL_PERIOD_MS : LEFTOVER_PERIOD_MS;
      }
    } catch (error) {
      this.onError(error);
    } finally {
      this.running = false;
      if (!this.stopped) this.timer = this.authority.clock.after(sleepMs, () => this.wake());
    }
  }

  /** Goes through every row once, past those that could not be worked off; false when there were any. */
  private async workOff(): Promise<boolean> {
    let all = true;
    for (let after: StoredPropagation | null = null; ;) {
      const page: readonly StoredPropagation[] = await this.authority.store.propagations(after, ROWS_PER_PAGE);
      for (const row of page) {
        if (this.stopped) return false;
        const ended = (await this.tell(row)) && (await this.authority.upkeep.endPropagation(rowOf(row))) === 'done';
        if (!ended) all = false;
      }
      const last = page[page.length - 1];
      if (last === undefined || page.length < ROWS_PER_PAGE) return all;
      after = last;
    }
  }

  /** Once through all who follow; false when one of them could not be told. */
  private async tell(row: Row): Promise<boolean> {
    const { store } = this.authority;
    const children: Pages = (after) => childrenOf(store, row, after, FOLLOWERS_PER_STEP);
    const waiters: Pages = (after) => waitersOf(store, row, after, FOLLOWERS_PER_STEP);
    const allChildren = await this.tellPages(children);
    return (await this.tellPages(waiters)) && allChildren;
  }

  private async tellPages(read: Pages): Promise<boolean> {
    let all = true;
    for (let after = 0; !this.stopped;) {
      const page = await read(after);
      const told = await Promise.all(page.map(({ follow }) => this.tellOne(follow)));
      if (told.includes(false)) all = false;
      const last = page[page.length - 1];
      if (last === undefined || page.length < FOLLOWERS_PER_STEP) return all;
      after = last.order;
    }
    return false;
  }

  private async tellOne(follow: Follow): Promise<boolean> {
    return (await this.authority.upkeep.follow(follow)) === 'done';
  }
}

function rowOf({ taskId, generation, outcome, eventNumber }: StoredPropagation): Row {
  return { taskId, generation, outcome, eventNumber };
}
