/**
 * One work stream: a worker's frames in, the dispatcher's claims, cancels and losses out (api.md, "The work stream").
 * Owns the protocol of the stream: Hello first and once, which frame is answered by what, flow control both ways, the
 * half-close. It decides nothing about tasks and keeps no session: that is the dispatcher's.
 */
import type { Authority } from '../authority/authority.js';
import type { ReportOutcome } from '../authority/report-work.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { Attached } from '../dispatcher/sessions.js';
import type { WorkSession } from '../dispatcher/work-session.js';
import type { CancelNotice, DeliveredClaim, LeaseLoss, WorkSink } from '../dispatcher/work-sink.js';
import { HEARTBEATS_PER_TTL } from '../dispatcher/sessions.js';
import type {
  ClaimRef,
  Hello,
  WorkRequest,
  WorkRequestSchema,
  WorkResponseSchema,
} from '../gen/reeve/v1/worker_service_pb.js';
import type { Cause } from '../kernel/cause.js';
import { type Refusal, malformed, refuse } from '../kernel/refusal.js';
import type { Timer } from '../lib/clock.js';
import {
  cancelsFrame,
  drainFrame,
  heartbeatFrame,
  leasesLostFrame,
  rejectionFrame,
  splitCancels,
  splitLosses,
  welcomeFrame,
} from '../wire/control-frames.js';
import { readHeld, readHello, readSlots } from '../wire/hello-codec.js';
import { RefusalError } from '../wire/refusal-error.js';
import { type ClaimEvents, readWorkerEvents } from '../wire/worker-events-codec.js';
import type { StreamCall, StreamListener } from './call.js';
import { refusalOf } from './failures.js';
import { applyReceipts } from './cancel-receipts.js';
import { applyRelease } from './releases.js';
import { WorkOutbox } from './work-outbox.js';

/** Reports and frames that were read and wait for the authority; beyond it nothing more is read. */
const MAX_OUTSTANDING = 4_096;
const MAX_OUTSTANDING_BYTES = 16 * 1_048_576;
/** How long a new stream may stay silent before its Hello. */
const HELLO_PATIENCE_MS = 10_000;

export interface WorkContext {
  readonly authority: Authority;
  readonly dispatcher: Dispatcher;
  readonly acceptTimeoutMs: number;
  readonly onDefect: (error: unknown) => void;
}

type Call = StreamCall<typeof WorkResponseSchema>;

export class WorkStream implements StreamListener<typeof WorkRequestSchema>, WorkSink {
  private readonly outbox: WorkOutbox;
  private saidHello = false;
  private session: WorkSession | null = null;
  private attachment = 0;
  private cause: Cause | null = null;
  /** Frames that came while the session was being attached. */
  private early: WorkRequest[] = [];
  private readonly helloTimer: Timer;
  /** What was read and is not answered yet, whatever the kind of its answer. */
  private outstanding = 0;
  private outstandingBytes = 0;
  private paused = false;
  /** Claims went back because the worker does not read; it gets more when it has. */
  private tookNoClaims = false;
  private flushing = false;
  private saidEverything = false;
  private over = false;

  constructor(
    private readonly context: WorkContext,
    private readonly call: Call,
    private readonly onClosed: () => void,
  ) {
    this.outbox = new WorkOutbox(call);
    this.helloTimer = context.authority.clock.after(HELLO_PATIENCE_MS, () => {
      call.fail(malformed('frame', `no Hello within ${HELLO_PATIENCE_MS} ms`));
    });
  }

  received(message: WorkRequest): void {
    const { frame } = message;
    if (!this.saidHello) {
      if (frame.case !== 'hello') throw new RefusalError(malformed('frame', 'the first frame must be Hello'));
      this.saidHello = true;
      this.helloTimer.cancel();
      this.begin(frame.value);
      return;
    }
    if (frame.case === 'hello') throw new RefusalError(malformed('frame', 'Hello is said once'));
    if (this.session === null) this.early.push(message);
    else this.hear(this.session, message);
    if (this.isFull()) this.pause();
  }

  halfClosed(): void {
    this.saidEverything = true;
    if (this.session !== null) this.context.dispatcher.setSlots(this.session, 0);
    if (this.session !== null || !this.saidHello) this.endIfDone();
  }

  drained(): void {
    this.flush();
  }

  closed(): void {
    this.over = true;
    this.helloTimer.cancel();
    if (this.session !== null) this.context.dispatcher.streamEnded(this.session, this);
    this.onClosed();
  }

