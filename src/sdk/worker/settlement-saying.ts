/**
 * What a handler's ending is on the wire: its return value or its throw as the settlement event, and what to say
 * when the server does not take a settlement.
 */
import { type CompletionInput, type FailureInput, toCompleted, toFailed, withDetail } from '../settlement.js';
import { toJsonText } from '../transport/json.js';
import { ReeveError, toReeveError } from '../transport/reeve-error.js';
import { MAX_MESSAGE_LENGTH, MAX_REASON_LENGTH } from './claim-context.js';
import type { Saying } from './held-claim.js';
import { CancelTask, Completion, OutOfTime, Suspend, TaskFailure } from './outcomes.js';
import { CancelRequested, type StopReason } from './stop-reasons.js';

const MAX_DETAIL_LENGTH = 64 * 1024;
const MAX_CODE_LENGTH = 128;

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
    return { case: 'suspended', value: { reason: thrown.reason.slice(0, MAX_REASON_LENGTH) } };
  }
  if (thrown instanceof CancelTask) {
    return {
      case: 'cancelled',
      value: { reason: thrown.reason.slice(0, MAX_REASON_LENGTH), ...withDetail(thrown.detail) },
    };
  }
  if (thrown instanceof OutOfTime) {
    const error = { code: 'task_timeout', message: thrown.message.slice(0, MAX_MESSAGE_LENGTH), retryable: true };
    return { case: 'timedOut', value: { error, ...withDetail(thrown.detail) } };
  }
  if (thrown instanceof TaskFailure) return failureOf(thrown.input);
  if (thrown instanceof Error) {
    return failureOf({
      code: 'handler_error',
      message: thrown.message,
      retryable: true,
      details: { name: thrown.name },
      ...(thrown.stack !== undefined && { errorDetail: thrown.stack }),
    });
  }
  return failureOf({ code: 'handler_error', message: String(thrown), retryable: true });
}

/** The settlement of a handler that stopped because it was told to; null where the authority settles by itself. */
export function sayingOfObedience(reason: StopReason): Saying | null {
  if (!(reason instanceof CancelRequested)) return null;
  return { case: 'cancelled', value: { reason: reason.summary.slice(0, MAX_REASON_LENGTH) } };
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
  return failureOf({
    code: 'settlement_refused',
    message: `${settlement.case} was refused: ${refusal.message}`,
    retryable: false,
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
export function unsayable(error: unknown): Saying {
  const why = error instanceof ReeveError ? error.message : 'a value in it is of no kind that the service knows';
  return failureOf({
    code: 'handler_error',
    message: `the ending of the handler could not be said: ${why}`,
    retryable: false,
  });
}

function failureOf(input: FailureInput): Saying {
  const { message = '', errorDetail, details } = input;
  return {
    case: 'failed',
    value: toFailed({
      ...input,
      code: cleanCode(input.code),
      message: message.slice(0, MAX_MESSAGE_LENGTH),
      ...(errorDetail !== undefined && { errorDetail: errorDetail.slice(-MAX_DETAIL_LENGTH) }),
      details: fittingDetails(details),
    }),
  };
}

/** What breaks the contract of a code would lose the whole failure. */
function cleanCode(code: string): string {
  const clean = code.replaceAll(/\s/g, '_').slice(0, MAX_CODE_LENGTH);
  return clean === '' ? 'handler_error' : clean;
}

/** The server drops details that are too large; they need not travel. Nor what is no JSON. */
function fittingDetails(details: unknown): unknown {
  try {
    const text = toJsonText(details);
    return text === undefined || text.length > MAX_DETAIL_LENGTH ? undefined : details;
  } catch {
    return undefined;
  }
}
