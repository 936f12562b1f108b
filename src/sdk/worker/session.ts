/**
 * One worker's presence over all its streams: Hello, re-attach with what is held, back-off, a new session when the
 * old one is gone. It must not give up a claim because a stream broke; only the server says that a session is over.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { CancelReceiptSchema, ServerDrain, Welcome } from '../../gen/reeve/v1/worker_service_pb.js';
import { MAX_TIMER_MS } from '../transport/option-checks.js';
import { fromRefusal, ReeveError } from '../transport/reeve-error.js';
import { durationToMs } from '../transport/time.js';
import type { ClaimBook } from './claim-book.js';
import type { Delays } from './delays.js';
import type { HeldClaim } from './held-claim.js';
import type { Tell } from './notices.js';
import type { Outbox } from './outbox.js';
import { mayBeForWhatWasSaid } from './refused-events.js';
import { ReattachPause } from './reattach-pause.js';
import { SayAgain } from './say-again.js';
import { Attachment, type HelloInit, type WorkFrame } from './stream/attachment.js';
import type { FrameKind } from './stream/frame-glance.js';
import type { Links } from './stream/link.js';
import { THREAD_FAILED } from './stream/thread-links.js';
import type { WorkTerms } from './work-terms.js';

export interface SessionOptions {
  readonly links: Links;
  /** Who is there; slots and re-attach are added here. */
  readonly hello: HelloInit;
  readonly book: ClaimBook;
  readonly outbox: Outbox;
  readonly terms: WorkTerms;
  readonly delays: Delays;
  readonly tell: Tell;
  /** False when the Hello asks for no linger: a session then ends with its stream. */
  readonly reattaches: boolean;
}

/** What no second Hello would change. Only before the first Welcome: later it may be a passing mishap. */
const HOPELESS: ReadonlySet<status> = new Set([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.UNIMPLEMENTED,
  status.INVALID_ARGUMENT,
]);
/** Tries to attach again within the TTL that a restarted server gives, whatever the back-off has come to. */
const WAITS_PER_TTL = 4;
/** For the server to answer what is outstanding after a half-close, ms. */
const FLUSH_TIMEOUT_MS = 5_000;
/** A cancel without its receipt is told again at the next attach, a claim not released ends with its session. */
const MAX_REPEATS = 10;

export class Session {
  /** Resolves with the first Welcome. */
  readonly ready: Promise<void>;
  /** The name that others see; empty before the first Welcome. */
  alias = '';
  private readonly reattachPause = new ReattachPause();
  private identity: { readonly sessionId: string; readonly sessionSecret: string } | null = null;
  /** The stream under way, welcomed or not. */
  private current: Attachment | null = null;
  private welcomed = false;
  /** When the last stream that was welcomed was; null once its end is dealt with. */
  private welcomedAtMs: number | null = null;
  private everWelcomed = false;
  /** Of all events, when the last stream ended. */
  private answeredBefore = 0;
  private readonly sayAgain = new SayAgain({
    events: { again: () => this.options.book.sayAgain(), maxTimes: Number.POSITIVE_INFINITY },
    release: { again: () => this.releaseAgain(), maxTimes: MAX_REPEATS },
    cancelReceipts: { again: () => this.receipts(this.options.book.receiptsOwed()), maxTimes: MAX_REPEATS },
  });
  private slots: number;
  private draining = false;
  private closing = false;
  private notBeforeMs = 0;
  private wake: () => void = () => undefined;
  private markReady: () => void = () => undefined;

  constructor(private readonly options: SessionOptions) {
    this.slots = options.hello.slots ?? 0;
    this.ready = new Promise((resolve) => (this.markReady = resolve));
  }

  /** Resolves after `close`. @throws ReeveError when the server will not have this worker; THREAD_FAILED. */
  async run(): Promise<void> {
    try {
      while (!this.closing) {
        const ending = await this.attachOnce();
        if (this.closing) return;
        const waitMs = this.afterEnd(ending);
        this.options.tell({ type: 'detached', error: ending, retryInMs: waitMs });
        await this.pause(waitMs);
      }
    } finally {
      await this.options.links.close();
    }
  }