  claims(claims: readonly DeliveredClaim[]): boolean {
    if (this.over) return false;
    const taken = this.outbox.addClaims(claims);
    if (!taken) this.tookNoClaims = true;
    return taken;
  }

  cancels(notices: readonly CancelNotice[]): boolean {
    if (this.over) return false;
    for (const list of splitCancels(notices)) this.outbox.addControl(cancelsFrame(list), list.map(taskIdOf));
    return true;
  }

  leasesLost(losses: readonly LeaseLoss[]): boolean {
    if (this.over) return false;
    for (const list of splitLosses(losses)) this.outbox.addControl(leasesLostFrame(list), list.map(taskIdOf));
    return true;
  }

  drain(reconnectAfterMs: number, graceMs: number): boolean {
    if (this.over) return false;
    // Spread, so that the workers of a server do not all reconnect in one moment.
    const spreadMs = Math.floor(reconnectAfterMs * (1 + this.context.authority.random.chance()));
    this.outbox.addControl(drainFrame(spreadMs, graceMs));
    return true;
  }

  close(why: 'superseded' | 'session_gone' | 'draining'): void {
    if (why === 'draining') return this.call.fail(refuse('DRAINING', 'the server has stopped; connect elsewhere'));
    const newer: Readonly<Record<string, string>> =
      why === 'superseded' ? { attachment: String(this.attachment + 1) } : {};
    this.call.fail(refuse('SESSION_GONE', 'the session is over or was attached by a newer stream', newer));
  }

  private begin(hello: Hello): void {
    const command = readHello(hello);
    const { dispatcher } = this.context;
    // Nothing is read meanwhile: what the worker sends waits in the transport.
    this.pause();
    const { reattach } = command;
    const attaching =
      reattach === null
        ? dispatcher.open(command, this)
        : dispatcher.reattach(reattach.sessionId, reattach.secret, reattach.held, command, this);
    attaching.then(
      (answer) => (answer.ok ? this.attached(answer.value) : this.call.fail(answer.refusal)),
      (error: unknown) => this.failed(error),
    );
  }

  private attached({ session, secret, kept, lost }: Attached): void {
    const { dispatcher, authority, acceptTimeoutMs } = this.context;
    if (this.over) return dispatcher.streamEnded(session, this);
    const { sessionId, ttlMs, workerName } = session.identity;
    this.session = session;
    this.attachment = session.attachment;
    this.cause = workerCause(workerName, this.call.context.principal);
    this.outbox.start(
      welcomeFrame({
        sessionId,
        secret,
        attachment: session.attachment,
        ttlMs,
        heartbeatMs: Math.floor(ttlMs / HEARTBEATS_PER_TTL),
        acceptTimeoutMs,
        now: authority.now(),
        kept,
        lost,
      }),
    );
    const { early } = this;
    this.early = [];
    for (const message of early) this.hear(session, message);
    if (this.saidEverything) this.halfClosed();
    this.resumeIfRoom();
  }

  /** A frame that breaks its own contract is refused and has no effect; the stream goes on. */
  private hear(session: WorkSession, message: WorkRequest): void {
    try {
      this.act(session, message);
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      this.outbox.addControl(rejectionFrame(message.frameId, error.refusal));
    }
  }

  private act(session: WorkSession, { frame, frameId }: WorkRequest): void {
    const { dispatcher } = this.context;
    switch (frame.case) {
      case 'events':
        for (const claim of readWorkerEvents(frame.value.events)) this.report(session, claim);
        return;
      case 'heartbeat':
        return this.heartbeat(session, frameId, frame.value.held);
      case 'slots':
        return dispatcher.setSlots(session, readSlots('slots', frame.value.slots));
      case 'cancelReceipts':
        return this.rejectable(frameId, applyReceipts(this.speaker(session), frame.value.receipts));
      case 'drain':
        dispatcher.drain(session).catch(this.context.onDefect);
        return;
      case 'release': {
        const { claims } = frame.value;
        const onLost = (losses: readonly LeaseLoss[]): void => void this.leasesLost(losses);
        return this.rejectable(frameId, applyRelease(this.speaker(session), session, claims, onLost));
      }
      case 'rejection':
      case 'hello':
        return;
      case undefined:
        throw new RefusalError(refuse('UNSUPPORTED', 'this kind of frame is not known'));
    }
  }

