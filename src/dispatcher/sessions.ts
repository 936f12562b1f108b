/**
 * Sessions: opening, re-attaching, renewing, draining and losing them (lifecycle.md section 7).
 * A lease lives exactly as long as its session, so this is also where leases are lost. Nothing is answered to a worker
 * before its row was written; a session ends only by the store's own check that it is still what it was.
 */
import type { Authority } from '../authority/authority.js';
import { sessionGone } from '../authority/session-work.js';
import { storeRefusal } from '../authority/store-refusal.js';
import type { Read } from '../authority/task-reader.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { MAX_SLOTS } from '../kernel/delivery.js';
import type { Subscription } from '../kernel/placement.js';
import type { SessionRow, SessionWrite } from '../store/commit-plan.js';
import type { ClaimDelivery } from './claim-delivery.js';
import type { Pool } from './pool.js';
import { type HeldClaims, heldClaimsOf, type LeasedClaim } from './session-claims.js';
import { endAt } from './session-ends.js';
import { type SessionIdentity, WorkSession } from './work-session.js';
import type { DeliveredClaim, LeaseLoss, WorkSink } from './work-sink.js';

export const MIN_SESSION_TTL_MS = 2_000;
export const DEFAULT_SESSION_TTL_MS = 30_000;
export const MAX_SESSION_TTL_MS = 600_000;
/** Both sides speak at least every third of the TTL. */
export const HEARTBEATS_PER_TTL = 3;
const SESSION_ID_BYTES = 12;
/** A worker that lost its answer attaches again while its first try may still be on its way. */
const ATTACH_TRIES = 4;

export interface WorkerHello {
  readonly workerName: string;
  /** Ms; null: the default. Clamped to its bounds, Welcome says what holds. */
  readonly ttlMs: number | null;
  /** Ms after the end of its stream; null: the TTL. At most the TTL. */
  readonly lingerMs: number | null;
  readonly slots: number;
  readonly subscription: Subscription;
  /** The Hello as JSON text, kept for ListWorkers. */
  readonly helloJson: string;
}

export interface NamedClaim {
  readonly taskId: string;
  readonly epoch: number;
  readonly answeredThrough: number;
}

export interface Attached {
  readonly session: WorkSession;
  readonly secret: string;
  /** Of the claims a re-attaching worker named. */
  readonly kept: readonly NamedClaim[];
  readonly lost: readonly LeaseLoss[];
}

export type AttachAnswer =
  { readonly ok: true; readonly value: Attached } | { readonly ok: false; readonly refusal: Refusal };

export interface SessionsContext {
  readonly authority: Authority;
  readonly poolOf: (subscription: Subscription) => Pool;
  readonly delivery: () => ClaimDelivery;
  readonly wake: () => void;
  readonly onError: (error: unknown) => void;
}

export class Sessions {
  private readonly byId = new Map<string, WorkSession>();

  constructor(private readonly context: SessionsContext) {}

  get(sessionId: string): WorkSession | undefined {
    return this.byId.get(sessionId);
  }

  all(): IterableIterator<WorkSession> {
    return this.byId.values();
  }

  /** A worker's first Hello: a session of its own, whatever its name. */
  async open(hello: WorkerHello, sink: WorkSink): Promise<AttachAnswer> {
    const { authority } = this.context;
    const sessionId = authority.random.token(SESSION_ID_BYTES);
    const terms = termsOf(hello);
    const now = authority.now();
    const expiresAt = now + terms.ttlMs;
    const row: SessionRow = { sessionId, state: 'live', expiresAt, attachment: 1, ...terms, createdAt: now };
    const written = await authority.writeSession({ kind: 'open', session: row });
    if (written.kind === 'refused') return { ok: false, refusal: written.refusal };
    if (written.kind === 'lost') return { ok: false, refusal: sessionGone() };
    const session = this.adopt(row, this.context.poolOf(hello.subscription));
    session.attach(sink, row.attachment);
    session.setSlots(slotsOf(hello.slots));
    this.context.wake();
    return { ok: true, value: { session, secret: authority.tokens.ofSession(sessionId), kept: [], lost: [] } };
  }

