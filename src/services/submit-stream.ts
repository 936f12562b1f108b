/**
 * SubmitStream: many submissions in flight, verdicts in commit order, one frame per commit (task_service.proto).
 * Flow control both ways: a submission is in flight from its arrival until the transport is handed its verdict, and
 * when too much is, nothing more is read. What a broken stream had in flight commits or not, and is simply sent again.
 */
import type { Authority } from '../authority/authority.js';
import type { SubmitAnswer } from '../authority/submit-work.js';
import { TaskView } from '../gen/reeve/v1/task_pb.js';
import {
  type SubmitRequest,
  type SubmitStreamRequest,
  type SubmitStreamRequestSchema,
  type SubmitStreamResponseSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { type View, views } from '../wire/enum-tables.js';
import { malformedField } from '../wire/refusal-error.js';
import { type SubmissionOrigin, readSubmission } from '../wire/submission-codec.js';
import type { BidiHandler, StreamCall, StreamListener } from './call.js';
import { refusalOf } from './failures.js';
import { type Submissions, checkCount, originOf } from './submit.js';
import { VerdictOutbox } from './verdict-outbox.js';

/** Eight batches of the committer: more gives no throughput and only takes memory and time to answer. */
export const MAX_IN_FLIGHT = 4_096;
export const MAX_IN_FLIGHT_BYTES = 16 * 1_048_576;
/** Reading goes on once so much of the window is free again. */
const RESUME_SHARE = 0.5;
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

class SubmitStream implements StreamListener<typeof SubmitStreamRequestSchema> {
  private readonly origin: SubmissionOrigin;
  private readonly verdicts: VerdictOutbox;
  private inFlight = 0;
  private inFlightBytes = 0;
  private paused = false;
  private saidEverything = false;

  constructor(
    private readonly context: SubmitStreamContext,
    private readonly call: Call,
  ) {
    this.origin = { ...originOf(call.context), source: 'stream' };
    this.verdicts = new VerdictOutbox({
      call,
      submissions: context.submissions,
      onSent: ({ weight }) => {
        this.inFlight -= 1;
        this.inFlightBytes -= weight;
      },
      onFlushed: () => {
        this.resumeIfRoom();
        this.endIfDone();
      },
      onError: (error) => this.failed(error),
    });
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
    this.verdicts.flush();
  }

  closed(): void {
    this.verdicts.close();
  }

  private admit(request: SubmitRequest, frameView: View): void {
    const { namespace, idempotencyKey } = request;
    const view = request.view === TaskView.UNSPECIFIED ? frameView : views.word(request.view);
    const read = readSubmission(request, this.origin, this.context.kinds);
    const argsLength = read.ok ? read.value.application.argsJson.length : 0;
    const weight = SUBMISSION_OVERHEAD_BYTES + namespace.length + idempotencyKey.length + argsLength;
    this.inFlight += 1;
    this.inFlightBytes += weight;
    // Of the request no more is held than what its verdict repeats.
    const answer = (given: SubmitAnswer): void =>
      this.verdicts.add({ namespace, idempotencyKey, weight, answer: given, view: view ?? 'name' });
    if (view === null) {
      const { refusal } = malformedField('view', `${request.view} is not a known value`);
      return answer({ kind: 'refused', refusal });
    }
    if (!read.ok) return answer({ kind: 'refused', refusal: read.refusal });
    this.context.authority.submit(read.value, answer);
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

  private failed(error: unknown): void {
    const refusal = refusalOf(error);
    if (refusal.reason === 'INTERNAL') this.context.onDefect(error);
    this.call.fail(refusal);
  }

  private endIfDone(): void {
    if (this.saidEverything && this.inFlight === 0) this.call.end();
  }
}
