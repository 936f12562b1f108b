/**
 * SubmitStream: many submissions in flight, verdicts in commit order, one frame per commit (task_service.proto).
 * Flow control both ways: a submission is in flight from its arrival until the transport is handed its verdict, and
 * when too much is, nothing more is read. What a broken stream had in flight commits or not, and is simply sent again.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import type { Authority } from '../authority/authority.js';
import type { SubmitAnswer } from '../authority/submit-work.js';
import { TaskView } from '../gen/reeve/v1/task_pb.js';
import {
  type SubmitRequest,
  type SubmitStreamRequest,
  type SubmitStreamRequestSchema,
  type SubmitStreamResponseSchema,
  SubmitVerdictSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { type View, views } from '../wire/enum-tables.js';
import { MAX_FRAME_BYTES } from '../wire/frame-limits.js';
import { malformedField } from '../wire/refusal-error.js';
import { type SubmissionOrigin, readSubmission } from '../wire/submission-codec.js';
import { SubmitFrame } from '../wire/submit-frame.js';
import type { BidiHandler, StreamCall, StreamListener } from './call.js';
import { refusalOf } from './failures.js';
import { type Submissions, checkCount, originOf } from './submit.js';

/** Eight batches of the committer: more gives no throughput and only takes memory and time to answer. */
export const MAX_IN_FLIGHT = 4_096;
export const MAX_IN_FLIGHT_BYTES = 16 * 1_048_576;
/** Reading goes on once so much of the window is free again. */
const RESUME_SHARE = 0.5;
/** Verdicts wait here, not in the transport, while the reader is behind. */
const MAX_PENDING_BYTES = 262_144;
/** About what a submission takes besides its args. */
const SUBMISSION_OVERHEAD_BYTES = 1_024;

export interface SubmitStreamContext {
  readonly authority: Authority;
  readonly kinds: ActionKindRegistry;
  readonly submissions: Submissions;
  readonly onDefect: (error: unknown) => void;
}

type Call = StreamCall<typeof SubmitStreamResponseSchema>;

export function submitStreamHandler(
  context: SubmitStreamContext,
): BidiHandler<typeof SubmitStreamRequestSchema, typeof SubmitStreamResponseSchema> {
  return (call) => new SubmitStream(context, call);
}

/** A verdict on its way out: of a new task by name, or encoded. */
type Verdict =
  | {
      readonly request: SubmitRequest;
      readonly weight: number;
      readonly created: Extract<SubmitAnswer, { kind: 'created' }>;
    }
  | { readonly request: SubmitRequest; readonly weight: number; readonly encoded: Uint8Array };

class SubmitStream implements StreamListener<typeof SubmitStreamRequestSchema> {
  private readonly origin: SubmissionOrigin;
  private readonly frame = new SubmitFrame();
  private verdicts: Verdict[] = [];
  private flushing = false;
  private inFlight = 0;
  private inFlightBytes = 0;
  private paused = false;
  private saidEverything = false;
  private over = false;

  constructor(
    private readonly context: SubmitStreamContext,
    private readonly call: Call,
  ) {
    this.origin = { ...originOf(call.context), source: 'stream' };
  }

  received(message: SubmitStreamRequest): void {
    const { submissions } = message;
    checkCount('submissions', submissions.length);
    const view = views.readOr('view', message.view, 'name' as const);
    for (const submission of submissions) this.admit(submission, view);
    if (this.inFlight >= MAX_IN_FLIGHT || this.inFlightBytes >= MAX_IN_FLIGHT_BYTES) this.pause();
  }

  halfClosed(): void {
    this.saidEverything = true;
    this.endIfDone();
  }

  drained(): void {
    this.flush();
  }

  closed(): void {
    this.over = true;
    this.verdicts = [];
  }

  private admit(request: SubmitRequest, frameView: View): void {
    const weight =
      SUBMISSION_OVERHEAD_BYTES + (request.argsForm.case === 'argsJson' ? request.argsForm.value.length : 0);
    this.inFlight += 1;
    this.inFlightBytes += weight;
    const view = request.view === TaskView.UNSPECIFIED ? frameView : views.word(request.view);
    if (view === null) {
      const { refusal } = malformedField('view', `${request.view} is not a known value`);
      return this.answer(request, weight, { kind: 'refused', refusal }, 'name');
    }
    const read = readSubmission(request, this.origin, this.context.kinds);
    if (!read.ok) return this.answer(request, weight, { kind: 'refused', refusal: read.refusal }, view);
    this.context.authority.submit(read.value, (answer) => this.answer(request, weight, answer, view));
  }

  /** The commonest answer is written straight into the frame; any other may need a read first. */
  private answer(request: SubmitRequest, weight: number, answer: SubmitAnswer, view: View): void {
    if (this.over) return;
    if (answer.kind === 'created' && view === 'name') return this.ready({ request, weight, created: answer });
    this.encode(request, answer, view).then(
      (encoded) => this.ready({ request, weight, encoded }),
      (error: unknown) => {
        const refusal = refusalOf(error);
        if (refusal.reason === 'INTERNAL') this.context.onDefect(error);
        this.call.fail(refusal);
      },
    );
  }

  private async encode(request: SubmitRequest, answer: SubmitAnswer, view: View): Promise<Uint8Array> {
    const verdict = create(SubmitVerdictSchema, await this.context.submissions.verdict(request, answer, view));
    const encoded = toBinary(SubmitVerdictSchema, verdict);
    // Only a known task can be this large, with a result of its own: then the frame has room for less of it.
    return encoded.length <= MAX_FRAME_BYTES - 16 || view !== 'full' ? encoded : this.encode(request, answer, 'basic');
  }

  private ready(verdict: Verdict): void {
    if (this.over) return;
    this.verdicts.push(verdict);
    if (this.flushing) return;
    this.flushing = true;
    // The answers of one commit come within one turn: they leave as one frame.
    queueMicrotask(() => this.flush());
  }

  private flush(): void {
    this.flushing = false;
    if (this.over || this.call.pendingBytes > MAX_PENDING_BYTES) return;
    const { frame } = this;
    const verdicts = this.verdicts;
    this.verdicts = [];
    let sent = 0;
    for (const verdict of verdicts) {
      if (!frame.hasRoom('encoded' in verdict ? verdict.encoded.length + 16 : undefined)) {
        this.call.sendEncoded(frame.take());
        if (this.call.pendingBytes > MAX_PENDING_BYTES) break;
      }
      this.put(verdict);
      sent += 1;
    }
    if (!frame.isEmpty) this.call.sendEncoded(frame.take());
    if (sent < verdicts.length) this.verdicts = [...verdicts.slice(sent), ...this.verdicts];
    this.resumeIfRoom();
    this.endIfDone();
  }

  private put(verdict: Verdict): void {
    const { request, weight } = verdict;
    if ('encoded' in verdict) this.frame.addEncoded(verdict.encoded);
    else {
      const { record, sequence } = verdict.created;
      this.frame.addCreated(request.namespace, request.idempotencyKey, record, sequence);
    }
    this.inFlight -= 1;
    this.inFlightBytes -= weight;
  }

  private pause(): void {
    this.paused = true;
    this.call.pause();
  }

  private resumeIfRoom(): void {
    if (!this.paused) return;
    const hasRoom =
      this.inFlight <= MAX_IN_FLIGHT * RESUME_SHARE && this.inFlightBytes <= MAX_IN_FLIGHT_BYTES * RESUME_SHARE;
    if (!hasRoom) return;
    this.paused = false;
    this.call.resume();
  }

  private endIfDone(): void {
    if (this.saidEverything && this.inFlight === 0) this.call.end();
  }
}
