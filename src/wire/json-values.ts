/**
 * JSON values that callers and workers send as text: results, outputs, checkpoints, inputs, error details.
 * They are kept as they were written; only that they are JSON and not too large is checked. (Args are held to more,
 * by the kernel: they are hashed.)
 */
import { exceedsUtf8Bytes } from '../kernel/admission/text-rules.js';
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
  if (!isJson(text)) throw malformedField(field, 'is not JSON (RFC 8259)');
  return text;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
