/**
 * Propagation: telling those who follow a task what became of it, beyond what its own transaction had room for
 * (lifecycle.md section 8). Each fact that concerns followers leaves a row; this loop works the rows off in bounded
 * steps and ends them. A crash anywhere leaves the row, and telling somebody twice changes nothing.
 */
import type { Authority } from '../authority/authority.js';
import type { Follow } from '../authority/follow-work.js';
import { type FollowRow, childFollow, childrenOf, waitersOf } from '../authority/followers.js';
import { propagationOf } from '../authority/family-links.js';
import type { Timer } from '../lib/clock.js';
import type { Propagation as Row } from '../store/family-rows.js';

/** Rows that another process left behind, or that could not be worked off, are looked for this often. */
const POLL_PERIOD_MS = 1_000;
const ROWS_PER_SCAN = 256;
/** Followers told at a time: their writes share transactions, and leave room for others. */
const FOLLOWERS_PER_STEP = 256;

type Pages = (afterOrder: number) => Promise<readonly FollowRow[]>;

export class Propagation {
  private timer: Timer | null = null;
  private running = false;
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

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.unsubscribe();
  }

  private wake(): void {
    this.wanted = true;
    if (this.running || this.stopped) return;
    this.running = true;
    this.timer?.cancel();
    void this.run();
  }

  private async run(): Promise<void> {
    try {
      while (this.wanted && !this.stopped) {
        this.wanted = false;
        if (await this.workOff()) this.wanted = true;
      }
    } catch (error) {
      this.onError(error);
    } finally {
      this.running = false;
      if (!this.stopped) this.timer = this.authority.clock.after(POLL_PERIOD_MS, () => this.wake());
    }
  }

  /** True when there may be more than one scan brings, and something of it was ended. */
  private async workOff(): Promise<boolean> {
    const rows = await this.authority.store.propagations(ROWS_PER_SCAN);
    let ended = 0;
    for (const row of rows) {
      if (this.stopped) return false;
      if ((await this.tell(row)) && (await this.authority.endPropagation(row)) === 'done') ended += 1;
    }
    return rows.length === ROWS_PER_SCAN && ended > 0;
  }

  /** Once through all who follow; false when one of them could not be told. */
  private async tell(row: Row): Promise<boolean> {
    const { store } = this.authority;
    const children: Pages = async (after) => (await childrenOf(store, row, after, FOLLOWERS_PER_STEP)).map(childFollow);
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
    return (await this.authority.follow(follow)) === 'done';
  }
}