  private heartbeat(session: WorkSession, frameId: bigint, held: readonly ClaimRef[]): void {
    const renewing = this.context.dispatcher.heartbeat(session, this.attachment, readHeld(held));
    this.begun();
    renewing
      .then((renewal) => {
        // Silence tells the worker that its session was not renewed: it counts its TTL from the last answer.
        if (renewal === 'renewed' && !this.over) {
          this.outbox.addControl(heartbeatFrame(frameId, this.context.authority.now()));
        }
      })
      .catch(this.context.onDefect)
      .finally(() => this.ended());
  }

  /** A frame whose answer is told elsewhere, unless it is refused as a whole. */
  private rejectable(frameId: bigint, answering: Promise<Refusal | null>): void {
    this.begun();
    answering
      .then((refusal) => {
        if (refusal === null || this.over) return;
        if (refusal.reason === 'SESSION_GONE') this.call.fail(refusal);
        else this.outbox.addControl(rejectionFrame(frameId, refusal));
      })
      .catch(this.context.onDefect)
      .finally(() => this.ended());
  }

  private report(session: WorkSession, claim: ClaimEvents): void {
    const { weightBytes } = claim;
    this.begun(weightBytes);
    const answeredThrough = session.held.get(claim.taskId)?.answeredThrough ?? 0;
    this.context.dispatcher.report(session, this.attachment, claim, this.speaker(session).cause, (outcome) => {
      this.answer(claim, outcome, answeredThrough);
      this.ended(weightBytes);
    });
  }

  private begun(weightBytes = 0): void {
    this.outstanding += 1;
    this.outstandingBytes += weightBytes;
  }

  private ended(weightBytes = 0): void {
    this.outstanding -= 1;
    this.outstandingBytes -= weightBytes;
    this.flushSoon();
  }

  private answer(claim: ClaimEvents, outcome: ReportOutcome, answeredThrough: number): void {
    if (this.over) return;
    const { taskId, epoch, events } = claim;
    if (outcome.kind === 'judged') {
      const { judgedThrough, committedSequence, refused } = outcome;
      this.outbox.addVerdict({ taskId, epoch, judgedThrough, committedSequence, refused });
    } else if (outcome.refusal.reason === 'SESSION_GONE') {
      return this.call.fail(outcome.refusal);
    } else {
      // Nothing was judged: the mark stays, and the first event tells why for all of them.
      const seq = events[0]?.seq ?? 0;
      const refused = [{ seq, refusal: outcome.refusal }];
      this.outbox.addVerdict({ taskId, epoch, judgedThrough: answeredThrough, committedSequence: 0, refused });
    }
  }

  private speaker(session: WorkSession): Speaker {
    const { cause } = this;
    if (cause === null) throw new Error('a worker speaks before its session is attached');
    return {
      authority: this.context.authority,
      sessionId: session.identity.sessionId,
      attachment: this.attachment,
      cause,
    };
  }

  /** The answers of one commit come within one turn: they leave as one frame. */
  private flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => this.flush());
  }

  private flush(): void {
    this.flushing = false;
    if (this.over) return;
    this.outbox.flush();
    this.resumeIfRoom();
    this.takeClaimsIfRead();
    if (this.saidEverything) this.endIfDone();
  }

  private isFull(): boolean {
    const { outstanding, outstandingBytes, outbox } = this;
    return outstanding >= MAX_OUTSTANDING || outstandingBytes >= MAX_OUTSTANDING_BYTES || outbox.isBehind;
  }

  private pause(): void {
    this.paused = true;
    this.call.pause();
  }

  private resumeIfRoom(): void {
    if (!this.paused || this.isFull()) return;
    this.paused = false;
    this.call.resume();
  }

  private takeClaimsIfRead(): void {
    if (!this.tookNoClaims || this.outbox.isBehind || this.session === null) return;
    this.tookNoClaims = false;
    this.context.dispatcher.takesClaimsAgain(this.session, this);
  }

  private endIfDone(): void {
    if (this.outstanding === 0 && this.outbox.isEmpty) this.call.end();
  }

  private failed(error: unknown): void {
    const refusal = refusalOf(error);
    if (refusal.reason === 'INTERNAL') this.context.onDefect(error);
    this.call.fail(refusal);
  }
}

/** In whose name a worker's frame asks the authority. */
export interface Speaker {
  readonly authority: Authority;
  readonly sessionId: string;
  readonly attachment: number;
  readonly cause: Cause;
}

function workerCause(workerName: string, principal: string): Cause {
  return {
    actor: { type: 'worker', id: workerName },
    principal,
    source: 'stream',
    reason: null,
    causation: null,
    authoritativeAt: null,
  };
}

function taskIdOf(item: { readonly taskId: string }): string {
  return item.taskId;
}
