/**
 * What a worker says, between the saying and its verdict: numbered per claim, coalesced into one frame per turn,
 * kept until answered and sent again on the next stream. Bounded: `room` is where sayers wait.
 */
import { WorkRequestSchema, WorkerEventsSchema } from '../../gen/reeve/v1/worker_service_pb.js';
import type { ReeveError } from '../transport/reeve-error.js';
import { encodeFrame, type FrameShape, MAX_FRAME_BYTES, sizeInFrame } from '../transport/frame-bytes.js';
import type { HeldClaim, NumberedEvent, Saying } from './held-claim.js';
import { OneByOne } from './one-by-one.js';

/** Where frames of events go while a stream is attached. */
export interface EventSink {
  /** False while the stream's buffer is full; `outbox.flush` is called when it has drained. */
  readonly writable: boolean;
  readonly maxFrameBytes: number;
  /** Without a frame id. */
  send(frame: Uint8Array): void;
  /** Sent by somebody else if nothing is sent from here soon; null where nobody could. */
  readonly sendIfSilent: ((frame: Uint8Array) => void) | null;
}

export interface OutboxLimits {
  /** Events said and unanswered, beyond which handlers wait. Default 16,384. */
  readonly maxUnansweredEvents?: number;
  /** The same in bytes. Default 8 MiB. */
  readonly maxUnansweredBytes?: number;
}

const shape: FrameShape = {
  frameIdField: WorkRequestSchema.field.frameId.number,
  wrapperField: WorkRequestSchema.field.events.number,
  itemField: WorkerEventsSchema.field.events.number,
};

/** A turn of this loop that has lasted so long, ms, is a handler that computes. */
const LONG_TURN_MS = 50;

export class Outbox {
  private readonly maxEvents: number;
  private readonly maxBytes: number;
  private sink: EventSink | null = null;
  private dirty: HeldClaim[] = [];
  /** When something was first said in this turn of the loop; null: nothing was. */
  private turnBeganAt: number | null = null;
  private flushedAt = 0;
  private saidIfSilent = false;
  private readonly oneByOne = new OneByOne();
  private goesOn = false;
  /** Events that the server has judged, ever. */
  answeredEvents = 0;
  private unansweredEvents = 0;
  private unansweredBytes = 0;
  private waiting: (() => void)[] = [];

  constructor({ maxUnansweredEvents = 16_384, maxUnansweredBytes = 8 * 1024 * 1024 }: OutboxLimits = {}) {
    this.maxEvents = maxUnansweredEvents;
    this.maxBytes = maxUnansweredBytes;
  }

  /** Nothing said is unanswered. */
  get isEmpty(): boolean {
    return this.unansweredEvents === 0;
  }

  /**
   * Numbers the event and sends it with whatever else is said in this turn. Ignored when the claim is over.
   *
   * @throws ReeveError MALFORMED, or an Error, for what cannot be said.
   */
  say(held: HeldClaim, saying: Saying): void {
    if (held.phase === 'over') return;
    const { bytes } = held.number(saying);
    this.unansweredEvents += 1;
    this.unansweredBytes += bytes.length;
    this.mark(held);
  }

