/**
 * JSON values of an embedding program, in and out. Text is what is stored; a number that a double cannot hold is exact
 * in the text only.
 */
import { requiredJson } from '../wire/json-values.js';
import { malformedField } from '../wire/refusal-error.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: JsonValue;
}

/** The value of a text that was stored; undefined where there is none. */
export function parseJson(text: string | null): JsonValue | undefined {
  return text === null ? undefined : (JSON.parse(text) as JsonValue);
}

/** The text of a value; null for undefined, which is none. Throws MALFORMED for what is no JSON or too large. */
export function jsonText(field: string, value: unknown, maxBytes?: number): string | null {
  if (value === undefined) return null;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    throw malformedField(field, 'is not a JSON value');
  }
  if (text === undefined) throw malformedField(field, 'is not a JSON value');
  return requiredJson(field, text, maxBytes);
}
