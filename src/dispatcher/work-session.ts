/**
 * One session as this process sees it: its stream, its slots and the claims it holds (lifecycle.md section 7).
 * The row in the store is the truth about its life; this is the truth about what can be sent to it now.
 */
import type { Pool } from './pool.js';
import type { CancelNotice, DeliveredClaim, LeaseLoss, WorkSink } from './work-sink.js';

export interface HeldClaim {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  /** The highest worker event number answered, refused ones included. */
  answeredThrough: number;
  /** Monotonic ms at which the worker last named it, or at which it was sent. */
  namedAt: number;
  /** False while the payloads that go with it are being read. */
  sent: boolean;
  /** A cancel that came before it was sent, and follows it. */
  cancel: CancelNotice | null;
}

/** Who it is, and what its last Hello asked for. */
export interface SessionIdentity {
  readonly sessionId: string;
  readonly workerName: string;
  readonly ttlMs: number;
  /** Null: may re-attach within its TTL. 0: ends with its stream. */
  readonly lingerMs: number | null;
}

/** What is waiting for the end of the turn, so that one wake-up is one frame of each kind. */
interface Outbox {
  claims: DeliveredClaim[];
  cancels: CancelNotice[];
  losses: LeaseLoss[];
}

export class WorkSession {
  readonly held = new Map<string, HeldClaim>();
  /** Grows with every attach; what an older attachment says no longer applies. */
  attachment = 1;
  /** Set while its row in the store is being looked at again after a lost race. */
  suspect = false;
  draining = false;
  /** Epoch ms beyond which it does not wait to be attached again; null while it has its stream. */
  lingersUntil: number | null = null;
  private sink: WorkSink | null = null;
  /** The stream took no claims: it gets no more until it says that it does again, or another takes its place. */
  private broken = false;
  private slots = 0;
  private reserved = 0;
  private outbox: Outbox = emptyOutbox();
  private flushing = false;

  constructor(
    public identity: SessionIdentity,
    public pool: Pool,
    private readonly onUndelivered: (session: WorkSession, claims: readonly DeliveredClaim[]) => void,
  ) {
    pool.join(this);
  }

  /** Free slots that may be given claims now. */
  get credit(): number {
    if (this.sink === null || this.broken || this.draining || this.suspect) return 0;
    return this.slots - this.held.size - this.reserved;
  }

  /** Claims it wants to hold at once; 0 while it is not attached. */
  get wanted(): number {
    return this.sink === null ? 0 : this.slots;
  }

  get attached(): boolean {
    return this.sink !== null;
  }

  /** Gets no claims until its slots are set: what it holds already may still have to be read. */
  attach(sink: WorkSink, attachment: number): void {
    this.sink?.close('superseded');
    this.sink = sink;
    this.broken = false;
    this.slots = 0;
    this.attachment = attachment;
    this.suspect = false;
    this.lingersUntil = null;
  }

  /** A re-attaching worker may serve something else than before. */
  moveTo(pool: Pool): void {
    if (pool === this.pool) return;
    this.pool.leave(this);
    this.pool = pool;
    pool.join(this);
  }

  /** The stream ended; ignored when another has taken its place. */
  detach(sink: WorkSink): boolean {
    if (this.sink !== sink) return false;
    this.sink = null;
    return true;
  }

  close(why: 'superseded' | 'session_gone' | 'draining'): void {
    this.sink?.close(why);
    this.sink = null;
  }

  /** The worker has caught up with what was sent on this stream. False when the stream is not the session's. */
  takesClaimsAgain(sink: WorkSink): boolean {
    if (this.sink !== sink) return false;
    this.broken = false;
    this.pool.offer(this);
    return true;
  }

  /** Absolute: how many claims the session wants to hold at once. */
  setSlots(slots: number): void {
    this.slots = slots;
    this.pool.offer(this);
  }

  /** A slot is promised to a claim that is not committed yet. */
  reserve(): void {
    this.reserved += 1;
  }

  /** The promise came to nothing, or the claim is held by now. */
  unreserve(): void {
    this.reserved -= 1;
    this.pool.offer(this);
  }

  hold(claim: HeldClaim): void {
    this.held.set(claim.taskId, claim);
  }

  /** The claim ended; its slot is free. False when this session does not hold that epoch. */
  letGo(taskId: string, epoch: number): boolean {
    if (this.held.get(taskId)?.epoch !== epoch) return false;
    this.held.delete(taskId);
    this.pool.offer(this);
    return true;
  }

  deliver(claim: DeliveredClaim): void {
    this.outbox.claims.push(claim);
    this.flushSoon();
  }

  cancel(notice: CancelNotice): void {
    this.outbox.cancels.push(notice);
    this.flushSoon();
  }

  lose(loss: LeaseLoss): void {
    this.outbox.losses.push(loss);
    this.flushSoon();
  }

  sendDrain(reconnectAfterMs: number, graceMs: number): void {
    this.sink?.drain(reconnectAfterMs, graceMs);
  }

  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => this.flush());
  }

  private flush(): void {
    this.flushing = false;
    const { claims, cancels, losses } = this.outbox;
    this.outbox = emptyOutbox();
    const { sink } = this;
    if (losses.length > 0) sink?.leasesLost(losses);
    if (claims.length > 0 && !(sink?.claims(claims) ?? false)) {
      this.broken = true;
      this.onUndelivered(this, claims);
    }
    // After the claims: a cancel may be of one of them. What cannot be sent now is sent at the next attach.
    if (cancels.length > 0) sink?.cancels(cancels);
  }
}

function emptyOutbox(): Outbox {
  return { claims: [], cancels: [], losses: [] };
}
