/**
 * The worker as users hold it: puts book, outbox and session together, and lets them go in the right order. A drain
 * takes nothing new, lets handlers finish, asks the rest to stop, hands back what is left, and only then ends.
 */

import { optionalSpanMs, requireSpanMs } from '../transport/option-checks.js';
import { ClaimBook } from './claim-book.js';
import { Delays } from './delays.js';
import { listening, type Tell } from './notices.js';
import { Outbox } from './outbox.js';
import { runClaim } from './run-claim.js';
import { Session } from './session.js';
import { Draining } from './stop-reasons.js';
import { WorkTerms } from './work-terms.js';
import { readWorkerOptions, requireSlots, type WorkerOptions, type WorkerSettings } from './worker-options.js';

export interface DrainOptions {
  /** How long handlers may finish, ms. Default: the worker's. */
  readonly graceMs?: number;
  /** How long the server may take to answer settlements and releases, ms. Default 5,000; 1,000 for `stop`. */
  readonly answerMs?: number;
}

const ANSWER_MS = 5_000;
const ANSWER_MS_OF_STOP = 1_000;

interface Waiter {
  readonly isMet: () => boolean;
  readonly resolve: () => void;
}

export class TaskWorker {
  private readonly terms = new WorkTerms();
  private readonly tell: Tell;
  private readonly outbox: Outbox;
  private readonly book: ClaimBook;
  private readonly session: Session;
  private readonly settings: WorkerSettings;
  private readonly delays = new Delays();
  private slots: number;
  private slotsAsked: number;
  private waiters: Waiter[] = [];
  private ended: Promise<void> | null = null;
  private ran: Promise<void> | null = null;
  private drained: Promise<void> | null = null;
  private hurried = false;

  constructor(options: WorkerOptions<Record<string, never>>) {
    this.settings = readWorkerOptions(options);
    const { hello, handlers, unanswered, linksFor, reattaches } = this.settings;
    this.tell = listening(options.onNotice);
    this.slots = this.slotsAsked = hello.slots;
    this.outbox = new Outbox(unanswered);
    const stage = { outbox: this.outbox, terms: this.terms, delays: this.delays, tell: this.tell };
    this.book = new ClaimBook(this.outbox, this.delays, this.tell, {
      begin: (held) => runClaim(held, handlers.get(held.kind) ?? handlers.get('*'), { ...stage, book: this.book }),
      receipts: (receipts) => this.session.receipts(receipts),
      handBack: (held) => this.session.release(held),
      changed: () => this.changed(),
      settled: listening(options.onSettled),
    });
    this.session = new Session({
      links: linksFor({
        held: () => [...this.book.held].map(({ taskId, epoch }) => ({ taskId, epoch })),
        onStalled: (silentMs) => this.tell({ type: 'stalled', silentMs }),
      }),
      hello,
      book: this.book,
      outbox: this.outbox,
      terms: this.terms,
      delays: this.delays,
      tell: this.tell,
      reattaches,
    });
  }

  /** The session's public name; empty before `start` has resolved. */
  get sessionAlias(): string {
    return this.session.alias;
  }

  /** Claims held now. */
  get held(): number {
    return this.book.size;
  }

  /** Resolves when the worker is attached for the first time. @throws ReeveError when the server will not have it. */
  async start(): Promise<void> {
    this.ended ??= this.session.run().finally(() => this.delays.end());
    // Whoever waits for it hears of it; nobody having waited must not end the process.
    this.ended.catch(() => undefined);
    await Promise.race([this.session.ready, this.ended]);
  }

  /**
   * Works until a signal, `drain` or `stop`; resolves after that drain. Called again it is the same run: a signal counts
   * once. @throws ReeveError as `start`.
   */
  run(): Promise<void> {
    return (this.ran ??= this.untilDrained());
  }

  /** Absolute: how many claims to hold at once. 0 pauses; what is held stays. */
  setSlots(slots: number): void {
    this.slots = requireSlots(slots);
    this.askForSlots();
  }

  /** Takes nothing more, finishes or hands back what is held, ends. @throws OptionError. */
  async drain(options: DrainOptions = {}): Promise<void> {
    const graceMs = optionalSpanMs('graceMs', options.graceMs) ?? this.settings.drainGraceMs;
    const answerMs = requireSpanMs('answerMs', options.answerMs ?? ANSWER_MS);
    await (this.drained ??= this.leave(graceMs, answerMs));
  }

  /** The same without patience: handlers are asked to stop at once. */
  stop(): Promise<void> {
    this.hurried = true;
    this.changed();
    return this.drain({ graceMs: 0, answerMs: ANSWER_MS_OF_STOP });
  }

  /** `await using worker = createWorker(…)`: drains. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.drain();
  }

  private async untilDrained(): Promise<void> {
    const { signals } = this.settings;
    const onSignal = () => void (this.drained === null ? this.drain() : this.stop());
    for (const signal of signals) process.on(signal, onSignal);
    try {
      await this.start();
      await this.ended;
      await this.drained;
    } finally {
      for (const signal of signals) process.off(signal, onSignal);
    }
  }

  private async leave(graceMs: number, answerMs: number): Promise<void> {
    const { book, session, tell } = this;
    book.drain();
    session.drain();
    tell({ type: 'draining', running: book.running });
    if (graceMs > 0) await this.until(() => book.isQuiet || this.hurried, graceMs);
    if (book.running > 0) {
      for (const held of book.held) if (held.running) held.stop.stop(new Draining());
      await this.until(() => book.running === book.strayHandlers, this.settings.drainStopMs);
    }
    book.leave();
    await this.until(() => book.size === 0, answerMs);
    await session.close(answerMs);
    // Its stream, and the thread that kept it, are gone when this resolves.
    await this.ended?.catch(() => undefined);
    book.end();
    this.delays.end();
    tell({ type: 'drained', released: book.released });
  }

  private changed(): void {
    this.askForSlots();
    if (this.waiters.length === 0) return;
    for (const waiter of this.waiters.filter(({ isMet }) => isMet())) waiter.resolve();
  }

  /** A handler of a lost claim that does not stop still takes its place. */
  private askForSlots(): void {
    const wanted = Math.max(0, this.slots - this.book.strayHandlers);
    if (wanted === this.slotsAsked) return;
    this.slotsAsked = wanted;
    this.session.setSlots(wanted);
  }

  private until(isMet: () => boolean, timeoutMs: number): Promise<void> {
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => {
      const waiter = {
        isMet,
        resolve: () => {
          clearTimeout(timer);
          this.waiters = this.waiters.filter((other) => other !== waiter);
          resolve();
        },
      };
      const timer = setTimeout(waiter.resolve, timeoutMs);
      this.waiters.push(waiter);
    });
  }
}
