/**
 * What a child program may say on its stdout: AEP events, one JSON object per line, and how such a line is read.
 * A line that cannot be read is refused with a reason that the program's author can act on. Contents stay the text that
 * they are.
 */
import { JsonText } from '../../sdk/transport/json.js';
import { MAX_JSON_VALUE_LEVELS, isDeeperThan } from '../../lib/json-depth.js';
import { memberText } from '../member-text.js';

/** The longest line: the largest content that Reeve takes, and room for the envelope around it. */
export const MAX_LINE_BYTES = 1_088 * 1_024;
/** The largest result, output or checkpoint, as JSON text. The service's own limit. */
export const MAX_CONTENT_BYTES = 1_024 * 1_024;
/** A program that goes on after so many lines that were no event is taken for a runaway. */
export const MAX_REJECTED_LINES = 100_000;
/** Of an error's code; a longer one is cut. The service's own limit, as the next. */
const MAX_CODE_BYTES = 128;
/** Of a wait before the next attempt: ten years. */
const MAX_RETRY_AFTER_MS = 315_360_000_000;

const BRACE = 0x7b;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);
/** Some programs begin their output with a byte order mark; the decoder takes it off. */
const BYTE_ORDER_MARK = 0xef;
const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface SaidError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: JsonText | undefined;
}

export type Saying =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'started' }
  | { readonly kind: 'progress'; readonly fraction: number | undefined; readonly message: string | undefined }
  | { readonly kind: 'output'; readonly output: JsonText }
  | { readonly kind: 'blocked'; readonly reason: string }
  | { readonly kind: 'checkpoint'; readonly checkpoint: JsonText }
  | Ending;

/** The last thing a program says about its task. */
export type Ending =
  | { readonly kind: 'completed'; readonly result: JsonText | undefined; readonly resultRef: string | undefined }
  | { readonly kind: 'failed'; readonly error: SaidError; readonly retryAfterMs: number | undefined }
  | { readonly kind: 'cancelled'; readonly reason: string }
  | { readonly kind: 'timed_out'; readonly error: SaidError | undefined }
  | { readonly kind: 'suspended'; readonly reason: string };

export type SayingKind = Saying['kind'];

/** Why a line had no effect. `code` is a word of ErrorReason. */
export interface Rejected {
  readonly code: 'MALFORMED' | 'UNSUPPORTED' | 'ILLEGAL_EVENT';
  readonly message: string;
  readonly details?: Readonly<Record<string, string>>;
}

export type ReadLine =
  | { readonly ok: true; readonly eventId: string | undefined; readonly saying: Saying }
  | {
      readonly ok: false;
      readonly eventId: string | undefined;
      readonly rejected: Rejected;
      /** It was meant to end the task. */
      readonly wasEnding: boolean;
    };

const ENDINGS = new Set(['task.completed', 'task.failed', 'task.cancelled', 'task.timed_out', 'reeve.task.suspended']);

interface JsonMembers {
  readonly [name: string]: unknown;
}

const STRAY: Rejected = { code: 'MALFORMED', message: 'the line is no JSON object; print diagnostics to stderr' };

class LineProblem extends Error {
  constructor(readonly rejected: Rejected) {
    super(rejected.message);
  }
}

/** Whether a line is meant to be an event, and no text that strayed onto stdout. */
export function looksLikeEvent(bytes: Uint8Array): boolean {
  const first = bytes.find((byte) => !SPACES.has(byte));
  return first === BRACE || first === BYTE_ORDER_MARK;
}

/** Reads one line, not blank. Never throws. `task_id` may be left out; where it stands it must be this task's. */
export function readLine(bytes: Uint8Array, taskId: string): ReadLine {
  // Before anything dear is done: a program may print by the million what is not meant for Reeve.
  if (!looksLikeEvent(bytes)) return { ok: false, eventId: undefined, rejected: STRAY, wasEnding: false };
  let eventId: string | undefined;
  let type: unknown;
  try {
    const text = textOfLine(bytes);
    const event = parseObject(text);
    type = event['type'];
    eventId = typeof event['id'] === 'string' ? event['id'] : undefined;
    const payload = payloadOf(event);
    requireTask(event['task_id'], 'task_id', taskId);
    requireTask(payload['task_id'], 'payload.task_id', taskId);
    return { ok: true, eventId, saying: readSaying(type, payload, text) };
  } catch (error) {
    // Whatever a line makes a reader throw is the line's fault: the attempt goes on.
    const rejected = error instanceof LineProblem ? error.rejected : malformed(`unreadable: ${String(error)}`).rejected;
    return { ok: false, eventId, rejected, wasEnding: typeof type === 'string' && ENDINGS.has(type) };
  }
}

function textOfLine(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw malformed('the line is not UTF-8');
  }
}