  /**
   * A worker re-attaches with its id and secret. Unknown, too late and wrong secret are one answer: SESSION_GONE.
   * Claims that are still its own are kept with their epochs; the others are named.
   */
  async reattach(
    sessionId: string,
    secret: string,
    named: readonly NamedClaim[],
    hello: WorkerHello,
    sink: WorkSink,
  ): Promise<AttachAnswer> {
    const { authority } = this.context;
    if (!authority.tokens.isSessionSecret(secret, sessionId)) return { ok: false, refusal: sessionGone() };
    try {
      for (let tries = 0; tries < ATTACH_TRIES; tries++) {
        const row = await authority.store.loadSession(sessionId);
        if (row === null || row.state === 'gone') break;
        const terms = termsOf(hello);
        const expiresAt = authority.now() + terms.ttlMs;
        const attach = { kind: 'attach', sessionId, from: row.attachment, expiresAt, ...terms } as const;
        const written = await authority.writeSession(attach);
        if (written.kind === 'refused') return { ok: false, refusal: written.refusal };
        if (written.kind === 'done') {
          return await this.take({ ...row, ...terms }, row.attachment + 1, secret, named, hello, sink);
        }
      }
      return { ok: false, refusal: sessionGone() };
    } catch (error) {
      authority.noteFailure(error);
      return { ok: false, refusal: storeRefusal(error) };
    }
  }

  /** The row is this stream's: finds what the session holds, and only then lets it have more. */
  private async take(
    row: SessionRow,
    attachment: number,
    secret: string,
    named: readonly NamedClaim[],
    hello: WorkerHello,
    sink: WorkSink,
  ): Promise<AttachAnswer> {
    const pool = this.context.poolOf(hello.subscription);
    const session = this.byId.get(row.sessionId) ?? this.adopt(row, pool);
    session.identity = identityOf(row);
    session.moveTo(pool);
    session.attach(sink, attachment);
    const { kept, lost, cancelled, unnamed } = await this.heldClaims(session, named, sink);
    // Another stream took its place meanwhile.
    if (session.attachment !== attachment) return { ok: false, refusal: sessionGone() };
    for (const record of cancelled) this.context.delivery().cancelAgain(session, record);
    for (const lease of unnamed) this.handBackClaim(session, lease);
    session.setSlots(slotsOf(hello.slots));
    this.context.wake();
    return { ok: true, value: { session, secret, kept, lost } };
  }

  /** When it cannot be told what the session holds, its stream is refused, and must not stay in its place. */
  private async heldClaims(session: WorkSession, named: readonly NamedClaim[], sink: WorkSink): Promise<HeldClaims> {
    try {
      return await heldClaimsOf(this.context.authority, session, named);
    } catch (error) {
      session.detach(sink);
      throw error;
    }
  }

  /** The stream of a session ended. Without linger its claims are lost at once; else it has that long to come back. */
  streamEnded(session: WorkSession, sink: WorkSink): void {
    if (!session.detach(sink)) return;
    const { attachment } = session;
    const { sessionId, lingerMs } = session.identity;
    // By default it is the TTL, and that is what the last renewal wrote.
    if (lingerMs === null) return;
    if (lingerMs === 0) {
      const end = endAt(this.context.authority.now(), 'stream_ended');
      this.write({ kind: 'end', sessionId, attachment, end }, () => this.gone(sessionId));
      return;
    }
    const until = this.context.authority.now() + lingerMs;
    session.lingersUntil = until;
    this.write({ kind: 'linger', sessionId, attachment, until }, () => undefined);
  }

  private write(write: SessionWrite, done: () => void): void {
    this.context.authority
      .writeSession(write)
      .then((written) => {
        if (written.kind === 'done') done();
      })
      .catch(this.context.onError);
  }

  /** No more claims for this session; it keeps what it holds and stays until its stream ends. */
  async drain(session: WorkSession): Promise<void> {
    session.draining = true;
    const { sessionId } = session.identity;
    await this.context.authority.writeSession({ kind: 'drain', sessionId, attachment: session.attachment });
  }

