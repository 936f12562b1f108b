/**
 * Automatic purge: one scan over `purge_at`, and the sweep of what purged tasks left behind (lifecycle.md section 9).
 * Whether a task goes is decided where it is purged; this loop only finds those whose time has come. A task that cannot
 * go yet never blocks the others, and is not tried again at every scan. A crash anywhere leaves a task whole, or purged
 * with something to sweep.
 */
import type { Authority } from '../authority/authority.js';
import { purgeTasks } from '../authority/purge-steps.js';
import type { Timer } from '../lib/clock.js';
import type { PurgeableTask } from '../store/purge-rows.js';

/** A finished task is in nobody's way: whether it goes seconds later makes no difference. */
export const PURGE_PERIOD_MS = 5_000;
const MAX_BACK_OFF_MS = 60_000;
const TASKS_PER_PAGE = 256;
/** A task that is still needed, or could not be judged, is tried again this much later. */
export const KEPT_PERIOD_MS = 60_000;
/** Kept tasks that are remembered; those beyond are judged at every scan. */
const MAX_KEPT = 100_000;

export interface PurgingOptions {
  readonly authority: Authority;
  readonly onError: (error: unknown) => void;
  /** How many one scan has purged, if any. */
  readonly onPurged: (purged: number) => void;
}

export class Purging {
  private timer: Timer | null = null;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private failures = 0;
  /** Until when, in epoch ms. */
  private readonly kept = new Map<string, number>();

  constructor(private readonly options: PurgingOptions) {}

  /** Sweeps what a crash left, and whatever comes. */
  start(): void {
    this.arm(0);
  }

  /** Begins nothing more. Resolves when the step in hand is over: until then the store is in use. */
  stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    return this.running;
  }

  private arm(sleepMs: number): void {
    if (this.stopped) return;
    this.timer = this.options.authority.clock.after(sleepMs, () => {
      this.running = this.run();
    });
  }

  private async run(): Promise<void> {
    const { authority, onError } = this.options;
    try {
      await this.sweep();
      const well = await this.scan();
      this.failures = well ? 0 : this.failures + 1;
    } catch (error) {
      authority.noteFailure(error);
      onError(error);
      this.failures += 1;
    }
    this.arm(Math.min(PURGE_PERIOD_MS * 2 ** this.failures, MAX_BACK_OFF_MS));
  }

  private async sweep(): Promise<void> {
    while (!this.stopped && (await this.options.authority.store.sweepPurged()));
  }

  /** Goes through everything due once, past what stays; false when the store or the queue of works takes nothing. */
  private async scan(): Promise<boolean> {
    const { authority, onPurged } = this.options;
    const now = authority.now();
    for (const [taskId, until] of this.kept) if (until <= now) this.kept.delete(taskId);
    let purged = 0;
    let refused = false;
    for (let after: PurgeableTask | null = null; !refused && !this.stopped;) {
      const page: readonly PurgeableTask[] = await authority.store.purgeable(now, after, TASKS_PER_PAGE);
      const due = page.filter(({ taskId }) => !this.kept.has(taskId));
      await purgeTasks(
        authority,
        due,
        ({ taskId }, answer) => {
          if (answer.kind === 'purged') purged += 1;
          else if (answer.kind === 'refused' && answer.refusal.reason !== 'RECORD_DAMAGED') refused = true;
          else if (this.kept.size < MAX_KEPT) this.kept.set(taskId, now + KEPT_PERIOD_MS);
        },
        () => !refused && !this.stopped,
      );
      if (due.length > 0) await this.sweep();
      after = page[page.length - 1] ?? null;
      if (after === null || page.length < TASKS_PER_PAGE) break;
    }
    if (purged > 0) onPurged(purged);
    return !refused;
  }
}