  /**
   * Null when there is room for more, as a rule; else resolves when there is. To be awaited after each saying, so
   * that what is kept exceeds the limits by no more than one event per running handler.
   */
  room(): Promise<void> | null {
    if (this.hasRoom) return null;
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /**
   * Null as a rule. While a handler has computed for long since the last turn of the loop: resolves after the next
   * one, in which cancels and verdicts are heard.
   */
  turn(): Promise<void> | null {
    const isLong = this.turnBeganAt !== null && performance.now() - this.turnBeganAt > LONG_TURN_MS;
    return isLong ? new Promise((resolve) => setImmediate(resolve)) : null;
  }

  /** What is unsent, to whoever can send it while this loop computes; once per turn. */
  sayIfSilent(): void {
    const { sink } = this;
    if (this.saidIfSilent || sink === null || sink.sendIfSilent === null || this.oneByOne.isOn) return;
    this.saidIfSilent = true;
    const items: Uint8Array[] = [];
    let bytes = 0;
    for (const { events, firstUnsent, resting } of this.dirty) {
      if (resting) continue;
      for (let index = firstUnsent; index < events.length; index += 1) {
        const event = events[index]?.bytes;
        if (event === undefined || bytes + sizeInFrame(event.length) > sink.maxFrameBytes) continue;
        items.push(event);
        bytes += sizeInFrame(event.length);
      }
    }
    if (items.length > 0) sink.sendIfSilent(encodeFrame(shape, null, items));
  }

  answered(held: HeldClaim, through: number): void {
    const events = held.answer(through);
    this.answeredEvents += events.length;
    this.forget(events);
    this.goOn();
  }

  /** The claim is over; what it said and nobody answered is dropped. */
  drop(held: HeldClaim): void {
    this.forget(held.end());
    this.goOn();
  }

  /** What is unanswered is never said again; the next event takes the number of its first. */
  retract(held: HeldClaim, why: ReeveError): void {
    held.resting = false;
    this.forget(held.retract(why));
  }

  /** Nothing of it is sent before `sendAgain`: until then the server would refuse what comes next as well. */
  rest(held: HeldClaim): void {
    held.resting = true;
    this.goOn();
  }

  /** As OneByOne.blame. */
  blame(what: 'frame' | 'stream'): HeldClaim | null {
    return this.oneByOne.blame(what);
  }

  /** Sends again, on the next turn, what is unanswered. */
  sendAgain(held: HeldClaim): void {
    held.resting = false;
    held.sentThrough = held.answeredThrough;
    if (held.events.length > 0) this.mark(held);
  }

  attach(sink: EventSink): void {
    this.sink = sink;
    this.flush();
  }

  detach(): void {
    this.sink = null;
    this.oneByOne.streamEnded();
  }

  /** Sends what there is, as far as the stream takes it. */
  flush(): void {
    this.flushedAt = performance.now();
    this.saidIfSilent = false;
    const { sink, dirty } = this;
    if (sink === null || dirty.length === 0) return;
    if (this.oneByOne.isOn) return this.flushOne(sink);
    const maxBytes = Math.min(sink.maxFrameBytes, MAX_FRAME_BYTES);
    let items: Uint8Array[] = [];
    let bytes = 0;
    const send = () => {
      if (items.length > 0) sink.send(encodeFrame(shape, null, items));
      items = [];
      bytes = 0;
    };
    let done = 0;
    outer: for (const held of dirty) {
      const { events } = held;
      if (held.resting) {
        held.dirty = false;
        done += 1;
        continue;
      }
      for (let index = held.firstUnsent; index < events.length; index += 1) {
        const event = events[index];
        if (event === undefined) break;
        const size = sizeInFrame(event.bytes.length);
        if (bytes + size > maxBytes) send();
        // Looked at per frame only: what has been taken into one goes out.
        if (items.length === 0 && !sink.writable) break outer;
        items.push(event.bytes);
        bytes += size;
        held.sentThrough = event.seq;
      }
      held.dirty = false;
      done += 1;
    }
    send();
    this.dirty = done === dirty.length ? [] : dirty.slice(done);
  }

  /** One event, if the one before is answered. */
  private flushOne(sink: EventSink): void {
    while (this.dirty.length > 0) {
      if (this.oneByOne.waits || !sink.writable) return;
      const [held] = this.dirty;
      const event = held?.resting === false ? held.events[held.firstUnsent] : undefined;
      if (held === undefined || event === undefined) {
        const [done] = this.dirty.splice(0, 1);
        if (done !== undefined) done.dirty = false;
        continue;
      }
      held.sentThrough = event.seq;
      this.oneByOne.sent(held, event.seq);
      sink.send(encodeFrame(shape, null, [event.bytes]));
    }
  }

  /** What was under way alone may be answered: the next one goes, with the I/O of this turn. */
  private goOn(): void {
    if (!this.oneByOne.isOn || this.goesOn) return;
    this.goesOn = true;
    setImmediate(() => {
      this.goesOn = false;
      this.flush();
      // Nothing is left of what had to travel alone.
      if (this.oneByOne.isOn && this.dirty.length === 0 && !this.oneByOne.waits) this.oneByOne.finish();
    });
  }

  private get hasRoom(): boolean {
    return this.unansweredEvents < this.maxEvents && this.unansweredBytes < this.maxBytes;
  }

  private mark(held: HeldClaim): void {
    if (!held.dirty) {
      held.dirty = true;
      this.dirty.push(held);
    }
    const now = performance.now();
    if (this.turnBeganAt === null) {
      this.turnBeganAt = this.flushedAt = now;
      // After the I/O of this turn, so that accepted, started and completed of a quick handler are one frame.
      setImmediate(() => {
        this.turnBeganAt = null;
        this.flush();
      });
    } else if (now - this.flushedAt > LONG_TURN_MS) {
      // A thread can send while this loop computes; a stream of this loop's own keeps it until the turn ends.
      this.flush();
    }
  }

  private forget(events: readonly NumberedEvent[]): void {
    if (events.length === 0) return;
    this.unansweredEvents -= events.length;
    for (const { bytes } of events) this.unansweredBytes -= bytes.length;
    if (this.waiting.length === 0 || !this.hasRoom) return;
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}
