/**
 * JSON values that callers and workers send as text: results, outputs, checkpoints, inputs, error details.
 * They are kept as they were written; only that they are JSON, not too large, and not nested deeper than every reader
 * can follow is checked. (Args are held to more, by the kernel: they are hashed.)
 */
import { exceedsUtf8Bytes } from '../kernel/admission/text-rules.js';
import { MAX_JSON_VALUE_LEVELS, isDeeperThan } from '../lib/json-depth.js';
import { malformedField } from './refusal-error.js';

/** One result, output, checkpoint or input, in bytes of UTF-8. */
export const MAX_JSON_VALUE_BYTES = 1_048_576;

/** The text as it is, or null for the empty one. Throws MALFORMED for what is too large or not JSON. */
export function optionalJson(field: string, text: string, maxBytes = MAX_JSON_VALUE_BYTES): string | null {
  return text === '' ? null : requiredJson(field, text, maxBytes);
}

export function requiredJson(field: string, text: string, maxBytes = MAX_JSON_VALUE_BYTES): string {
  if (text === '') throw malformedField(field, 'is required');
  if (exceedsUtf8Bytes(text, maxBytes))
    throw malformedField(field, `must not be longer than ${maxBytes} bytes of UTF-8`);
  const problem = jsonProblem(text);
  if (problem !== null) throw malformedField(field, problem);
  return text;
}

/** Why the text is no JSON value that all can read; null when it is one. */
export function jsonProblem(text: string): string | null {
  if (isDeeperThan(text, MAX_JSON_VALUE_LEVELS))
    return `must not be nested deeper than ${MAX_JSON_VALUE_LEVELS} levels`;
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'is not JSON (RFC 8259)';
  }
}
