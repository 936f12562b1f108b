/**
 * Submissions from the wire to the domain: one SubmitRequest becomes an admitted Submission or a refusal, by the same
 * pure step whichever binding it came in by (lifecycle.md section 5).
 * Owns presence rules, enum numbers and field names as the caller wrote them; every other rule is the kernel's.
 */
import type { SubmitRequest } from '../gen/reeve/v1/task_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { type AdmissionRefusal, refusalOfAdmission } from '../kernel/admission/admission-refusal.js';
import type { ArgsInput } from '../kernel/admission/application.js';
import type { AdmissionSource } from '../kernel/admission/identifiers.js';
import { type Submission, type SubmissionInput, admit } from '../kernel/admission/submission.js';
import type { Refusal } from '../kernel/refusal.js';
import { DEFAULT_ACTOR, readActor, readCausation } from './cause-codec.js';
import { executionTargets } from './enum-tables.js';
import { readPolicy } from './policy-codec.js';
import { RefusalError, malformedField } from './refusal-error.js';

/** What the call says of every submission in it. */
export interface SubmissionOrigin {
  readonly source: AdmissionSource;
  readonly principal: string;
  /** The call's own trace context, for submissions that bring none. */
  readonly traceContext: Readonly<Record<string, string>>;
}

export type ReadSubmission =
  { readonly ok: true; readonly value: Submission } | { readonly ok: false; readonly refusal: Refusal };

const NO_ARGS: ArgsInput = { form: 'text', text: '{}' };
const TRACE_KEYS: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);
const MAX_TRACE_BYTES = 1_024;

/** Never throws for what a caller sent. */
export function readSubmission(
  request: SubmitRequest,
  origin: SubmissionOrigin,
  kinds: ActionKindRegistry,
): ReadSubmission {
  try {
    const admitted = admit(submissionInput(request, origin), kinds);
    if (admitted.ok) return admitted;
    return { ok: false, refusal: admissionRefusal(admitted.refusal) };
  } catch (error) {
    if (error instanceof RefusalError) return { ok: false, refusal: error.refusal };
    throw error;
  }
}

function submissionInput(request: SubmitRequest, origin: SubmissionOrigin): SubmissionInput {
  return {
    namespace: request.namespace,
    queue: request.queue,
    idempotencyKey: request.idempotencyKey,
    taskId: request.taskId,
    application: {
      actionKind: request.actionKind,
      args: argsInput(request),
      executionTarget: executionTargets.read('execution_target', request.executionTarget),
      requiredCapabilities: request.requiredCapabilities,
      libraryRef: request.libraryRef ?? null,
      libraryContentHash: request.libraryContentHash ?? null,
    },
    policy: readPolicy('policy', request.policy),
    source: origin.source,
    scheduleId: null,
    actor: readActor('actor', request.actor) ?? DEFAULT_ACTOR,
    principal: origin.principal,
    causation: readCausation('causation_id', request.causationId),
    traceContext: traceContext(request.traceContext) ?? origin.traceContext,
  };
}

function argsInput(request: SubmitRequest): ArgsInput {
  const { argsForm } = request;
  switch (argsForm.case) {
    case 'argsJson':
      return { form: 'text', text: argsForm.value };
    case 'args':
      return { form: 'value', value: argsForm.value };
    case undefined:
      return NO_ARGS;
  }
}

function traceContext(context: Readonly<Record<string, string>>): Readonly<Record<string, string>> | null {
  const keys = Object.keys(context);
  if (keys.length === 0) return null;
  let size = 0;
  for (const key of keys) {
    if (!TRACE_KEYS.has(key)) throw malformedField('trace_context', 'holds traceparent and tracestate, nothing else');
    size += key.length + Buffer.byteLength(context[key] ?? '');
  }
  if (size > MAX_TRACE_BYTES) throw malformedField('trace_context', `must not be larger than ${MAX_TRACE_BYTES} bytes`);
  return context;
}

/** The kernel names policy fields from the policy's own root; the caller wrote them inside `policy`. */
const POLICY_FIELD =
  /^(priority|labels|description|timeout|start_by|not_before|attempt_timeout|progress_timeout|retry|cancellation_policy|concurrency_key|retention|parent|depends_on|on_unsatisfied)\b/;

function admissionRefusal(admission: AdmissionRefusal): Refusal {
  return refusalOfAdmission(admission, POLICY_FIELD.test(admission.field) ? 'policy.' : '');
}
