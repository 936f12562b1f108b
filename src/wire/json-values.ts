/**
 * JSON values that callers and workers send as text: results, outputs, checkpoints, inputs, error details.
 * They are kept as they were written; only that they are JSON, not too large, and not nested deeper than every reader
 * can follow is checked. (Args are held to more, by the kernel: they are hashed.)
 */
import { MAX_JSON_DEPTH } from '../kernel/admission/json-problem.js';
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
  const problem = jsonProblem(text);
  if (problem !== null) throw malformedField(field, problem);
  return text;
}

/** Why the text is no JSON value that all can read; null when it is one. */
export function jsonProblem(text: string): string | null {
  if (isDeeperThan(text, MAX_JSON_DEPTH)) return `must not be nested deeper than ${MAX_JSON_DEPTH} levels`;
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'is not JSON (RFC 8259)';
  }
}

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** By the brackets outside of strings; what is wrong with the text otherwise is the parser's to find. */
function isDeeperThan(text: string, levels: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) inString = !inString;
    else if (inString) at += unit === BACKSLASH ? 1 : 0;
    else if (unit === OPEN_BRACKET || unit === OPEN_BRACE) depth += 1;
    else if (unit === CLOSE_BRACKET || unit === CLOSE_BRACE) depth -= 1;
    if (depth > levels) return true;
  }
  return false;
}