  /** Absolute: how many claims to hold at once. */
  setSlots(slots: number): void {
    this.slots = slots;
    this.current?.setSlots(slots);
  }

  receipts(receipts: MessageInitShape<typeof CancelReceiptSchema>[]): void {
    // Without a stream they are not missed: the cancel comes again after the re-attach.
    if (this.welcomed && receipts.length > 0) this.current?.say({ case: 'cancelReceipts', value: { receipts } });
  }

  /** No more claims, in this and every later attachment. */
  drain(): void {
    if (this.draining) return;
    this.draining = true;
    if (this.welcomed) this.current?.say({ case: 'drain', value: {} });
  }

  /** Hands back what is `releasing`; again after every re-attach until it is answered. */
  release(held: Iterable<HeldClaim>): void {
    if (!this.welcomed) return;
    const claims = [...held].map(({ taskId, generation, epoch }) => ({ taskId, generation, epoch }));
    // What was said last, a checkpoint perhaps, goes first.
    this.options.outbox.flush();
    this.current?.release(claims);
  }

  /** Lets the server answer what is outstanding, for at most so long, and ends. */
  async close(timeoutMs: number): Promise<void> {
    this.closing = true;
    this.wake();
    const { current } = this;
    if (current === null) return;
    if (this.welcomed) current.halfClose();
    const patienceMs = this.welcomed ? timeoutMs : 0;
    const timer = setTimeout(() => current.give('the server did not end the stream'), patienceMs);
    await current.ended;
    clearTimeout(timer);
  }

  private attachOnce(): Promise<ReeveError> {
    const { links, book, outbox, terms, tell } = this.options;
    const helloSentAtMs = Date.now();
    const attachment: Attachment = new Attachment(links, this.hello(), {
      onWelcome: (welcome) => this.onWelcome(attachment, welcome, helloSentAtMs),
      onWork: (frame, about) => this.onWork(frame, about),
      onRenewed: (sentAtMs) => {
        terms.renew(sentAtMs);
        book.takeUpAgain();
      },
      onUnknownFrame: (frameId) => tell({ type: 'frame_refused', frameId, error: unsupported }),
      onDrain: () => outbox.flush(),
      onEnd: (ending) => {
        if (this.welcomed && mayBeForWhatWasSaid(ending)) this.refusedForGood('stream', ending);
        this.welcomed = false;
        this.current = null;
        outbox.detach();
        this.sayAgain.reset();
      },
    });
    this.current = attachment;
    return attachment.ended;
  }

  private hello(): HelloInit & { readonly slots: number } {
    const { hello, book } = this.options;
    const base = { ...hello, slots: this.slots };
    if (this.identity === null) return base;
    const held = [...book.held].map(({ taskId, epoch, answeredThrough }) => ({
      taskId,
      epoch,
      answeredThrough: BigInt(answeredThrough),
    }));
    return { ...base, reattach: { ...this.identity, held } };
  }

  private onWelcome(attachment: Attachment, welcome: Welcome, helloSentAtMs: number): void {
    const { book, outbox, terms, tell } = this.options;
    const resumed = this.identity !== null;
    this.identity = { sessionId: welcome.sessionId, sessionSecret: welcome.sessionSecret };
    this.alias = welcome.sessionAlias;
    this.welcomed = true;
    this.everWelcomed = true;
    this.welcomedAtMs = performance.now();
    terms.read(welcome, helloSentAtMs);
    if (resumed) book.reconcile(welcome.leasesKept, welcome.leasesLost);
    outbox.attach(attachment);
    if (this.draining) {
      attachment.say({ case: 'drain', value: {} });
      this.releaseAgain();
    }
    tell({ type: 'attached', sessionAlias: this.alias, attachment: Number(welcome.attachment), resumed });
    this.markReady();
  }

