/**
 * One claim that this worker holds: its numbered events between being said and being answered, and how far it is.
 * Only values; sending is the outbox's, judging the server's.
 */
import { clone, create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { ClaimSchema, type Claim as ClaimMessage, WorkerEventSchema } from '../../gen/reeve/v1/worker_service_pb.js';
import { Backoff } from '../transport/backoff.js';
import { MAX_FRAME_BYTES, sizeInFrame } from '../transport/frame-bytes.js';
import { type ReeveError, refusedLocally } from '../transport/reeve-error.js';
import { Claim } from './claim.js';
import type { SettlementWord } from './notices.js';
import type { Delay } from './delays.js';
import { type CancelRequested, DeadlineExceeded } from './stop-reasons.js';
import { StopSignal } from './stop-signal.js';

export type Saying = Exclude<MessageInitShape<typeof WorkerEventSchema>['event'], undefined | { case: undefined }>;

export interface NumberedEvent {
  readonly seq: number;
  /** A WorkerEvent, encoded once for every time it may have to be sent. */
  readonly bytes: Uint8Array;
}

/**
 * - `open`: its handler runs or will; or it has stopped and waits to be begun again (deadline) or released (drain).
 * - `settling`: the settlement is said and not yet answered, or was refused for now and will be asked again.
 * - `releasing`: handed back, not yet answered.
 * - `over`: settled, released or lost. Nothing it says is sent.
 */
export type ClaimPhase = 'open' | 'settling' | 'releasing' | 'over';

interface Barrier {
  readonly seq: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class HeldClaim {
  readonly taskId: string;
  readonly epoch: bigint;
  readonly generation: number;
  readonly kind: string;
  claim: Claim<never>;
  phase: ClaimPhase = 'open';
  /** Its handler has not ended. */
  running = false;
  /** `started` was said: a handler that is begun again does not say it again. */
  started = false;
  /** Said and unanswered, in order. */
  events: NumberedEvent[] = [];
  /** The number of the last event said. */
  lastSeq = 0;
  /** The highest number sent on the current stream. */
  sentThrough = 0;
  /** The highest number whose verdict has come. */
  answeredThrough = 0;
  /** It is on the outbox's list. */
  dirty = false;
  /** Said `blocked` last; AEP wants `started` before most other words. */
  blocked = false;
  outputs = 0;
  outputBytes = 0;
  settledAs: SettlementWord | null = null;
  settlement: Saying | null = null;
  /** Settlements refused so far. */
  refusals = 0;
  /** The settlement was refused for now: when it is asked again, and why it was refused. */
  asking: { readonly again: Delay; readonly refusal: ReeveError } | null = null;
  /** Nothing of it is sent until what was refused for now is said again. */
  resting = false;
  /** How often in a row it was said again in vain. */
  vainTimes = 0;
  /** Streams in a row that ended for good while one event of it was under way, alone. */
  strikes = 0;
  /** What it said was not taken, and a failure was said instead. */
  givenUp = false;
  /** The cancel to send receipts for. */
  cancellationToken: string | null = null;
  acknowledged = false;
  cancelRequest: CancelRequested | null = null;
  /** The first refusal that `committed` has not told. */
  refusal: ReeveError | null = null;
  private waits: Backoff | null = null;
  private repeats: Backoff | null = null;
  private readonly onObserved: (held: HeldClaim) => void;
  private stopSignal: StopSignal | null = null;
  /** The state that was saved last. */
  private checkpointJson: string;
  private barriers: Barrier[] = [];

  constructor(
    private readonly message: ClaimMessage,
    onObserved: (held: HeldClaim) => void,
  ) {
    this.taskId = message.taskId;
    this.epoch = message.epoch;
    this.generation = message.generation;
    this.kind = message.actionKind;
    this.claim = new Claim(message);
    this.checkpointJson = message.checkpointJson;
    this.onObserved = onObserved;
  }

  get stop(): StopSignal {
    return (this.stopSignal ??= new StopSignal(() => this.onObserved(this)));
  }

  /** Its handler has stopped because of the deadline, and nobody has taken it. */
  get isOutOfTime(): boolean {
    return this.phase === 'open' && !this.running && this.stopSignal?.reason instanceof DeadlineExceeded;
  }

  /** For its handler to be begun once more: from the last checkpoint, and without a deadline, which is not known. */
  again(): this {
    const message = clone(ClaimSchema, this.message);
    message.checkpointJson = this.checkpointJson;
    delete message.deadline;
    this.claim = new Claim(message);
    this.stopSignal = null;
    return this;
  }

  /** Between settlements that are asked again. */
  get backoff(): Backoff {
    return (this.waits ??= new Backoff({ initialMs: 250, maximumMs: 15_000 }));
  }

  /** Between sayings of the same events; a gap is filled soon. */
  get repeat(): Backoff {
    return (this.repeats ??= new Backoff({ initialMs: 25, maximumMs: 15_000 }));
  }

  /** Gives the event its number and keeps it until it is answered. @throws ReeveError MALFORMED for what no frame holds. */
  number(saying: Saying): NumberedEvent {
    const { taskId, generation, epoch } = this;
    const seq = this.lastSeq + 1;
    const eventSeq = BigInt(seq);
    const message = create(WorkerEventSchema, { taskId, generation, epoch, eventSeq, event: saying });
    // What cannot be encoded throws here, before it has used a number that nobody would ever hear of.
    const event = { seq, bytes: toBinary(WorkerEventSchema, message) };
    const size = sizeInFrame(event.bytes.length);
    // Its stream would be refused for it, and every later one that says it again.
    if (size > MAX_FRAME_BYTES) throw refusedLocally(saying.case, `${size} bytes do not fit into a frame of 1.5 MiB`);
    this.lastSeq = seq;
    this.events.push(event);
    if (saying.case === 'checkpoint') this.checkpointJson = saying.value.checkpointJson ?? '';
    return event;
  }

  /** Events that the current stream has not carried yet begin here in `events`. */
  get firstUnsent(): number {
    const first = this.events[0];
    return first === undefined ? 0 : Math.max(0, this.sentThrough + 1 - first.seq);
  }

  /** Forgets what is judged; returns it. */
  answer(through: number): readonly NumberedEvent[] {
    if (through <= this.answeredThrough) return [];
    this.answeredThrough = through;
    this.sentThrough = Math.max(this.sentThrough, through);
    this.vainTimes = this.strikes = 0;
    this.repeats?.reset();
    let count = 0;
    while (count < this.events.length && (this.events[count]?.seq ?? 0) <= through) count += 1;
    return this.events.splice(0, count);
  }

  /** Wakes whoever waits in `committed`, once the refusals of the same verdict are noted. */
  wakeCommitted(): void {
    if (this.barriers.length === 0) return;
    const due = this.barriers.filter(({ seq }) => seq <= this.answeredThrough);
    this.barriers = this.barriers.filter(({ seq }) => seq > this.answeredThrough);
    for (const barrier of due) {
      const { refusal } = this;
      this.refusal = null;
      if (refusal === null) barrier.resolve();
      else barrier.reject(refusal);
    }
  }

  /** Everything said so far is judged. Throws the first refusal among it. */
  committed(): Promise<void> {
    if (this.phase === 'over') return Promise.reject(this.stop.reason ?? new Error('the claim is over'));
    return new Promise((resolve, reject) => {
      this.barriers.push({ seq: this.lastSeq, resolve, reject });
      this.wakeCommitted();
    });
  }

  /** What is unanswered will not be said again: the numbers are free. Returns it. */
  retract(why: ReeveError): readonly NumberedEvent[] {
    const { events, barriers } = this;
    this.events = [];
    this.barriers = [];
    this.lastSeq = this.sentThrough = this.answeredThrough;
    for (const barrier of barriers) barrier.reject(why);
    return events;
  }

  /** Nothing is awaited any more. Returns what was never answered. */
  end(): readonly NumberedEvent[] {
    this.phase = 'over';
    this.asking?.again.cancel();
    this.asking = null;
    const { events, barriers } = this;
    this.events = [];
    this.barriers = [];
    for (const barrier of barriers) barrier.reject(this.stop.reason ?? new Error('the claim is over'));
    return events;
  }
}
