/**
 * Stored form of causes, reasons and endings: the parts that records, histories and admissions share.
 * Tuples without trailing nulls; the tables of code-tables.ts for every closed set.
 */
import type { Actor, Cause, Reason } from '../kernel/cause.js';
import type { Ending, TaskError } from '../kernel/record.js';
import { ACTOR_CODES, ACTOR_TYPES, SOURCES, SOURCE_CODES } from './code-tables.js';
import { flagOf, integerOrNull, nameOf, textOf, textOrNull, textsOf, tupleOf } from './decode-guards.js';
import { numberOrNull, quoted, quotedList, quotedOrNull, tuple } from './json-writing.js';

export function encodeReason(reason: Reason | null): string {
  if (reason === null) return 'null';
  const { code, summary, evidenceRefs } = reason;
  const refs = evidenceRefs.length === 0 ? '' : `,${quotedList(evidenceRefs)}`;
  return `[${quoted(code)},${quoted(summary)}${refs}]`;
}

export function decodeReason(value: unknown): Reason | null {
  if (value === null || value === undefined) return null;
  const [code, summary, refs] = tupleOf(value, 'reason');
  return {
    code: textOf(code, 'reason code'),
    summary: textOf(summary, 'reason summary'),
    evidenceRefs: refs === undefined ? [] : textsOf(refs, 'evidence refs'),
  };
}

/** Two items of a longer tuple. */
export function encodeActor(actor: Actor): string {
  return `${String(ACTOR_CODES[actor.type])},${quoted(actor.id)}`;
}

export function decodeActor(type: unknown, id: unknown): Actor {
  return { type: nameOf(ACTOR_TYPES, type, 'actor type'), id: textOf(id, 'actor id') };
}

const SOURCE_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries(SOURCE_CODES).map(([source, code]) => [source, String(code)]),
);

/** A door of ours by its number, a source of the caller's own as it is. */
function encodeSource(source: string): string {
  return SOURCE_TEXTS.get(source) ?? quoted(source);
}

/** A session or a stream gives one cause object to all it does: the texts of the last few are kept. */
const recent: { cause: Cause; text: string }[] = [];
const MAX_RECENT = 8;
let oldest = 0;

export function encodeCause(cause: Cause): string {
  for (const known of recent) if (known.cause === cause) return known.text;
  const text = causeText(cause);
  recent[oldest] = { cause, text };
  oldest = (oldest + 1) % MAX_RECENT;
  return text;
}

function causeText(cause: Cause): string {
  const { actor, principal, source, reason, causation, authoritativeAt } = cause;
  const head = `${encodeActor(actor)},${quoted(principal)},${encodeSource(source)}`;
  if (causation === null && authoritativeAt === null) {
    return reason === null ? `[${head}]` : `[${head},${encodeReason(reason)}]`;
  }
  return tuple(head, encodeReason(reason), quotedOrNull(causation), numberOrNull(authoritativeAt));
}

export function decodeCause(value: unknown): Cause {
  const [type, id, principal, source, reason, causation, authoritativeAt] = tupleOf(value, 'cause');
  return {
    actor: decodeActor(type, id),
    principal: textOf(principal, 'principal'),
    source: typeof source === 'string' ? source : nameOf(SOURCES, source, 'source'),
    reason: decodeReason(reason),
    causation: textOrNull(causation, 'causation'),
    authoritativeAt: integerOrNull(authoritativeAt, 'authoritative time'),
  };
}

export function encodeEnding(ending: Ending | null): string {
  if (ending === null) return 'null';
  const { error, exitCode, errorDetail, invocationId, resultRef, evidenceRefs } = ending;
  return tuple(
    error === null ? 'null' : encodeError(error),
    numberOrNull(exitCode),
    quotedOrNull(errorDetail),
    quotedOrNull(invocationId),
    quotedOrNull(resultRef),
    evidenceRefs.length === 0 ? 'null' : quotedList(evidenceRefs),
  );
}

export function decodeEnding(value: unknown): Ending | null {
  if (value === null || value === undefined) return null;
  const [error, exitCode, errorDetail, invocationId, resultRef, refs] = tupleOf(value, 'ending');
  return {
    error: error === null || error === undefined ? null : decodeError(error),
    exitCode: integerOrNull(exitCode, 'exit code'),
    errorDetail: textOrNull(errorDetail, 'error detail'),
    invocationId: textOrNull(invocationId, 'invocation id'),
    resultRef: textOrNull(resultRef, 'result ref'),
    evidenceRefs: refs === null || refs === undefined ? [] : textsOf(refs, 'evidence refs'),
  };
}

function encodeError(error: TaskError): string {
  const { code, message, retryable, detailsJson } = error;
  return tuple(quoted(code), quoted(message), retryable ? '1' : '0', quotedOrNull(detailsJson));
}

function decodeError(value: unknown): TaskError {
  const [code, message, retryable, detailsJson] = tupleOf(value, 'error');
  return {
    code: textOf(code, 'error code'),
    message: textOf(message, 'error message'),
    retryable: flagOf(retryable, false, 'retryable'),
    detailsJson: textOrNull(detailsJson, 'error details'),
  };
}
