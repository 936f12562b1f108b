/**
 * Task timers: one scan over `next_due_at` (lifecycle.md section 7). Finds due tasks and asks the authority to tick
 * them; the kernel decides what, if anything, is due. One task that cannot be processed never blocks the others, and
 * an earlier wake-up is only a hint: the scan looks again at least once a second.
 */
import type { Authority } from '../authority/authority.js';
import { nextDueAt } from '../kernel/timers.js';
import type { Timer } from '../lib/clock.js';
import type { DueTask } from '../store/task-store.js';

const MAX_SLEEP_MS = 1_000;
/** Commits can move the next wake-up closer, but scans come no faster than this. */
const MIN_SLEEP_MS = 20;
/** What stays due after a scan (excused, damaged, refused) is looked at again this much later, not at once for ever. */
const LEFTOVER_SLEEP_MS = 250;
const TASKS_PER_PAGE = 256;

export class TaskTimers {
  private timer: Timer | null = null;
  private wakeAt = Number.POSITIVE_INFINITY;
  private scanning = false;
  private stopped = false;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly authority: Authority,
    /** Epoch ms of the end of the service's last pause. */
    private readonly quietSince: () => number,
    private readonly onError: (error: unknown) => void,
  ) {
    this.unsubscribe = authority.subscribe(({ record }) => {
      const dueAt = nextDueAt(record);
      if (dueAt !== null && dueAt < this.wakeAt) this.arm(dueAt);
    });
  }

  start(): void {
    this.arm(this.authority.now());
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.unsubscribe();
  }

  private arm(at: number): void {
    if (this.stopped) return;
    const sleepMs = Math.min(Math.max(at - this.authority.now(), MIN_SLEEP_MS), MAX_SLEEP_MS);
    this.wakeAt = at;
    this.timer?.cancel();
    this.timer = this.authority.clock.after(sleepMs, () => void this.wake());
  }

  private async wake(): Promise<void> {
    if (this.scanning) return;
    this.scanning = true;
    this.wakeAt = Number.POSITIVE_INFINITY;
    try {
      const scannedAt = this.authority.now();
      await this.scan(scannedAt);
      const earliest = (await this.authority.store.earliestTimer()) ?? Number.POSITIVE_INFINITY;
      const next = earliest <= scannedAt ? this.authority.now() + LEFTOVER_SLEEP_MS : earliest;
      // A commit during the scan may have set an earlier one.
      this.arm(Math.min(next, this.wakeAt));
    } catch (error) {
      this.onError(error);
      this.arm(this.authority.now() + MAX_SLEEP_MS);
    } finally {
      this.scanning = false;
    }
  }

  /** Goes through everything due once, page by page, past what could not be processed. */
  private async scan(now: number): Promise<void> {
    for (let after: DueTask | null = null; ;) {
      const page: readonly DueTask[] = await this.authority.store.dueTasks(now, after, TASKS_PER_PAGE);
      const quietSince = this.quietSince();
      await Promise.all(
        page.map(({ taskId }) =>
          this.authority.apply({
            taskId,
            intent: { kind: 'tick', quietSince, chance: this.authority.random.chance() },
          }),
        ),
      );
      const last = page[page.length - 1];
      if (last === undefined || page.length < TASKS_PER_PAGE || this.stopped) return;
      after = last;
    }
  }
}
