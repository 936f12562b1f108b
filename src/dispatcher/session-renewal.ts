/**
 * Renewal: all sessions heard from in one transaction, and a heartbeat answered only after its renewal committed
 * (lifecycle.md section 7). Costs a handful of transactions a second however many sessions there are.
 */
import type { Authority } from '../authority/authority.js';
import type { Timer } from '../lib/clock.js';
import type { WorkSession } from './work-session.js';

/** Heartbeats gather this long: at most five renewal transactions a second. */
const GATHER_MS = 200;

export type Renewal = 'renewed' | 'gone' | 'failed';

interface Heard {
  readonly session: WorkSession;
  readonly attachment: number;
  readonly answers: ((renewal: Renewal) => void)[];
}

export class SessionRenewal {
  private heard = new Map<WorkSession, Heard>();
  private timer: Timer | null = null;

  constructor(
    private readonly authority: Authority,
    private readonly onLost: (session: WorkSession) => void,
  ) {}

  /** The session was heard from under this attachment. Resolves when its renewal is committed or refused. */
  renew(session: WorkSession, attachment: number): Promise<Renewal> {
    return new Promise((resolve) => {
      const known = this.heard.get(session);
      if (known?.attachment === attachment) known.answers.push(resolve);
      else this.heard.set(session, { session, attachment, answers: [...(known?.answers ?? []), resolve] });
      this.timer ??= this.authority.clock.after(GATHER_MS, () => this.flush());
    });
  }

  private flush(): void {
    this.timer = null;
    const heard = this.heard;
    this.heard = new Map();
    for (const { session, attachment, answers } of heard.values()) {
      const { sessionId, ttlMs } = session.identity;
      // Its stream may have ended since it was heard from: a renewal must not outlast what it lingers then.
      const expiresAt = Math.min(this.authority.now() + ttlMs, session.lingersUntil ?? Number.POSITIVE_INFINITY);
      void this.authority.writeSession({ kind: 'renew', sessionId, attachment, expiresAt }).then((written) => {
        const renewal = written.kind === 'done' ? 'renewed' : written.kind === 'lost' ? 'gone' : 'failed';
        if (renewal === 'gone') this.onLost(session);
        for (const answer of answers) answer(renewal);
      });
    }
  }
}
