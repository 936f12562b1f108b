/**
 * Any failure as one line (or one JSON line) and an exit code. A stack is never shown: what a user can act on is the
 * reason and its values.
 */
import { CommanderError } from 'commander';
import { OptionError } from '../../sdk/transport/option-checks.js';
import { isReeveError, type ReeveError } from '../../sdk/transport/reeve-error.js';
import { EXIT, type ExitCode, exitForGrpc } from '../exit-codes.js';
import { UsageError } from '../usage-error.js';
import { plainText } from './plain-text.js';

export interface Failure {
  readonly exit: ExitCode;
  /** Undefined when it has been said already. */
  readonly line: string | undefined;
  readonly json: string;
}

/** @param address what was called, for the hint when nobody answers. */
export function describeFailure(error: unknown, address: string): Failure {
  if (error instanceof CommanderError) {
    const exit = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return { exit, line: undefined, json: errorJson({ reason: 'USAGE', message: error.message }) };
  }
  // What the SDK finds wrong in its options was said on the command line.
  if (error instanceof UsageError || error instanceof OptionError) {
    return {
      exit: EXIT.usage,
      line: `reeve: ${plainText(error.message)}`,
      json: errorJson({ reason: 'USAGE', message: error.message }),
    };
  }
  if (isReeveError(error)) return describeReeveError(error, address);
  const message = error instanceof Error ? error.message : String(error);
  return {
    exit: EXIT.internal,
    line: `reeve: ${plainText(message)}`,
    json: errorJson({ reason: 'INTERNAL', message }),
  };
}

function describeReeveError(error: ReeveError, address: string): Failure {
  const { reason, metadata, retryable, retryAfterMs } = error;
  const message = isConnectFailure(error)
    ? `nothing answers at ${address}; is \`reeve serve\` running there? (--address, REEVE_ADDRESS)`
    : error.message;
  const values = Object.entries(metadata)
    .map(([name, value]) => metadataText(name, value))
    .join(', ');
  const details = values === '' ? '' : ` (${values})`;
  return {
    exit: exitForGrpc(error.code),
    line: `reeve: ${reason}: ${plainText(message)}${details}`,
    json: errorJson({
      reason,
      code: error.code,
      message,
      metadata,
      retryable,
      ...(retryAfterMs !== undefined && { retry_after_ms: retryAfterMs }),
    }),
  };
}

/** grpc-js says so in words only; Reeve's own UNAVAILABLE has a reason of its own. */
function isConnectFailure(error: ReeveError): boolean {
  if (error.reason !== 'UNAVAILABLE' && error.reason !== 'DEADLINE_EXCEEDED') return false;
  return /ECONNREFUSED|ENOTFOUND|ENOENT|EAI_AGAIN|No connection established|Name resolution/.test(error.message);
}

function metadataText(name: string, value: string): string {
  if (name === 'pointers') return `differs at ${pointerList(value)}`;
  return `${name}=${plainText(value)}`;
}

/** `["/args/a","/action_kind"]` as `/args/a, /action_kind`. */
function pointerList(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed)) return parsed.map((pointer) => plainText(String(pointer))).join(', ');
  } catch {
    // Shown as it came.
  }
  return plainText(text);
}

function errorJson(error: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ error });
}
