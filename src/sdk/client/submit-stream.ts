/**
 * The submit stream: many callers, one stream, one frame per turn of the event loop. Bounded in flight; what was in
 * flight on a broken stream is sent again with its key, which the contract makes safe. It must never have two
 * submissions of one key in flight (their verdicts could not be told apart), nor answer from anything but a verdict.
 */
import { toBinary } from '@bufbuild/protobuf';
import { type ClientDuplexStream, status } from '@grpc/grpc-js';
import {
  type SubmitRequest,
  SubmitRequestSchema,
  type SubmitResponse,
  SubmitStreamRequestSchema,
  type SubmitStreamResponse,
  type SubmitVerdict,
  TaskService,
} from '../../gen/reeve/v1/task_service_pb.js';
import { Backoff } from '../transport/backoff.js';
import { encodeFrame, type FrameShape, MAX_FRAME_BYTES, sizeInFrame } from '../transport/frame-bytes.js';
import { fromRefusal, fromStatus, ReeveError, refusedLocally } from '../transport/reeve-error.js';
import { deadlineExceeded } from '../transport/retry.js';
import type { RpcConnection } from '../transport/rpc.js';
import { PendingSubmission, SubmissionQueue } from './submission-queue.js';

export interface SubmitStreamOptions {
  /** Submissions sent and not answered. Default 4,096. */
  readonly maxInFlight?: number;
  /** The same in bytes. Default 8 MiB. */
  readonly maxInFlightBytes?: number;
}

const MAX_SUBMISSIONS_PER_FRAME = 1_000;
/** How often overdue submissions are looked for. One timer for all, and time-outs are in seconds. */
const SWEEP_MS = 250;
/** A whole stream refused for what every next one would be refused for. Anything else may be a broken wire. */
const HOPELESS: ReadonlySet<status> = new Set([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.UNIMPLEMENTED,
  status.INVALID_ARGUMENT,
]);

const shape: FrameShape = {
  frameIdField: SubmitStreamRequestSchema.field.frameId.number,
  wrapperField: null,
  itemField: SubmitStreamRequestSchema.field.submissions.number,
};

type Stream = ClientDuplexStream<Uint8Array, SubmitStreamResponse>;

export class SubmitStream {
  private readonly queue: SubmissionQueue;
  private readonly backoff = new Backoff({ initialMs: 50, maximumMs: 5_000 });
  private stream: Stream | null = null;
  private frameId = 0;
  private flushScheduled = false;
  private writable = true;
  private reconnect: NodeJS.Timeout | null = null;
  private sweep: NodeJS.Timeout | null = null;
  private closed = false;
  private whenEmpty: (() => void)[] = [];

  constructor(
    private readonly rpc: RpcConnection,
    options: SubmitStreamOptions = {},
  ) {
    const { maxInFlight = 4_096, maxInFlightBytes = 8 * 1024 * 1024 } = options;
    this.queue = new SubmissionQueue(maxInFlight, maxInFlightBytes);
  }

  /**
   * Resolves with the admission, after its commit. Waits for room while too much is in flight.
   *
   * @throws ReeveError what the verdict says; MALFORMED without being sent when no frame can hold it;
   *   DEADLINE_EXCEEDED after `timeoutMs`, when it may have been admitted: submit again with the same key.
   */
  submit(request: SubmitRequest, timeoutMs: number): Promise<SubmitResponse> {
    if (this.closed) return Promise.reject(new ReeveError(closedError));
    const bytes = toBinary(SubmitRequestSchema, request);
    if (sizeInFrame(bytes.length) > MAX_FRAME_BYTES) {
      return Promise.reject(refusedLocally('submission', `${bytes.length} bytes do not fit into a frame of 1.5 MiB`));
    }
    return new Promise((resolve, reject) => {
      const { namespace, idempotencyKey } = request;
      this.queue.add(new PendingSubmission(namespace, idempotencyKey, bytes, Date.now() + timeoutMs, resolve, reject));
      this.sweep ??= setInterval(() => this.expire(), SWEEP_MS);
      this.flushSoon();
    });
  }

