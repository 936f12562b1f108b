/**
 * The submissions of one client between the caller and its verdict: waiting, in flight, or held back for a retry.
 * Per name (namespace and key) at most one is beyond waiting; the others queue behind it in the order of the calls.
 */
import type { SubmitResponse } from '../../gen/reeve/v1/task_service_pb.js';
import { Backoff } from '../transport/backoff.js';
import { sizeInFrame } from '../transport/frame-bytes.js';
import type { ReeveError } from '../transport/reeve-error.js';

export class PendingSubmission {
  readonly name: string;
  /** Why it is not answered yet, where a server has said so. */
  lastError: ReeveError | undefined;
  /** The caller has its answer; only a late verdict is awaited, so that it is not taken for another's. */
  settled = false;
  /** Later submissions of the same name. */
  followers: PendingSubmission[] = [];
  private waits: Backoff | undefined;

  constructor(
    namespace: string,
    key: string,
    readonly bytes: Uint8Array,
    readonly deadlineMs: number,
    /** When to give up if nobody has ever been reached, epoch ms. */
    readonly connectDeadlineMs: number,
    private readonly onAnswer: (answer: SubmitResponse) => void,
    private readonly onError: (error: ReeveError) => void,
  ) {
    this.name = nameOf(namespace, key);
  }

  resolve(answer: SubmitResponse): void {
    this.settled = true;
    this.onAnswer(answer);
  }

  reject(error: ReeveError): void {
    this.settled = true;
    this.onError(error);
  }

  backoff(): Backoff {
    return (this.waits ??= new Backoff({ initialMs: 25, maximumMs: 2_000 }));
  }
}

export class SubmissionQueue {
  /** Next to be sent, from `head` on; never two of one name. */
  private sendable: PendingSubmission[] = [];
  private head = 0;
  /** Sent and unanswered. */
  private readonly inFlight = new Map<string, PendingSubmission>();
  /** Every name that is sendable, in flight or held. */
  private readonly active = new Map<string, PendingSubmission>();
  private inFlightBytes = 0;

  constructor(
    private readonly maxInFlight: number,
    private readonly maxInFlightBytes: number,
  ) {}

  get isEmpty(): boolean {
    return this.active.size === 0;
  }

  get hasSendable(): boolean {
    return this.head < this.sendable.length;
  }

  add(pending: PendingSubmission): void {
    const earlier = this.active.get(pending.name);
    if (earlier !== undefined) {
      earlier.followers.push(pending);
      return;
    }
    this.active.set(pending.name, pending);
    this.sendable.push(pending);
  }

  /** The next frame's worth, now in flight; empty when there is nothing or no room. */
  take(maxCount: number, maxBytes: number): Uint8Array[] {
    const taken: Uint8Array[] = [];
    let bytes = 0;
    while (this.head < this.sendable.length && taken.length < maxCount && this.inFlight.size < this.maxInFlight) {
      const next = this.sendable[this.head];
      if (next === undefined) break;
      const size = sizeInFrame(next.bytes.length);
      if (bytes + size > maxBytes) break;
      // One that is larger than the whole window goes alone.
      if (this.inFlight.size > 0 && this.inFlightBytes + size > this.maxInFlightBytes) break;
      this.head += 1;
      if (next.settled) {
        this.finish(next);
        continue;
      }
      bytes += size;
      this.inFlightBytes += size;
      this.inFlight.set(next.name, next);
      taken.push(next.bytes);
    }
    this.compact();
    return taken;
  }

  /**
   * Whom a verdict is for; its name stays taken until `finish` or `release`. Undefined: nobody waits for it any more.
   */
  answered(namespace: string, key: string): PendingSubmission | undefined {
    const pending = this.inFlight.get(nameOf(namespace, key));
    if (pending === undefined) return undefined;
    this.inFlight.delete(pending.name);
    this.inFlightBytes -= sizeInFrame(pending.bytes.length);
    if (!pending.settled) return pending;
    this.finish(pending);
    return undefined;
  }

  /** Its name is free for the next caller's. */
  finish(pending: PendingSubmission): void {
    this.active.delete(pending.name);
    const [next, ...rest] = pending.followers;
    pending.followers = [];
    if (next === undefined) return;
    next.followers = rest;
    this.active.set(next.name, next);
    this.sendable.push(next);
  }

  /** To be sent again, as if it came now. */
  release(pending: PendingSubmission): void {
    if (this.active.get(pending.name) !== pending) return;
    if (pending.settled) this.finish(pending);
    else this.sendable.push(pending);
  }

  /** After the end of a stream: what was in flight is first to be sent again. */
  sendAgain(why: ReeveError): void {
    const again: PendingSubmission[] = [];
    for (const pending of this.inFlight.values()) {
      pending.lastError = why;
      if (pending.settled) this.finish(pending);
      else again.push(pending);
    }
    this.inFlight.clear();
    this.inFlightBytes = 0;
    this.sendable = [...again, ...this.sendable.slice(this.head)];
    this.head = 0;
  }

  rejectAll(error: ReeveError): void {
    const all = [...this.active.values()].flatMap((pending) => [pending, ...pending.followers]);
    this.active.clear();
    this.inFlight.clear();
    this.inFlightBytes = 0;
    this.sendable = [];
    this.head = 0;
    for (const pending of all) if (!pending.settled) pending.reject(error);
  }

  /** Those whose callers have no answer yet. */
  *unsettled(): Generator<PendingSubmission, void, undefined> {
    for (const first of this.active.values()) {
      if (!first.settled) yield first;
      for (const pending of first.followers) if (!pending.settled) yield pending;
    }
  }

  private compact(): void {
    if (this.head === this.sendable.length) {
      this.sendable = [];
      this.head = 0;
    } else if (this.head > 4_096) {
      this.sendable.splice(0, this.head);
      this.head = 0;
    }
  }
}

/** The length keeps two pairs from reading the same; the default namespace needs none. */
function nameOf(namespace: string, key: string): string {
  return namespace === '' ? key : `${namespace.length}\n${namespace}${key}`;
}
