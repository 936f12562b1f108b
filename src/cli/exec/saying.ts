/**
 * What a child program may say on its stdout: AEP events, one JSON object per line, and how such a line is read.
 * A line that cannot be read is refused with a reason that the program's author can act on.
 */

/** The longest line: the largest content that Reeve takes, and room for the envelope around it. */
export const MAX_LINE_BYTES = 1_088 * 1_024;
/** The largest result, output or checkpoint, as JSON text. The service's own limit. */
export const MAX_CONTENT_BYTES = 1_024 * 1_024;

export interface SaidError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details: unknown;
}

export type Saying =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'started' }
  | { readonly kind: 'progress'; readonly fraction: number | undefined; readonly message: string | undefined }
  | { readonly kind: 'output'; readonly output: unknown }
  | { readonly kind: 'blocked'; readonly reason: string }
  | { readonly kind: 'checkpoint'; readonly checkpoint: unknown }
  | Ending;

/** The last thing a program says about its task. */
export type Ending =
  | { readonly kind: 'completed'; readonly result: unknown; readonly resultRef: string | undefined }
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

class LineProblem extends Error {
  constructor(readonly rejected: Rejected) {
    super(rejected.message);
  }
}

/** Reads one line, not blank. `task_id` may be left out; where it stands it must be this task's. */
export function readLine(bytes: Uint8Array, taskId: string): ReadLine {
  let eventId: string | undefined;
  let type: unknown;
  try {
    const event = parseObject(bytes);
    type = event['type'];
    eventId = typeof event['id'] === 'string' ? event['id'] : undefined;
    const payload = payloadOf(event);
    requireTask(event['task_id'], 'task_id', taskId);
    requireTask(payload['task_id'], 'payload.task_id', taskId);
    return { ok: true, eventId, saying: readSaying(type, payload) };
  } catch (error) {
    if (!(error instanceof LineProblem)) throw error;
    return { ok: false, eventId, rejected: error.rejected, wasEnding: typeof type === 'string' && ENDINGS.has(type) };
  }
}

function parseObject(bytes: Uint8Array): JsonMembers {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
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

function readSaying(type: unknown, payload: JsonMembers): Saying {
  switch (type) {
    case 'task.accepted':
      return { kind: 'accepted' };
    case 'task.started':
      return { kind: 'started' };
    case 'task.progress':
      return { kind: 'progress', fraction: fractionOf(payload['progress']), message: textOf(payload, 'message') };
    case 'task.output':
      return { kind: 'output', output: contentOf(payload, 'output') };
    case 'task.blocked':
      return { kind: 'blocked', reason: textOf(payload, 'reason') ?? '' };
    case 'reeve.task.checkpoint':
      return { kind: 'checkpoint', checkpoint: contentOf(payload, 'checkpoint') };
    case 'task.completed': {
      const result = payload['result'] === undefined ? undefined : contentOf(payload, 'result');
      return { kind: 'completed', result, resultRef: textOf(payload, 'result_ref') };
    }
    case 'task.failed':
      return {
        kind: 'failed',
        error: errorOf(payload['error']),
        retryAfterMs: millisecondsOf(payload, 'retry_after_ms'),
      };
    case 'task.cancelled':
      return { kind: 'cancelled', reason: textOf(payload, 'reason') ?? '' };
    case 'task.timed_out':
      return { kind: 'timed_out', error: payload['error'] === undefined ? undefined : errorOf(payload['error']) };
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

function millisecondsOf(payload: JsonMembers, name: string): number | undefined {
  const value = payload[name];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw malformed(`${name} is a number of milliseconds`, { field: `payload.${name}` });
}

function contentOf(payload: JsonMembers, name: string): unknown {
  const value = payload[name];
  const field = `payload.${name}`;
  if (value === undefined) throw malformed(`${name} is missing`, { field });
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_CONTENT_BYTES) {
    throw malformed(`${name} is larger than ${MAX_CONTENT_BYTES} bytes`, { field });
  }
  return value;
}

function errorOf(value: unknown): SaidError {
  if (!isObject(value)) throw malformed('error is an object with a code', { field: 'payload.error' });
  const { code, message = '', retryable = true, details } = value;
  if (typeof code !== 'string' || !/^\S{1,128}$/.test(code)) {
    throw malformed('error.code is a word of 1 to 128 bytes', { field: 'payload.error.code' });
  }
  if (typeof message !== 'string') throw malformed('error.message is text', { field: 'payload.error.message' });
  if (typeof retryable !== 'boolean') {
    throw malformed('error.retryable is true or false', { field: 'payload.error.retryable' });
  }
  return { code, message, retryable, details };
}

function isObject(value: unknown): value is JsonMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(message: string, details?: Readonly<Record<string, string>>): LineProblem {
  return new LineProblem({ code: 'MALFORMED', message, ...(details && { details }) });
}