function parseObject(text: string): JsonMembers {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed('the line is not JSON; print diagnostics to stderr');
  }
  if (!isObject(value)) throw malformed('the line is not a JSON object');
  return value;
}

function payloadOf(event: JsonMembers): JsonMembers {
  const payload = event['payload'] ?? {};
  if (!isObject(payload)) throw malformed('payload is not a JSON object');
  return payload;
}

function requireTask(value: unknown, field: string, taskId: string): void {
  if (value === undefined || value === taskId) return;
  throw malformed(`${field} names another task`, { field });
}

function readSaying(type: unknown, payload: JsonMembers, line: string): Saying {
  switch (type) {
    case 'task.accepted':
      return { kind: 'accepted' };
    case 'task.started':
      return { kind: 'started' };
    case 'task.progress':
      return { kind: 'progress', fraction: fractionOf(payload['progress']), message: textOf(payload, 'message') };
    case 'task.output':
      return { kind: 'output', output: contentOf(line, 'output') };
    case 'task.blocked':
      return { kind: 'blocked', reason: textOf(payload, 'reason') ?? '' };
    case 'reeve.task.checkpoint':
      return { kind: 'checkpoint', checkpoint: contentOf(line, 'checkpoint') };
    case 'task.completed': {
      const result = payload['result'] === undefined ? undefined : contentOf(line, 'result');
      return { kind: 'completed', result, resultRef: textOf(payload, 'result_ref') };
    }
    case 'task.failed':
      return {
        kind: 'failed',
        error: errorOf(payload['error'], line),
        retryAfterMs: millisecondsOf(payload, 'retry_after_ms'),
      };
    case 'task.cancelled':
      return { kind: 'cancelled', reason: textOf(payload, 'reason') ?? '' };
    case 'task.timed_out':
      return { kind: 'timed_out', error: payload['error'] === undefined ? undefined : errorOf(payload['error'], line) };
    case 'reeve.task.suspended':
      return { kind: 'suspended', reason: textOf(payload, 'reason') ?? '' };
    case undefined:
      throw malformed('type is missing', { field: 'type' });
    default:
      throw new LineProblem({
        code: 'UNSUPPORTED',
        message: 'no event of this type is known here',
        details: { field: 'type' },
      });
  }
}

function fractionOf(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw malformed('progress is a number from 0 to 1', { field: 'payload.progress' });
}

function textOf(payload: JsonMembers, name: string): string | undefined {
  const value = payload[name];
  if (value === undefined || typeof value === 'string') return value;
  throw malformed(`${name} is text`, { field: `payload.${name}` });
}

/** What is out of range is brought into it: a failure must not be lost for its pause. */
function millisecondsOf(payload: JsonMembers, name: string): number | undefined {
  const value = payload[name];
  if (value === undefined) return undefined;
  if (typeof value === 'number') return Math.min(Math.max(value, 0), MAX_RETRY_AFTER_MS);
  throw malformed(`${name} is a number of milliseconds`, { field: `payload.${name}` });
}

function contentOf(line: string, name: string): JsonText {
  const text = memberText(line, 'payload', name);
  const field = `payload.${name}`;
  if (text === undefined) throw malformed(`${name} is missing`, { field });
  if (Buffer.byteLength(text) > MAX_CONTENT_BYTES) {
    throw malformed(`${name} is larger than ${MAX_CONTENT_BYTES} bytes`, { field });
  }
  if (isDeeperThan(text, MAX_JSON_VALUE_LEVELS)) {
    throw malformed(`${name} is nested deeper than ${MAX_JSON_VALUE_LEVELS} levels`, { field });
  }
  return new JsonText(text);
}

function errorOf(value: unknown, line: string): SaidError {
  if (!isObject(value)) throw malformed('error is an object with a code', { field: 'payload.error' });
  const { code, message = '', retryable = true } = value;
  if (typeof code !== 'string' || !/^\S+$/.test(code)) {
    throw malformed('error.code is a word', { field: 'payload.error.code' });
  }
  if (typeof message !== 'string') throw malformed('error.message is text', { field: 'payload.error.message' });
  if (typeof retryable !== 'boolean') {
    throw malformed('error.retryable is true or false', { field: 'payload.error.retryable' });
  }
  const details = memberText(line, 'payload', 'error', 'details');
  return {
    code: cutToBytes(code, MAX_CODE_BYTES),
    message,
    retryable,
    details: details === undefined ? undefined : new JsonText(details),
  };
}

function cutToBytes(text: string, maxBytes: number): string {
  // A character that the cut goes through is left out.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes), { stream: true });
}

function isObject(value: unknown): value is JsonMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(message: string, details?: Readonly<Record<string, string>>): LineProblem {
  return new LineProblem({ code: 'MALFORMED', message, ...(details && { details }) });
}
