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
import { requireAtLeast } from '../transport/option-checks.js';
import { fromRefusal, fromStatus, ReeveError, refusedLocally } from '../transport/reeve-error.js';
import type { Reach } from '../transport/reach.js';
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
/** Without a submission for so long, ms, the stream is ended: an open one keeps the process alive. */
const IDLE_MS = 1_000;
/** For the server to end a stream that says nothing more, ms. */
const END_MS = 1_000;
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
  private idle: NodeJS.Timeout | null = null;
  private closed = false;
  private whenSettled: (() => void)[] = [];

  constructor(
    private readonly rpc: RpcConnection,
    private readonly reach: Reach,
    options: SubmitStreamOptions = {},
  ) {
    const { maxInFlight = 4_096, maxInFlightBytes = 8 * 1024 * 1024 } = options;
    this.queue = new SubmissionQueue(
      requireAtLeast('submitStream.maxInFlight', maxInFlight, 1),
      requireAtLeast('submitStream.maxInFlightBytes', maxInFlightBytes, 1),
    );
  }

  /**
   * Resolves with the admission, after its commit. Waits for room while too much is in flight.
   *
   * @throws ReeveError what the verdict says; MALFORMED without being sent when no frame can hold it;
   *   DEADLINE_EXCEEDED after `timeoutMs`, when it may have been admitted: submit again with the same key;
   *   UNREACHABLE when there never was a connection.
   */
  submit(request: SubmitRequest, timeoutMs: number): Promise<SubmitResponse> {
    if (this.closed) return Promise.reject(new ReeveError(closedError));
    const bytes = toBinary(SubmitRequestSchema, request);
    if (sizeInFrame(bytes.length) > MAX_FRAME_BYTES) {
      return Promise.reject(refusedLocally('submission', `${bytes.length} bytes do not fit into a frame of 1.5 MiB`));
    }
    return new Promise((resolve, reject) => {
      const { namespace, idempotencyKey } = request;
      const now = Date.now();
      const connectBy = now + this.reach.timeoutMs;
      this.queue.add(
        new PendingSubmission(namespace, idempotencyKey, bytes, now + timeoutMs, connectBy, resolve, reject),
      );
      if (this.idle !== null) clearTimeout(this.idle);
      this.idle = null;
      this.sweep ??= setInterval(() => this.expire(), SWEEP_MS);
      this.flushSoon();
    });
  }

  /** Answers what is outstanding, then ends the stream. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.hasUnsettled) await new Promise<void>((resolve) => this.whenSettled.push(resolve));
    const lateVerdicts = !this.queue.isEmpty;
    this.rest();
    // Nobody waits for the verdicts that may still come.
    if (lateVerdicts) this.stream?.cancel();
    else this.endStream();
  }

  private get hasUnsettled(): boolean {
    return this.queue.unsettled().next().done !== true;
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
      this.restIfDone();
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
      this.restIfDone();
      return;
    }
    this.queue.sendAgain(error);
    this.restIfDone();
    if (this.queue.isEmpty) return;
    const waitMs = this.backoff.next(error.code === status.OK ? 0 : error.retryAfterMs);
    this.reconnect = setTimeout(() => {
      this.reconnect = null;
      this.flush();
    }, waitMs);
  }

  private expire(): void {
    const now = Date.now();
    const { everConnected } = this.reach;
    for (const pending of [...this.queue.unsettled()]) {
      const { deadlineMs, connectDeadlineMs, lastError } = pending;
      if (!everConnected && Math.min(deadlineMs, connectDeadlineMs) <= now) {
        pending.reject(this.reach.unreachable(lastError));
      } else if (deadlineMs <= now) {
        pending.reject(lastError ?? deadlineExceeded('no verdict in time; it may have been admitted'));
      }
    }
    // Nothing was sent that a late verdict could come for.
    if (!everConnected && !this.hasUnsettled) this.stream?.cancel();
    this.restIfDone();
  }

  /** Nothing is outstanding: no timer and, soon, no stream keeps the process alive for it. */
  private restIfDone(): void {
    if (this.queue.isEmpty) {
      this.rest();
      if (!this.closed && this.stream !== null) this.idle ??= setTimeout(() => this.endStream(), IDLE_MS);
    }
    if (this.whenSettled.length === 0 || this.hasUnsettled) return;
    for (const resolve of this.whenSettled.splice(0)) resolve();
  }

  private rest(): void {
    for (const timer of [this.sweep, this.reconnect, this.idle]) if (timer !== null) clearTimeout(timer);
    this.sweep = null;
    this.reconnect = null;
    this.idle = null;
  }

  /** In peace, if the server takes part. */
  private endStream(): void {
    const { stream } = this;
    this.idle = null;
    this.stream = null;
    if (stream === null) return;
    stream.end();
    const timer = setTimeout(() => stream.cancel(), END_MS);
    stream.on('status', () => clearTimeout(timer));
  }
}

const emptyVerdict = { reason: 'INTERNAL', code: status.INTERNAL, message: 'a verdict that says nothing' } as const;
const closedError = { reason: 'CANCELLED', code: status.CANCELLED, message: 'the client is closed' } as const;
