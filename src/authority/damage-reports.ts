/**
 * Telling the operator of damaged tasks (lifecycle.md section 4, step 3): the callers who meet one are told
 * RECORD_DAMAGED, and why stands nowhere but in what is reported here. Each task is told once for a while, however many
 * ask for it. Never what is stored: only what is wrong with it.
 */
import type { Clock } from '../lib/clock.js';
import { StoreError } from '../store/store-error.js';

/** A damaged task is met by every scan of timers and every caller: one line in this time is enough. */
const TOLD_AGAIN_AFTER_MS = 600_000;
/** How many are remembered; beyond it the oldest are told again. */
const MAX_REMEMBERED = 10_000;

export class DamageReports {
  /** Monotonic ms at which each was told, oldest first. */
  private readonly told = new Map<string, number>();

  /** Tasks whose row was not what this process knew of it, until they are read again. */
  private readonly doubted = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly onDefect: (error: StoreError) => void,
  ) {}

  met(taskId: string, detail: string): void {
    const now = this.clock.monotonicMs();
    if (now - (this.told.get(taskId) ?? Number.NEGATIVE_INFINITY) < TOLD_AGAIN_AFTER_MS) return;
    this.told.delete(taskId);
    this.told.set(taskId, now);
    if (this.told.size > MAX_REMEMBERED) {
      for (const oldest of this.told.keys()) {
        this.told.delete(oldest);
        break;
      }
    }
    this.onDefect(new StoreError('damaged', `task ${taskId}: ${detail}`));
  }

  /** A write on what was known of the task was refused by the store. */
  doubt(taskId: string): void {
    if (this.doubted.size < MAX_REMEMBERED) this.doubted.add(taskId);
  }

  /** What became of it. One that is not there any more, not even as purged, was taken away behind this process's back. */
  read(taskId: string, found: boolean): void {
    if (this.doubted.size > 0 && this.doubted.delete(taskId) && !found)
      this.met(taskId, 'its row is not there any more');
  }

  /** It was repaired: what is met from now on is new. */
  mended(taskId: string): void {
    this.told.delete(taskId);
  }
}
