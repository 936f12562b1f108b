/**
 * The worker as users hold it: puts book, outbox and session together, and lets them go in the right order. A drain
 * takes nothing new, lets handlers finish, asks the rest to stop, hands back what is left, and only then ends.
 */

import { ClaimBook } from './claim-book.js';
import type { Handler } from './handler.js';
import { listening, type Tell } from './notices.js';
import { Outbox } from './outbox.js';
import { runClaim } from './run-claim.js';
import { Session } from './session.js';
import { Draining } from './stop-reasons.js';
import { WorkTerms } from './work-terms.js';
import { linksFor, requireSlots, toHello, type WorkerOptions } from './worker-options.js';

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
  private readonly handlers: ReadonlyMap<string, Handler<never>>;
  private readonly drainGraceMs: number;
  private readonly drainStopMs: number;
  private readonly signals: readonly NodeJS.Signals[];
  private slots: number;
  private slotsAsked: number;
  private waiters: Waiter[] = [];
  private ended: Promise<void> | null = null;
  private drained: Promise<void> | null = null;
  private hurried = false;

  constructor(options: WorkerOptions<Record<string, never>>) {
    const hello = toHello(options);
    this.tell = listening(options.onNotice);
    this.handlers = new Map(Object.entries(options.handlers));
    this.slots = this.slotsAsked = hello.slots ?? 0;
    this.drainGraceMs = options.drainGraceMs ?? 30_000;
    this.drainStopMs = options.drainStopMs ?? 2_000;
    this.signals = options.signals ?? ['SIGTERM', 'SIGINT'];
    this.outbox = new Outbox(options);
    const stage = { outbox: this.outbox, terms: this.terms, tell: this.tell };
    this.book = new ClaimBook(this.outbox, this.tell, {
      begin: (held) =>
        runClaim(held, this.handlers.get(held.kind) ?? this.handlers.get('*'), { ...stage, book: this.book }),
      receipts: (receipts) => this.session.receipts(receipts),
      handBack: (held) => {
        for (const claim of held) claim.phase = 'releasing';
        this.session.release(held);
      },
      changed: () => this.changed(),
      settled: listening(options.onSettled),
    });
    this.session = new Session({
      links: linksFor(options, {
        held: () => [...this.book.held].map(({ taskId, epoch }) => ({ taskId, epoch })),
        onStalled: (silentMs) => this.tell({ type: 'stalled', silentMs }),
      }),
      hello,
      book: this.book,
      outbox: this.outbox,
      terms: this.terms,
      tell: this.tell,
      reattaches: options.lingerMs !== 0,
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
    this.ended ??= this.session.run();
    // Whoever waits for it hears of it; nobody having waited must not end the process.
    this.ended.catch(() => undefined);
    await Promise.race([this.session.ready, this.ended]);
  }

  /** Works until a signal, `drain` or `stop`; resolves after that drain. @throws ReeveError as `start`. */
  async run(): Promise<void> {
    const onSignal = () => void (this.drained === null ? this.drain() : this.stop());
    for (const signal of this.signals) process.on(signal, onSignal);
    try {
      await this.start();
      await this.ended;
      await this.drained;
    } finally {
      for (const signal of this.signals) process.off(signal, onSignal);
    }
  }

  /** Absolute: how many claims to hold at once. 0 pauses; what is held stays. */
  setSlots(slots: number): void {
    this.slots = requireSlots(slots);
    this.askForSlots();
  }

  /** Takes nothing more, finishes or hands back what is held, ends. */
  drain(options: DrainOptions = {}): Promise<void> {
    const { graceMs = this.drainGraceMs, answerMs = ANSWER_MS } = options;
    return (this.drained ??= this.leave(graceMs, answerMs));
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

  private async leave(graceMs: number, answerMs: number): Promise<void> {
    const { book, outbox, session, tell } = this;
    book.draining = true;
    session.drain();
    tell({ type: 'draining', running: book.running });
    const isQuiet = () => book.running === book.strayHandlers && outbox.isEmpty;
    if (graceMs > 0) await this.until(() => isQuiet() || this.hurried, graceMs);
    if (book.running > 0) {
      for (const held of book.held) if (held.running) held.stop.stop(new Draining());
      await this.until(() => book.running === book.strayHandlers, this.drainStopMs);
    }
    const left = [...book.held].filter(({ phase }) => phase === 'open');
    for (const held of left) held.phase = 'releasing';
    if (left.length > 0) session.release(left);
    await this.until(() => book.size === 0, answerMs);
    await session.close(answerMs);
    // Its stream, and the thread that kept it, are gone when this resolves.
    await this.ended?.catch(() => undefined);
    book.loseEverything('released');
    tell({ type: 'drained', released: left.length });
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