  private onWork(frame: WorkFrame, about: FrameKind | null): void {
    const { book, tell } = this.options;
    switch (frame.case) {
      case 'claims':
        return book.take(frame.value.claims);
      case 'verdicts':
        return book.judge(frame.value.verdicts);
      case 'cancels':
        return book.cancel(frame.value.cancels);
      case 'leasesLost':
        return book.loseAllOf(frame.value.losses);
      case 'drain':
        return this.onServerDrain(frame.value);
      case 'rejection': {
        const { frameId, refusal } = frame.value;
        const error = refusal === undefined ? unsupported : fromRefusal(refusal);
        tell({ type: 'frame_refused', frameId: Number(frameId), error });
        if (error.retryable) this.refusedForNow(about, error);
        else if (about === 'events') this.refusedForGood('frame', error);
      }
    }
  }

  /** Everything of that kind is safe to say again: events are numbered, the rest may be repeated. */
  private refusedForNow(about: FrameKind | null, error: ReeveError): void {
    switch (about) {
      case 'release':
      case 'cancelReceipts':
        this.sayAgain.refused(about, error);
        return;
      case 'events':
      case null:
        this.sayAgain.refused('events', error);
        return;
      default:
        // Heartbeats come again by themselves; the others are not refused for now.
        return;
    }
  }

  /** No word about which event it was: then they are said again one by one, on a new stream. */
  private refusedForGood(what: 'frame' | 'stream', error: ReeveError): void {
    const { outbox, book } = this.options;
    const culprit = outbox.blame(what);
    if (culprit !== null) book.giveUp(culprit, error);
    else if (what === 'frame') this.current?.give(`a frame of events was refused: ${error.message}`);
  }

  private releaseAgain(): void {
    const left = [...this.options.book.held].filter(({ phase }) => phase === 'releasing');
    if (left.length > 0) this.release(left);
  }

  private onServerDrain({ reconnectAfter }: ServerDrain): void {
    const reconnectInMs = durationToMs(reconnectAfter) ?? 0;
    const { current } = this;
    this.notBeforeMs = performance.now() + reconnectInMs;
    const { delays, outbox, tell } = this.options;
    tell({ type: 'server_draining', reconnectInMs });
    const leave = delays.after(reconnectInMs, () => {
      // Half-closed, so that what was said is answered before the next stream says it again.
      outbox.detach();
      current?.halfClose();
      const give = delays.after(FLUSH_TIMEOUT_MS, () => current?.give('the draining server did not end the stream'));
      void current?.ended.then(give.cancel);
    });
    void current?.ended.then(leave.cancel);
  }

  /** What an ended stream means for the session; how long to wait before the next, ms. */
  private afterEnd(ending: ReeveError): number {
    const { book, reattaches, tell } = this.options;
    if (!this.everWelcomed && (HOPELESS.has(ending.code) || ending.reason === THREAD_FAILED)) throw ending;
    if (ending.reason === 'SESSION_GONE' || (!reattaches && this.identity !== null)) {
      this.identity = null;
      tell({ type: 'session_lost', claims: book.loseEverything('session_expired') });
    }
    const pauseMs = this.pauseAfter(ending);
    const drainLeftMs = this.notBeforeMs - performance.now();
    // A drain has spread its workers already.
    if (ending.code === status.OK && drainLeftMs > -FLUSH_TIMEOUT_MS) return Math.max(0, drainLeftMs);
    const { retryAfterMs = 0 } = ending;
    return Math.min(pauseMs, retryAfterMs + this.longestWaitMs());
  }

  private pauseAfter(ending: ReeveError): number {
    const { answeredEvents } = this.options.outbox;
    const tookWords = answeredEvents > this.answeredBefore;
    const livedMs = this.welcomedAtMs === null ? null : performance.now() - this.welcomedAtMs;
    this.answeredBefore = answeredEvents;
    this.welcomedAtMs = null;
    return this.reattachPause.after({ ending, livedMs, tookWords });
  }

  /** A server that comes back keeps a session for one TTL: who waits longer than a part of it loses what it holds. */
  private longestWaitMs(): number {
    if (this.identity === null) return Number.POSITIVE_INFINITY;
    return (this.options.terms.ttlMs / WAITS_PER_TTL) * (0.5 + Math.random() / 2);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms, MAX_TIMER_MS));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.closing) this.wake();
    });
  }
}

const unsupported = new ReeveError({
  reason: 'UNSUPPORTED',
  code: status.UNIMPLEMENTED,
  message: 'a kind of frame that is not known here',
});
