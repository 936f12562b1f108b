/**
 * How an execution ended, between the wire and the domain: errors, execution detail, results.
 * Shared by Transition and the worker's events. What would keep a failure from being recorded is cut, escaped or
 * dropped with a mark and never refused; what a caller must get right (a code, a result that is JSON) is MALFORMED.
 */
import type { ExecutionDetail, TaskError as TaskErrorMessage, TaskErrorSchema } from '../gen/reeve/v1/task_pb.js';
import type { Ending, TaskError as DomainError } from '../kernel/record.js';
import { exceedsUtf8Bytes } from '../kernel/admission/text-rules.js';
import { boundedText, cutText, lastBytes, markCut, optionalText, wasCut } from './bounded-text.js';
import { readEvidenceRefs } from './stated-cause.js';
import { jsonProblem } from './json-values.js';
import { malformedField } from './refusal-error.js';
import type { Fields } from './message-fields.js';

const MAX_CODE_BYTES = 128;
const MAX_MESSAGE_BYTES = 8_192;
const MAX_DETAILS_BYTES = 65_536;
const MAX_ERROR_DETAIL_BYTES = 65_536;
const MAX_INVOCATION_ID_BYTES = 255;
const MAX_RESULT_REF_BYTES = 2_048;

/** What is stated of an execution and its error, whichever door it came by. */
export type StatedDetail = Pick<ExecutionDetail, 'exitCode' | 'errorDetail' | 'invocationId' | 'evidenceRefs'>;
export type StatedError = Pick<TaskErrorMessage, 'code' | 'message' | 'retryable' | 'detailsJson'>;

/** The error of every time-out, AEP's own word. */
export const TIMEOUT_CODE = 'task_timeout';
const TIMED_OUT: DomainError = {
  code: TIMEOUT_CODE,
  message: 'the task timed out',
  retryable: true,
  detailsJson: null,
};

/** The ending of a settlement; null when nothing was told of it. Paths of refusals begin with `field`. */
export function readEnding(
  field: string,
  error: DomainError | null,
  detail: StatedDetail | undefined,
  resultRef: string,
): Ending | null {
  if (error === null && detail === undefined && resultRef === '') return null;
  const at = `${field}.detail`;
  return {
    error,
    exitCode: detail?.exitCode ?? null,
    errorDetail:
      detail === undefined || detail.errorDetail === '' ? null : lastBytes(detail.errorDetail, MAX_ERROR_DETAIL_BYTES),
    invocationId: optionalText(`${at}.invocation_id`, detail?.invocationId ?? '', MAX_INVOCATION_ID_BYTES),
    resultRef: optionalText(`${field}.result_ref`, resultRef, MAX_RESULT_REF_BYTES),
    evidenceRefs: readEvidenceRefs(`${at}.evidence_refs`, detail?.evidenceRefs ?? []),
  };
}

/** As `readEnding` for a time-out: where anything is told of it, the error is always there. */
export function readTimeoutEnding(
  field: string,
  error: StatedError | undefined,
  detail: StatedDetail | undefined,
): Ending | null {
  if (error === undefined && detail === undefined) return null;
  return readEnding(field, error === undefined ? TIMED_OUT : readError(`${field}.error`, error), detail, '');
}

/** Required, with a code. */
export function readError(field: string, error: StatedError | undefined): DomainError {
  if (error === undefined) throw malformedField(field, 'is required');
  if (error.code === '') throw malformedField(`${field}.code`, 'is required');
  const code = boundedText(`${field}.code`, error.code, MAX_CODE_BYTES);
  const { detailsJson } = error;
  const retryable = error.retryable ?? true;
  let message = cutText(error.message, MAX_MESSAGE_BYTES);
  if (detailsJson === '') return { code, message, retryable, detailsJson: null };
  if (jsonProblem(detailsJson) === null && !exceedsUtf8Bytes(detailsJson, MAX_DETAILS_BYTES)) {
    return { code, message, retryable, detailsJson };
  }
  message = markCut(message, MAX_MESSAGE_BYTES);
  const escaped = exceedsUtf8Bytes(detailsJson, MAX_DETAILS_BYTES / 2) ? null : JSON.stringify(detailsJson);
  return { code, message, retryable, detailsJson: escaped };
}

export function errorMessage(error: DomainError): Fields<typeof TaskErrorSchema> {
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable,
    detailsJson: error.detailsJson ?? '',
    truncated: wasCut(error.message),
  };
}
