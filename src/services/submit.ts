/**
 * Submit and SubmitBatch: applications admitted one at a time or a thousand, each judged alone
 * (task_service.proto; lifecycle.md section 5). The stream of submissions is submit-stream.ts.
 */
import type { Authority } from '../authority/authority.js';
import type { SubmitAnswer } from '../authority/submit-work.js';
import { TaskView } from '../gen/reeve/v1/task_pb.js';
import type {
  SubmitBatchRequest,
  SubmitBatchResponseSchema,
  SubmitRequest,
  SubmitResponseSchema,
  SubmitVerdictSchema,
} from '../gen/reeve/v1/task_service_pb.js';
import { SubmitOutcome } from '../gen/reeve/v1/task_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import type { Submission } from '../kernel/admission/submission.js';
import { transitionId } from '../kernel/event.js';
import type { PurgedTask } from '../store/task-store.js';
import { type View, views } from '../wire/enum-tables.js';
import { eventRefMessage } from '../wire/event-codec.js';
import type { Fields } from '../wire/message-fields.js';
import { RefusalError, malformedField } from '../wire/refusal-error.js';
import { refusalMessage } from '../wire/refusal-message.js';
import { purgedMessage } from '../wire/purged-task-codec.js';
import { type SubmissionOrigin, readSubmission } from '../wire/submission-codec.js';
import type { CallContext } from './call.js';
import { type LeaseExpiries, type TaskViews, valueOf } from './task-views.js';

/** One call, one frame: what the store commits in about two transactions. */
export const MAX_SUBMISSIONS_PER_CALL = 1_000;
/** Tasks of a batch beyond this are shown by name only, so that the answer fits a message of 4 MiB. */
const MAX_BATCH_ANSWER_BYTES = 3_000_000;
/** About what a task's fields take besides its texts. */
const TASK_OVERHEAD_BYTES = 1_500;

/** By what a verdict names its submission. */
export type SubmissionName = Pick<SubmitRequest, 'namespace' | 'idempotencyKey'>;

export type AcceptedAnswer = Exclude<SubmitAnswer, { readonly kind: 'refused' }>;
type StandingAnswer = Exclude<AcceptedAnswer, { readonly kind: 'purged' }>;

export class Submissions {
  constructor(
    private readonly authority: Authority,
    private readonly kinds: ActionKindRegistry,
    private readonly views: TaskViews,
  ) {}

  async submit(request: SubmitRequest, context: CallContext): Promise<Fields<typeof SubmitResponseSchema>> {
    const view = views.readOr('view', request.view, 'basic' as const);
    const read = readSubmission(request, originOf(context), this.kinds);
    if (!read.ok) throw new RefusalError(read.refusal);
    const answer = await this.admit(read.value);
    if (answer.kind === 'refused') throw new RefusalError(answer.refusal);
    return this.response(answer, view);
  }

  async submitBatch(
    request: SubmitBatchRequest,
    context: CallContext,
  ): Promise<Fields<typeof SubmitBatchResponseSchema>> {
    const { submissions } = request;
    checkCount('submissions', submissions.length);
    if (submissions.length === 0) throw malformedField('submissions', 'must not be empty');
    const view = views.readOr('view', request.view, 'basic' as const);
    const origin = originOf(context);
    const answers = submissions.map((submission) => this.judge(submission, origin));
    const verdicts: Fields<typeof SubmitVerdictSchema>[] = [];
    const leases = this.views.leaseExpiries();
    let room = MAX_BATCH_ANSWER_BYTES;
    for (const [index, submission] of submissions.entries()) {
      const answer = await answers[index];
      if (answer === undefined) continue;
      const wanted = views.word(submission.view) ?? view;
      if (answer.kind !== 'refused') room -= TASK_OVERHEAD_BYTES + textBytes(answer, wanted);
      verdicts.push(await this.verdict(submission, answer, room > 0 ? wanted : 'name', leases));
    }
    return { verdicts };
  }

  async response(
    answer: AcceptedAnswer,
    view: View,
    leases?: LeaseExpiries,
  ): Promise<Fields<typeof SubmitResponseSchema>> {
    if (answer.kind === 'purged') return purgedResponse(answer.task);
    const { record } = answer;
    const { taskId } = record.admission;
    return {
      task: await this.views.show(record, view, leases),
      outcome: answer.kind === 'created' ? SubmitOutcome.CREATED : SubmitOutcome.REPLAYED,
      transitionId: transitionId(taskId, 1),
      event: eventRefMessage(taskId, 1, await this.admissionSequence(answer)),
      ignoredPolicyFields: answer.kind === 'replayed' ? [...answer.ignoredPolicyFields] : [],
    };
  }

  async verdict(
    submission: SubmissionName,
    answer: SubmitAnswer,
    view: View,
    leases?: LeaseExpiries,
  ): Promise<Fields<typeof SubmitVerdictSchema>> {
    const { idempotencyKey, namespace } = submission;
    if (answer.kind === 'refused') {
      return { idempotencyKey, namespace, verdict: { case: 'refused', value: refusalMessage(answer.refusal) } };
    }
    return {
      idempotencyKey,
      namespace,
      verdict: { case: 'accepted', value: await this.response(answer, view, leases) },
    };
  }

  private judge(request: SubmitRequest, origin: SubmissionOrigin): Promise<SubmitAnswer> {
    if (request.view !== TaskView.UNSPECIFIED && views.word(request.view) === null) {
      const { refusal } = malformedField('view', `${request.view} is not a known value`);
      return Promise.resolve({ kind: 'refused', refusal });
    }
    const read = readSubmission(request, origin, this.kinds);
    return read.ok ? this.admit(read.value) : Promise.resolve({ kind: 'refused', refusal: read.refusal });
  }

  private admit(submission: Submission): Promise<SubmitAnswer> {
    return new Promise((resolve) => this.authority.submit(submission, resolve));
  }

  /** The sequence of the admission: at hand for a new task, in the history for a known one. */
  private async admissionSequence(answer: StandingAnswer): Promise<number> {
    if (answer.kind === 'created') return answer.sequence;
    const first = valueOf(await this.authority.reads.event(answer.record.admission.taskId, 1));
    return first?.sequence ?? 0;
  }
}

export function originOf(context: CallContext): SubmissionOrigin {
  return { source: context.source, principal: context.principal, traceContext: context.traceContext };
}

export function checkCount(field: string, count: number): void {
  if (count > MAX_SUBMISSIONS_PER_CALL)
    throw malformedField(field, `must not be more than ${MAX_SUBMISSIONS_PER_CALL}`);
}

/** The stub of a task that was purged, the same in every view, and its admission as it was. */
function purgedResponse({ taskId, tombstone, firstSequence }: PurgedTask): Fields<typeof SubmitResponseSchema> {
  return {
    task: purgedMessage(tombstone),
    outcome: SubmitOutcome.REPLAYED,
    transitionId: transitionId(taskId, 1),
    event: eventRefMessage(taskId, 1, firstSequence),
  };
}

function textBytes(answer: AcceptedAnswer, view: View): number {
  if (view === 'name' || answer.kind === 'purged') return 0;
  const { labels, description } = answer.record.policy;
  const policyBytes = JSON.stringify(labels).length + (description?.length ?? 0);
  // A known task may also have a result, a checkpoint and an input, each as large as one message may be.
  const large =
    answer.kind === 'created' ? answer.record.admission.application.argsJson.length : MAX_BATCH_ANSWER_BYTES / 4;
  return policyBytes + (view === 'full' ? large : 0);
}