  /** By an operator, wherever the session is attached, if at all. False: it is gone. */
  async drainById(sessionId: string): Promise<Read<boolean>> {
    const { authority } = this.context;
    try {
      for (let tries = 0; tries < ATTACH_TRIES; tries++) {
        const row = await authority.store.loadSession(sessionId);
        if (row === null || row.state === 'gone') return { ok: true, value: false };
        const written =
          row.state === 'draining'
            ? { kind: 'done' as const }
            : await authority.writeSession({ kind: 'drain', sessionId, attachment: row.attachment });
        if (written.kind === 'refused') return { ok: false, refusal: written.refusal };
        const session = this.byId.get(sessionId);
        if (session !== undefined && written.kind === 'done') session.draining = true;
        if (written.kind === 'done') return { ok: true, value: true };
      }
      return { ok: false, refusal: refuse('CONTENTION', 'the session kept changing; try again') };
    } catch (error) {
      return { ok: false, refusal: storeRefusal(error) };
    }
  }

  /** The row says gone: the stream is closed and the leases are lost. Called once its end is committed. */
  gone(sessionId: string): void {
    const session = this.byId.get(sessionId);
    if (session !== undefined) {
      session.close('session_gone');
      this.forget(session);
    }
    this.onGone(sessionId);
  }

  /** Set by the reaper: takes the leases of a gone session. */
  onGone: (sessionId: string) => void = () => undefined;

  setSlots(session: WorkSession, slots: number): void {
    session.setSlots(slotsOf(slots));
    this.context.wake();
  }

  /** After a lost race of a claim: is the session still what this process believes? */
  async recheck(session: WorkSession): Promise<void> {
    const { sessionId } = session.identity;
    let row: SessionRow | null;
    try {
      row = await this.context.authority.store.loadSession(sessionId);
    } catch (error) {
      // Nothing was learned: the next claim finds out.
      this.trust(session);
      throw error;
    }
    if (this.byId.get(sessionId) !== session) return;
    if (row === null || row.state === 'gone') {
      this.gone(sessionId);
    } else if (row.attachment > session.attachment) {
      session.close('superseded');
      this.forget(session);
    } else {
      // An older attachment than its own was read before it attached, and says nothing about it.
      session.draining ||= row.state === 'draining';
      this.trust(session);
    }
  }

  private trust(session: WorkSession): void {
    session.suspect = false;
    session.pool.offer(session);
    this.context.wake();
  }

  private adopt(row: SessionRow, pool: Pool): WorkSession {
    const session = new WorkSession(identityOf(row), pool, (of, claims) => this.handBack(of, claims));
    session.draining = row.state === 'draining';
    this.byId.set(row.sessionId, session);
    return session;
  }

  private forget(session: WorkSession): void {
    this.byId.delete(session.identity.sessionId);
    session.pool.leave(session);
  }

  /** Claims that could not be written to the stream go back at once, their attempts given back. */
  private handBack(session: WorkSession, claims: readonly DeliveredClaim[]): void {
    for (const { record, epoch } of claims) {
      this.handBackClaim(session, { taskId: record.admission.taskId, epoch, accepted: false });
    }
  }

  private handBackClaim(session: WorkSession, { taskId, epoch, accepted }: LeasedClaim): void {
    const lease = { sessionId: session.identity.sessionId, epoch };
    const why = accepted ? 'forgotten' : 'undelivered';
    void this.context.authority.apply({ taskId, intent: { kind: 'hand_back', lease, why, cause: HAND_BACK_CAUSE } });
  }
}

const HAND_BACK_CAUSE = {
  actor: { type: 'recovery', id: 'reeve' },
  principal: 'reeve',
  source: 'authority',
  reason: null,
  causation: null,
  authoritativeAt: null,
} as const;

/** What a Hello asks for, within its bounds. */
function termsOf({
  ttlMs,
  lingerMs,
  workerName,
  helloJson,
}: WorkerHello): Pick<SessionRow, 'ttlMs' | 'lingerMs' | 'workerName' | 'helloJson'> {
  const ttl = Math.min(Math.max(ttlMs ?? DEFAULT_SESSION_TTL_MS, MIN_SESSION_TTL_MS), MAX_SESSION_TTL_MS);
  return { ttlMs: ttl, lingerMs: lingerMs === null ? null : Math.min(lingerMs, ttl), workerName, helloJson };
}

function identityOf({ sessionId, workerName, ttlMs, lingerMs }: SessionRow): SessionIdentity {
  return { sessionId, workerName, ttlMs, lingerMs };
}

function slotsOf(wanted: number): number {
  return Math.min(Math.max(wanted, 0), MAX_SLOTS);
}
