/**
 * The world of one case: a server on a port of its own, one worker process that was started with its address, and
 * everything that was said. Whatever happens, `close` leaves no process and no port behind.
 */
import { ReceiptKind } from '../gen/reeve/v1/task_pb.js';
import type { Hello } from '../gen/reeve/v1/worker_service_pb.js';
import { CaseSkipped, demand } from './case.js';
import { EventLedger, type EventWord, type Saying } from './event-ledger.js';
import { KINDS } from './kit-contract.js';
import { KitServer } from './kit-server.js';
import { KitSession, type SessionIdentity, type SessionTerms } from './kit-session.js';
import { claimOf, type OfferedClaim } from './offered-claim.js';
import { Signals } from './signals.js';
import { type FrameOf, type WorkCall, WorkerStream } from './worker-stream.js';
import { type ProcessEnd, WorkerProcess } from './worker-process.js';

export interface KitOptions {
  /** A shell command. */
  readonly command: string;
  /** The most until its first Hello: what a program takes to start says nothing about the case. */
  readonly startTimeoutMs: number;
  /** The most that the case may take from there. */
  readonly timeoutMs: number;
}

/** A stream whose Hello has come. */
export interface ArrivedStream {
  readonly stream: WorkerStream;
  readonly hello: Hello;
}

export class Kit {
  readonly ledger = new EventLedger();
  readonly signals = new Signals();
  /** Streams that the worker has opened and no case has taken. */
  private readonly arrived: ArrivedStream[] = [];
  private readonly sessions = new Map<WorkerStream, KitSession>();
  private deadline: NodeJS.Timeout;
  private started = false;
  private sessionsMade = 0;
  private mayEnd = false;
  private end: ProcessEnd | null = null;

  private constructor(
    readonly server: KitServer,
    readonly worker: WorkerProcess,
    private readonly options: KitOptions,
  ) {
    this.deadline = this.timeUpAfter(options.startTimeoutMs);
    void worker.ended.then((end) => {
      this.end = end;
      if (!this.mayEnd) this.signals.fail(`the worker ended (${end}) though nobody asked it to`);
      this.signals.changed();
    });
  }

  static async open(options: KitOptions): Promise<Kit> {
    const kits: Kit[] = [];
    // A worker can't connect before it is started, and by then the kit is there.
    const server = await KitServer.start((call) => kits[0]?.accept(call));
    const kit = new Kit(server, new WorkerProcess(options.command, server.address), options);
    kits.push(kit);
    return kit;
  }

  async close(): Promise<void> {
    clearTimeout(this.deadline);
    this.mayEnd = true;
    await this.worker.kill();
    await this.server.stop();
  }

  /** The next stream that the worker opens, not answered yet. */
  arrival(what = 'a stream with its Hello'): Promise<ArrivedStream> {
    return this.signals.until(() => this.arrived.shift(), what);
  }

  /** A new session: the next stream must not ask for an old one. */
  async welcome(terms: SessionTerms = {}, what?: string): Promise<KitSession> {
    const { stream, hello } = await this.arrival(what);
    demand(hello.reattach === undefined, 'the Hello asks for an earlier session where there is none to go on with');
    this.sessionsMade += 1;
    const identity = { id: `session-${this.sessionsMade}`, secret: `secret-${this.sessionsMade}`, attachment: 1 };
    return this.answer(stream, hello, identity, terms, [], []);
  }

  /** The next stream goes on with `earlier`, and what it says it holds is answered as told. */
  async welcomeBack(
    earlier: KitSession,
    kept: readonly [OfferedClaim, answeredThrough: number][],
    lost: readonly OfferedClaim[] = [],
    terms: SessionTerms = {},
  ): Promise<KitSession> {
    const { stream, hello } = await this.reattachArrival(earlier);
    return this.attach(stream, hello, earlier, kept, lost, terms);
  }

  /** Welcomes a stream that goes on with `earlier`. */
  attach(
    stream: WorkerStream,
    hello: Hello,
    earlier: KitSession,
    kept: readonly [OfferedClaim, answeredThrough: number][],
    lost: readonly OfferedClaim[] = [],
    terms: SessionTerms = {},
  ): KitSession {
    const { id, secret, attachment } = earlier.identity;
    return this.answer(stream, hello, { id, secret, attachment: attachment + 1 }, terms, kept, lost);
  }

  /** The next stream, with a Hello that names the earlier session and proves it. */
  async reattachArrival(earlier: KitSession): Promise<ArrivedStream> {
    const { linger } = earlier.hello;
    if (linger !== undefined && linger.seconds === 0n && linger.nanos === 0) {
      throw new CaseSkipped('the worker asks for no linger, so its sessions end with their streams');
    }
    const arrived = await this.arrival('a new stream after the old one');
    const { reattach } = arrived.hello;
    demand(reattach !== undefined, 'the worker opened a new session where the old one was there to go on with');
    const { id, secret } = earlier.identity;
    demand(reattach.sessionId === id, `the Hello asks for session ${reattach.sessionId}, it had ${id}`);
    demand(reattach.sessionSecret === secret, 'the Hello does not carry the secret of the session');
    return arrived;
  }

