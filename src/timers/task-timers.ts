/**
 * Task timers: one scan over `next_due_at` (lifecycle.md section 7). Finds due tasks and asks the authority to tick
 * them; the kernel decides what, if anything, is due. One task that cannot be processed never blocks the others, and
 * an earlier wake-up is only a hint: the scan looks again at least once a second. What a scan found excused is not
 * judged again before it can fire, or something about it has changed.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer } from '../authority/intent-work.js';
import type { TaskRecord } from '../kernel/record.js';
import { nextDueAt, timersOf } from '../kernel/timers.js';
import type { Timer } from '../lib/clock.js';
import type { DueTask } from '../store/task-store.js';

const MAX_SLEEP_MS = 1_000;
/** Commits can move the next wake-up closer, but scans come no faster than this. */
const MIN_SLEEP_MS = 20;
/** What stays due after a scan that changed something is looked at again this much later; else after the longest sleep. */
const LEFTOVER_SLEEP_MS = 250;
const TASKS_PER_PAGE = 256;
/** Excused tasks that are remembered; those beyond are judged at every scan. */
const MAX_EXCUSED = 100_000;

/** What a scan left behind. */
interface Scanned {
  changed: boolean;
  /** Epoch ms at which the first of the excused can fire. */
  excusedUntil: number;
}

export class TaskTimers {
  private timer: Timer | null = null;
  private wakeAt = Number.POSITIVE_INFINITY;
  private scanning = false;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  /** Due tasks whose timers are excused, and the epoch ms at which one of them can fire. */
  private readonly excused = new Map<string, number>();
  private excusedSince = 0;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly authority: Authority,
    /** Epoch ms of the end of the service's last pause. */
    private readonly quietSince: () => number,
    private readonly onError: (error: unknown) => void,
  ) {
    this.unsubscribe = authority.subscribe(({ taskId, record }) => {
      if (this.excused.size > 0) this.excused.delete(taskId);
      const dueAt = nextDueAt(record);
      if (dueAt !== null && dueAt < this.wakeAt) this.arm(dueAt);
    });
  }

  start(): void {
    this.arm(this.authority.now());
  }

  /** Begins nothing more. Resolves when the scan in hand is over: until then the store is in use. */
  stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    this.unsubscribe();
    return this.running;
  }

  private arm(at: number): void {
    if (this.stopped) return;
    const sleepMs = Math.min(Math.max(at - this.authority.now(), MIN_SLEEP_MS), MAX_SLEEP_MS);
    this.wakeAt = at;
    this.timer?.cancel();
    this.timer = this.authority.clock.after(sleepMs, () => this.wake());
  }

  /** One scan at a time: what comes to be due during one is looked for at its end. */
  private wake(): void {
    if (this.scanning || this.stopped) return;
    this.scanning = true;
    this.running = this.run();
  }

  private async run(): Promise<void> {
    this.wakeAt = Number.POSITIVE_INFINITY;
    try {
      const scannedAt = this.authority.now();
      const scanned = await this.scan(scannedAt);
      if (this.stopped) return;
      const earliest = (await this.authority.store.earliestTimer()) ?? Number.POSITIVE_INFINITY;
      const next = earliest <= scannedAt ? await this.nextBehind(scannedAt, scanned) : earliest;
      // A commit during the scan may have set an earlier one.
      this.arm(Math.min(next, this.wakeAt));
    } catch (error) {
      this.authority.noteFailure(error);
      this.onError(error);
      this.arm(this.authority.now() + MAX_SLEEP_MS);
    } finally {
      this.scanning = false;
    }
  }

  /** Something stays due: the next moment at which it, or a timer behind it, can fire, as far as is known. */
  private async nextBehind(scannedAt: number, { changed, excusedUntil }: Scanned): Promise<number> {
    const now = this.authority.now();
    const sleepMs = changed ? LEFTOVER_SLEEP_MS : MAX_SLEEP_MS;
    const last: DueTask = { taskId: '', dueAt: scannedAt, order: Number.MAX_SAFE_INTEGER };
    const [behind] = await this.authority.store.dueTasks(now + sleepMs, last, 1);
    return Math.min(now + sleepMs, excusedUntil, behind?.dueAt ?? Number.POSITIVE_INFINITY);
  }

  /** Goes through everything due once, page by page, past what could not be processed. */
  private async scan(now: number): Promise<Scanned> {
    const scanned: Scanned = { changed: false, excusedUntil: Number.POSITIVE_INFINITY };
    for (let after: DueTask | null = null; ;) {
      const page: readonly DueTask[] = await this.authority.store.dueTasks(now, after, TASKS_PER_PAGE);
      if (this.stopped) return scanned;
      const quietSince = this.quietSince();
      if (quietSince !== this.excusedSince) this.excused.clear();
      this.excusedSince = quietSince;
      await Promise.all(page.map(({ taskId }) => this.tick(taskId, quietSince, scanned)));
      const last = page[page.length - 1];
      if (last === undefined || page.length < TASKS_PER_PAGE || this.stopped) return scanned;
      after = last;
    }
  }

  private async tick(taskId: string, quietSince: number, scanned: Scanned): Promise<void> {
    const known = this.excused.get(taskId);
    if (known !== undefined && known > this.authority.now()) {
      scanned.excusedUntil = Math.min(scanned.excusedUntil, known);
      return;
    }
    this.excused.delete(taskId);
    const chance = this.authority.random.chance();
    const answer = await this.authority.apply({ taskId, intent: { kind: 'tick', quietSince, chance } });
    if (answer.kind === 'applied') scanned.changed = true;
    const until = excusedUntil(answer, quietSince);
    if (until === null) return;
    scanned.excusedUntil = Math.min(scanned.excusedUntil, until);
    if (this.excused.size < MAX_EXCUSED) this.excused.set(taskId, until);
  }
}

/** When the first timer of a task can fire that a tick has left as it is; null when that is not known. */
function excusedUntil(answer: IntentAnswer, quietSince: number): number | null {
  if (answer.kind !== 'unchanged') return null;
  let until = Number.POSITIVE_INFINITY;
  for (const { dueAt, excusable } of timersOf(answer.record)) {
    until = Math.min(until, excusable ? Math.max(dueAt, excuseEnd(answer.record, quietSince)) : dueAt);
  }
  return until === Number.POSITIVE_INFINITY ? null : until;
}

function excuseEnd({ lease }: TaskRecord, quietSince: number): number {
  return quietSince + (lease?.sessionTtlMs ?? 0);
}
