/**
 * The reaper of sessions: takes those whose time is over, then their leases, in bounded steps that a crash anywhere
 * leaves resumable (lifecycle.md section 7). Nothing is taken by the clock alone: the store checks again in the write.
 */
import type { Authority } from '../authority/authority.js';
import { authorityCause } from '../kernel/cause.js';
import { reason } from '../kernel/reason-codes.js';
import type { Timer } from '../lib/clock.js';
import type { SessionRow } from '../store/commit-plan.js';
import type { QuietPeriod } from './quiet-period.js';
import { endAt } from './session-ends.js';
import type { Sessions } from './sessions.js';

/** Part of the two seconds that recovery may take beyond the TTL. */
const REAP_PERIOD_MS = 500;
const SESSIONS_PER_STEP = 1_000;
const TASKS_PER_STEP = 256;
/** So many sessions are relieved of their leases at a time: their writes share transactions, and leave room for others. */
const SESSIONS_AT_ONCE = 16;

export class SessionReaper {
  private timer: Timer | null = null;
  private stopped = false;
  /** Gone sessions whose leases are still to be taken. */
  private readonly orphaned = new Set<string>();
  private sweeping = false;
  /** The pause after which expiries were last held against the clock; null before the first step. */
  private heldAgainst: number | null = null;

  constructor(
    private readonly authority: Authority,
    private readonly sessions: Sessions,
    private readonly quiet: QuietPeriod,
    private readonly onError: (error: unknown) => void,
  ) {
    sessions.onGone = (sessionId) => {
      this.orphaned.add(sessionId);
      void this.guarded(() => this.takeLeases());
    };
  }

  /** Finds what a crash left half done, then reaps from time to time. */
  async start(): Promise<void> {
    const { store } = this.authority;
    for (const sessionId of await store.leaseHolders()) {
      const row = await store.loadSession(sessionId);
      if (row === null || row.state === 'gone') this.orphaned.add(sessionId);
    }
    this.arm();
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
  }

  private arm(): void {
    if (this.stopped) return;
    this.timer = this.authority.clock.after(REAP_PERIOD_MS, () => void this.step());
  }

  private async step(): Promise<void> {
    await this.guarded(async () => {
      await this.holdAgainstClock();
      const now = this.authority.now();
      const expired = await this.authority.store.sessions(now, SESSIONS_PER_STEP);
      const quietSince = this.quiet.quietSince();
      await Promise.all(expired.filter((row) => quietSince + row.ttlMs < now).map((row) => this.expire(row, now)));
      await this.takeLeases();
    });
    this.arm();
  }

  /**
   * After a pause the clock may be another one, set back by hours: what it wrote before would outlast every TTL. Such
   * sessions get one TTL from now, like all that are excused.
   */
  private async holdAgainstClock(): Promise<void> {
    const pause = this.quiet.quietSince();
    if (pause === this.heldAgainst) return;
    const { store } = this.authority;
    const now = this.authority.now();
    for (let full = true; full;) {
      const ahead = await store.sessionsAhead(now, SESSIONS_PER_STEP);
      const written = await Promise.all(
        ahead.map(({ sessionId, attachment, ttlMs }) =>
          this.authority.writeSession({ kind: 'linger', sessionId, attachment, until: now + ttlMs }),
        ),
      );
      if (written.some(({ kind }) => kind === 'refused')) return;
      full = ahead.length === SESSIONS_PER_STEP;
    }
    this.heldAgainst = pause;
  }

  private async expire(row: SessionRow, now: number): Promise<void> {
    const written = await this.authority.writeSession({
      kind: 'expire',
      sessionId: row.sessionId,
      end: endAt(now, 'expired'),
    });
    if (written.kind === 'done') this.sessions.gone(row.sessionId);
  }

  /** One sweep at a time: it goes on until it has tried everything, also what is orphaned meanwhile. */
  private async takeLeases(): Promise<void> {
    if (this.sweeping) return;
    this.sweeping = true;
    const tried = new Set<string>();
    try {
      for (let next = this.untried(tried); next.length > 0; next = this.untried(tried)) {
        await Promise.all(
          next.map(async (sessionId) => {
            if (await this.takeLeasesOf(sessionId)) this.orphaned.delete(sessionId);
          }),
        );
      }
    } finally {
      this.sweeping = false;
    }
  }

  private untried(tried: Set<string>): readonly string[] {
    const next: string[] = [];
    for (const sessionId of this.orphaned) {
      if (next.length === SESSIONS_AT_ONCE) break;
      if (tried.has(sessionId)) continue;
      tried.add(sessionId);
      next.push(sessionId);
    }
    return next;
  }

  /** True when none is left; false to try again at the next step. */
  private async takeLeasesOf(sessionId: string): Promise<boolean> {
    const cause = authorityCause('reaper', reason('run.requeued.lease_lost'), sessionId);
    for (let after = 0; ;) {
      const page = await this.authority.store.tasksOfSession(sessionId, after, TASKS_PER_STEP);
      const answers = await Promise.all(
        page.map(({ taskId }) => this.authority.apply({ taskId, intent: { kind: 'session_lost', sessionId, cause } })),
      );
      const refused = answers.some((answer) => answer.kind === 'refused' && answer.refusal.reason !== 'RECORD_DAMAGED');
      if (refused) return false;
      const last = page[page.length - 1];
      if (last === undefined || page.length < TASKS_PER_STEP) return true;
      after = last.order;
    }
  }

  private async guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.onError(error);
    }
  }
}