  /** Answers what is outstanding, then ends the stream. */
  async close(): Promise<void> {
    this.closed = true;
    if (!this.queue.isEmpty) await new Promise<void>((resolve) => this.whenEmpty.push(resolve));
    this.rest();
    this.stream?.end();
  }

  private flushSoon(): void {
    if (this.flushScheduled) return;
    this.flushScheduled = true;
    // After the I/O of this turn, so that what was submitted in it travels together.
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.flushScheduled = false;
    if (this.reconnect !== null || !this.queue.hasSendable) return;
    this.stream ??= this.open();
    while (this.writable) {
      const batch = this.queue.take(MAX_SUBMISSIONS_PER_FRAME, MAX_FRAME_BYTES);
      if (batch.length === 0) return;
      this.writable = this.stream.write(encodeFrame(shape, ++this.frameId, batch));
    }
  }

  private open(): Stream {
    const stream: Stream = this.rpc.bidiEncoded(TaskService.method.submitStream);
    this.writable = true;
    stream.on('data', (frame: SubmitStreamResponse) => {
      this.backoff.reset();
      for (const verdict of frame.verdicts) this.judge(verdict);
      if (this.queue.hasSendable) this.flushSoon();
      if (this.queue.isEmpty) this.rest();
    });
    stream.on('drain', () => {
      if (stream !== this.stream) return;
      this.writable = true;
      this.flush();
    });
    // The status carries the same and always comes.
    stream.on('error', () => undefined);
    stream.on('status', ({ code, details, metadata }) => {
      if (stream === this.stream) this.ended(fromStatus(code, details, metadata));
    });
    return stream;
  }

  private judge({ namespace, idempotencyKey, verdict }: SubmitVerdict): void {
    const pending = this.queue.answered(namespace, idempotencyKey);
    if (pending === undefined) return;
    if (verdict.case === 'refused' && this.holdBack(pending, fromRefusal(verdict.value))) return;
    this.queue.finish(pending);
    if (verdict.case === 'accepted') pending.resolve(verdict.value);
    else pending.reject(pending.lastError ?? new ReeveError(emptyVerdict));
  }

  /** Whether a refusal is worth another try in the time that is left; it is then on its way. */
  private holdBack(pending: PendingSubmission, error: ReeveError): boolean {
    pending.lastError = error;
    const waitMs = pending.backoff().next(error.retryAfterMs);
    if (!error.retryable || Date.now() + waitMs >= pending.deadlineMs) return false;
    setTimeout(() => {
      this.queue.release(pending);
      this.flushSoon();
    }, waitMs);
    return true;
  }

  private ended(error: ReeveError): void {
    this.stream = null;
    if (HOPELESS.has(error.code)) {
      this.queue.rejectAll(error);
      this.rest();
      return;
    }
    this.queue.sendAgain(error);
    if (this.queue.isEmpty) return this.rest();
    const waitMs = this.backoff.next(error.code === status.OK ? 0 : error.retryAfterMs);
    this.reconnect = setTimeout(() => {
      this.reconnect = null;
      this.flush();
    }, waitMs);
  }

  private expire(): void {
    const now = Date.now();
    for (const pending of this.queue.overdue(now)) {
      pending.reject(pending.lastError ?? deadlineExceeded('no verdict in time; it may have been admitted'));
    }
    if (this.queue.isEmpty) this.rest();
  }

  /** Nothing is outstanding: no timer keeps the process alive for it. */
  private rest(): void {
    if (this.sweep !== null) clearInterval(this.sweep);
    if (this.reconnect !== null) clearTimeout(this.reconnect);
    this.sweep = null;
    this.reconnect = null;
    for (const resolve of this.whenEmpty.splice(0)) resolve();
  }
}

const emptyVerdict = { reason: 'INTERNAL', code: status.INTERNAL, message: 'a verdict that says nothing' } as const;
const closedError = { reason: 'CANCELLED', code: status.CANCELLED, message: 'the client is closed' } as const;
