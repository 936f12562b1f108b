/**
 * How work ends, as an embedding program says it: shared by who settles what it holds and by typed intents. Limits are
 * those of the wire, and judged by the same code. Throws RefusalError.
 */
import type { Ending, TaskError } from '../kernel/record.js';
import { NO_ENDING } from '../kernel/settlement.js';
import {
  type StatedDetail,
  type StatedError,
  readEnding,
  readError,
  readTimeoutEnding,
} from '../wire/settlement-codec.js';
import { jsonText } from './json.js';

/** What an execution leaves behind besides its result. */
export interface ExecutionDetail {
  readonly exitCode?: number;
  /** Diagnostic text, the tail of a log. At most 64 KiB; the beginning of longer text is cut. */
  readonly errorDetail?: string;
  /** The executor's own id for this run. At most 255 bytes. */
  readonly invocationId?: string;
  /** URIs or JSON objects as text. At most 32 of at most 2 KiB. */
  readonly evidenceRefs?: readonly string[];
}

export interface CompletionInput extends ExecutionDetail {
  /** Any JSON value, at most 1 MiB as text; undefined for none. */
  readonly result?: unknown;
  /** A URI where the result is. */
  readonly resultRef?: string;
}

export interface ErrorInput {
  /** A stable word for programs, 1–128 bytes without white space. */
  readonly code: string;
  /** For people. At most 8 KiB; longer text is cut. */
  readonly message?: string;
  /** Whether another attempt could help. Default: true. */
  readonly retryable?: boolean;
  /** Any JSON value, at most 64 KiB as text. */
  readonly details?: unknown;
}

export interface FailureInput extends ErrorInput, ExecutionDetail {
  /** The wait before the next attempt instead of the policy's, ms, 0 to 10 years. */
  readonly retryAfterMs?: number;
}

export interface TimeoutInput extends ExecutionDetail {
  /** Default: `task_timeout`, retryable. */
  readonly error?: ErrorInput;
}

export function completionOf(input: CompletionInput): {
  readonly resultJson: string | null;
  readonly ending: Ending | null;
} {
  const { result, resultRef = '' } = input;
  return { resultJson: jsonText('result', result), ending: readEnding('completion', null, detailOf(input), resultRef) };
}

export function failureOf(input: FailureInput): Ending & { readonly error: TaskError } {
  const error = readError('error', errorOf(input));
  return { ...(readEnding('failure', null, detailOf(input), '') ?? NO_ENDING), error };
}

export function timeoutOf({ error, ...detail }: TimeoutInput): Ending | null {
  return readTimeoutEnding('timeout', error === undefined ? undefined : errorOf(error), detailOf(detail));
}

export function endingOf(detail: ExecutionDetail): Ending | null {
  return readEnding('detail', null, detailOf(detail), '');
}

function errorOf({ code, message = '', retryable = true, details }: ErrorInput): StatedError {
  return { code, message, retryable, detailsJson: jsonText('error.details', details) ?? '' };
}

function detailOf(detail: ExecutionDetail): StatedDetail | undefined {
  const { exitCode, errorDetail, invocationId, evidenceRefs } = detail;
  const nothing = [exitCode, errorDetail, invocationId, evidenceRefs].every((value) => value === undefined);
  if (nothing) return undefined;
  return {
    ...(exitCode === undefined ? {} : { exitCode }),
    errorDetail: errorDetail ?? '',
    invocationId: invocationId ?? '',
    evidenceRefs: [...(evidenceRefs ?? [])],
  };
}