  /** Waits until the claim's event has been heard, on whatever stream. */
  said<Word extends EventWord>(claim: OfferedClaim, word: Word): Promise<Saying<Word>> {
    const find = () => this.ledger.said(claim).find((saying): saying is Saying<Word> => saying.case === word);
    return this.signals.until(find, `${word} of ${claim.taskId} (${claim.message.actionKind})`);
  }

  saidAtLeast(claim: OfferedClaim, count: number): Promise<readonly Saying[]> {
    const find = () => (this.ledger.said(claim).length >= count ? this.ledger.said(claim) : undefined);
    return this.signals.until(find, `${count} events of ${claim.taskId}`);
  }

  /** Waits for the claim's ending; it must be `completed`, and the only one. */
  async completes(claim: OfferedClaim): Promise<Saying<'completed'>> {
    const ending = await this.ends(claim);
    demand(ending.case === 'completed', `${claim.taskId} ended with ${ending.case}, not with completed`);
    return ending;
  }

  ends(claim: OfferedClaim): Promise<Saying> {
    const endings = ['completed', 'failed', 'cancelled', 'timedOut', 'suspended'];
    const find = () => this.ledger.said(claim).find((saying) => endings.includes(saying.case));
    return this.signals.until(find, `an ending of ${claim.taskId} (${claim.message.actionKind})`);
  }

  /**
   * The worker still works, and everything that was said to it before has been heard by it: frames are handled in
   * order, so what it says after its answer to this claim, it says knowingly.
   */
  async worksStill(session: KitSession): Promise<void> {
    const claim = claimOf(KINDS.echo, { still: 'here' });
    session.offer(claim);
    await this.completes(claim);
  }

  /** The claim is the worker's no longer, it has been told, and from now on every word about it is a fault. */
  async silencedAfter(session: KitSession, claims: readonly OfferedClaim[], why: string): Promise<void> {
    await this.worksStill(session);
    for (const claim of claims) this.ledger.over(claim, why);
  }

  async leaves(limitMs: number): Promise<void> {
    const timer = setTimeout(() => this.signals.fail(`still there ${limitMs / 1_000} s after SIGTERM`), limitMs);
    try {
      const end = await this.signals.until(() => this.end ?? undefined, 'the end of the worker process');
      demand(end === 0, `ended with ${end} after SIGTERM, not with exit code 0`);
    } finally {
      clearTimeout(timer);
    }
  }

  askToLeave(): void {
    this.mayEnd = true;
    this.worker.askToLeave();
  }

  /** Delivered first, acknowledged later. */
  async receipts(session: KitSession, claim: OfferedClaim): Promise<void> {
    const delivered = await session.receipt(claim, ReceiptKind.DELIVERED, 'the receipt that the cancel was delivered');
    const acknowledged = await session.receipt(
      claim,
      ReceiptKind.ACKNOWLEDGED,
      'the receipt that the handler is stopping',
    );
    const order = session.heardOf('cancelReceipts').flatMap(({ receipts }) => receipts);
    const at = (list: FrameOf<'cancelReceipts'>, kind: ReceiptKind) =>
      order.findIndex((receipt) => list.receipts.includes(receipt) && receipt.kind === kind);
    demand(
      at(delivered, ReceiptKind.DELIVERED) < at(acknowledged, ReceiptKind.ACKNOWLEDGED),
      'the cancel was acknowledged before it was said to be delivered',
    );
  }

  private answer(
    stream: WorkerStream,
    hello: Hello,
    identity: SessionIdentity,
    terms: SessionTerms,
    kept: readonly [OfferedClaim, number][],
    lost: readonly OfferedClaim[],
  ): KitSession {
    const session = new KitSession(stream, hello, identity, this, terms);
    this.sessions.set(stream, session);
    session.welcome(kept, lost);
    return session;
  }

  private timeUpAfter(limitMs: number): NodeJS.Timeout {
    return setTimeout(() => this.signals.timeUp(limitMs), limitMs);
  }

  private noteArrival(arrived: ArrivedStream): void {
    this.arrived.push(arrived);
    if (this.started) return;
    this.started = true;
    clearTimeout(this.deadline);
    this.deadline = this.timeUpAfter(this.options.timeoutMs);
  }

  private accept(call: WorkCall): void {
    new WorkerStream(call, {
      onFrame: (stream, frame, frameId) => {
        if (frame.case === 'hello') this.noteArrival({ stream, hello: frame.value });
        if (frame.case === 'events') {
          for (const event of frame.value.events) {
            const wrong = this.ledger.hear(event);
            if (wrong !== null) this.signals.fail(wrong);
          }
        }
        this.sessions.get(stream)?.hear(frame, frameId);
        this.signals.changed();
      },
      onHalfClose: (stream) => {
        stream.end();
        this.signals.changed();
      },
      onViolation: (what) => this.signals.fail(what),
    });
  }
}
