/**
 * What a handler's ending is on the wire: its return value or its throw as the settlement event, and what to say
 * when the server does not take a settlement.
 */
import {
  type CompletionInput,
  type ExecutionDetail,
  type FailureInput,
  toCompleted,
  toFailed,
  withDetail,
} from '../settlement.js';
import { toJsonText } from '../transport/json.js';
import { ReeveError, toReeveError } from '../transport/reeve-error.js';
import { MAX_MESSAGE_LENGTH, MAX_REASON_LENGTH } from './claim-context.js';
import type { Saying } from './held-claim.js';
import { CancelTask, Completion, OutOfTime, Suspend, TaskFailure } from './outcomes.js';
import type { CancelRequested } from './stop-reasons.js';

const MAX_DETAILS_LENGTH = 64 * 1024;
const MAX_CODE_BYTES = 128;
/** 10 years, the longest wait there is. */
const MAX_RETRY_AFTER_MS = 315_360_000_000;
const MAX_INT32 = 2 ** 31 - 1;

/** A completion, or the failure to be one: not JSON, or larger than `maxResultBytes`. */
export function completionOf(returned: unknown, maxResultBytes: number): Saying {
  const input: CompletionInput = returned instanceof Completion ? returned.input : { result: returned };
  try {
    const value = toCompleted(input);
    const text = value.resultJson ?? '';
    // Three bytes at most per UTF-16 unit: most texts need no counting.
    if (text.length * 3 > maxResultBytes && Buffer.byteLength(text) > maxResultBytes) {
      const message = `the result has ${Buffer.byteLength(text)} bytes, ${maxResultBytes} are allowed; use resultRef`;
      return failureOf({ code: 'result_too_large', message, retryable: false });
    }
    return { case: 'completed', value };
  } catch (error) {
    return failureOf({ code: 'result_not_json', message: toReeveError(error).message, retryable: false });
  }
}

/** What a throw means that is not obedience to a stop. */
export function sayingOfThrow(thrown: unknown): Saying {
  if (thrown instanceof Suspend) {
    return { case: 'suspended', value: { reason: textOf(() => thrown.reason).slice(0, MAX_REASON_LENGTH) } };
  }
  if (thrown instanceof CancelTask) {
    const reason = textOf(() => thrown.reason).slice(0, MAX_REASON_LENGTH);
    return { case: 'cancelled', value: { reason, ...withDetail(fittingDetail(thrown.detail)) } };
  }
  if (thrown instanceof OutOfTime) {
    const message = textOf(() => thrown.message).slice(0, MAX_MESSAGE_LENGTH);
    const error = { code: 'task_timeout', message, retryable: true };
    return { case: 'timedOut', value: { error, ...withDetail(fittingDetail(thrown.detail)) } };
  }
  if (thrown instanceof TaskFailure) return failureOf(thrown.input);
  if (thrown instanceof Error) {
    return failureOf({
      code: 'handler_error',
      message: textOf(() => thrown.message),
      retryable: true,
      details: { name: textOf(() => thrown.name) },
      errorDetail: textOf(() => thrown.stack ?? ''),
    });
  }
  return failureOf({ code: 'handler_error', message: textOf(() => thrown), retryable: true });
}

/** Whether another attempt was meant to follow a throw, however badly that can be said. */
export function isMeantToRetry(thrown: unknown): boolean {
  try {
    return !(thrown instanceof TaskFailure) || thrown.input.retryable !== false;
  } catch {
    return true;
  }
}

/** The settlement of what stopped because that was asked for. */
export function cancelledFor({ summary }: CancelRequested): Saying {
  return { case: 'cancelled', value: { reason: summary.slice(0, MAX_REASON_LENGTH) } };
}

/** No handler for its kind: another worker may have one. */
export function noHandler(kind: string): Saying {
  return failureOf({ code: 'no_handler', message: `this worker has no handler for ${kind}`, retryable: true });
}

