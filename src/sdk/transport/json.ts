/**
 * JSON text in and out. Text is what travels; values are a convenience, and numbers a double cannot hold are exact
 * only in the text.
 */
import { refusedLocally } from './reeve-error.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: JsonValue;
}

/**
 * A JSON value as its text, for wherever a JSON value is taken: it travels as it stands, so that no number is rounded.
 * Whether it is JSON is the service's to judge.
 */
export class JsonText {
  /** @throws TypeError for what is no text, or a blank one. */
  constructor(readonly text: string) {
    if (typeof text !== 'string' || text.trim() === '') throw new TypeError('JsonText takes the text of a JSON value');
  }

  /** Inside of another value it is one as well, with its numbers as doubles have them. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** The value of a text from the server; undefined for the empty text, which means "none". */
export function parseJson(text: string): JsonValue | undefined {
  if (text === '') return undefined;
  return JSON.parse(text) as JsonValue;
}

/** The text of a value; undefined where JSON has nothing to say (undefined, a function, a symbol). */
export function toJsonText(value: unknown): string | undefined {
  if (value instanceof JsonText) return value.text;
  // The declared type of JSON.stringify leaves the undefined out.
  const text: string | undefined = JSON.stringify(value);
  return text;
}

/** The text of a value that must be there. Throws MALFORMED for what JSON cannot say: cycles, bigint, undefined. */
export function requireJsonText(value: unknown, field: string): string {
  let text: string | undefined;
  try {
    text = toJsonText(value);
  } catch (error) {
    throw refusedLocally(field, `not a JSON value: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text === undefined) throw refusedLocally(field, 'not a JSON value');
  return text;
}