/** What to say instead of a settlement that was refused; null when there is nothing left to say. */
export function instead(settlement: Saying, refusal: ReeveError, refusals: number): Saying | null {
  if (refusal.reason === 'CANCELLATION_FENCED' && settlement.case !== 'cancelled') {
    return { case: 'cancelled', value: { reason: 'the cancel request came first' } };
  }
  if (refusals > 1) return null;
  if (settlement.case === 'cancelled' && settlement.value.detail !== undefined) {
    // The detail is what a server may not like of it.
    return { case: 'cancelled', value: { reason: settlement.value.reason ?? '' } };
  }
  return failureOf({
    code: 'settlement_refused',
    message: `${settlement.case} was refused: ${refusal.message}`,
    retryable: settlement.case === 'failed' && settlement.value.error?.retryable !== false,
    details: { reason: refusal.reason, ...refusal.metadata },
  });
}

/** What the handler said before was refused, and the server takes nothing after it. */
export function eventsRefused(refusal: ReeveError): Saying {
  return failureOf({
    code: 'event_refused',
    message: `what the handler said was refused: ${refusal.message}`,
    retryable: false,
    details: { reason: refusal.reason, ...refusal.metadata },
  });
}

/** The handler's ending is a failure itself: a value in it is of no kind, or of no size, that the service knows. */
export function unsayable(error: unknown, retryable: boolean): Saying {
  const why = error instanceof ReeveError ? error.message : 'a value in it is of no kind that the service knows';
  return failureOf({
    code: 'handler_error',
    message: `the ending of the handler could not be said: ${why}`,
    retryable,
  });
}

/** The failure matters more than what it is decorated with: nothing of that may keep it from being said, or retried. */
function failureOf(input: FailureInput): Saying {
  const { code, message = '', retryable, retryAfterMs, details } = input;
  const waitMs = fittingWaitMs(retryAfterMs);
  return {
    case: 'failed',
    value: toFailed({
      ...fittingDetail(input),
      code: cleanCode(textOf(() => code)),
      message: textOf(() => message).slice(0, MAX_MESSAGE_LENGTH),
      retryable: retryable !== false,
      ...(waitMs !== null && { retryAfterMs: waitMs }),
      details: fittingDetails(details),
    }),
  };
}

/** What is thrown may be anything, and reading it may throw as well. */
function textOf(read: () => unknown): string {
  try {
    return String(read());
  } catch {
    return 'what was thrown has no text';
  }
}

/** What breaks the contract of a code would lose the whole failure. */
function cleanCode(code: string): string {
  let clean = code.replaceAll(/\s/g, '_').slice(0, MAX_CODE_BYTES);
  while (Buffer.byteLength(clean) > MAX_CODE_BYTES) clean = clean.slice(0, -1);
  return clean === '' ? 'handler_error' : clean;
}

/** Null for what is no time: the policy's wait then. */
function fittingWaitMs(ms: unknown): number | null {
  if (typeof ms !== 'number' || Number.isNaN(ms)) return null;
  return Math.min(Math.max(0, ms), MAX_RETRY_AFTER_MS);
}

function fittingDetail({ exitCode, errorDetail, invocationId, evidenceRefs }: ExecutionDetail): ExecutionDetail {
  const isCode = exitCode !== undefined && Number.isInteger(exitCode) && Math.abs(exitCode) <= MAX_INT32;
  return {
    ...(isCode && { exitCode }),
    ...(typeof errorDetail === 'string' && errorDetail !== '' && { errorDetail }),
    ...(invocationId !== undefined && { invocationId }),
    ...(evidenceRefs !== undefined && { evidenceRefs }),
  };
}

/** The server drops details that are too large; they need not travel. Nor what is no JSON. */
function fittingDetails(details: unknown): unknown {
  try {
    const text = toJsonText(details);
    return text === undefined || text.length > MAX_DETAILS_LENGTH ? undefined : details;
  } catch {
    return undefined;
  }
}
