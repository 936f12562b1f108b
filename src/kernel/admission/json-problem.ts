/**
 * What can be wrong with a JSON value, where, and the limits it is held to.
 *
 * Owns the limits of lifecycle.md section 5 and the building of JSON pointers. Pointers and quoted names are bounded
 * here, because they travel in error messages: a member name may be as long as the whole text.
 */

/** As received, in bytes of UTF-8: what one request, one row and one event may hold of caller JSON. */
export const MAX_JSON_BYTES = 1_048_576;

/** Nested arrays and objects; the root is 1, scalars do not count. Keeps every recursive reader off its stack limit. */
export const MAX_JSON_DEPTH = 32;

/** Object members and array elements of the whole value together: bounds the work that a small text can cause. */
export const MAX_JSON_ITEMS = 10_000;

/** The longest pointer that is reported, in UTF-16 code units; a deeper place is named by its nearest ancestor. */
export const MAX_POINTER_LENGTH = 256;

const MAX_QUOTED_LENGTH = 40;

export interface JsonProblem {
  /** One sentence for a person. */
  readonly detail: string;
  /** RFC 6901; the root is the empty text. Of a syntax error: the innermost value that was being read. */
  readonly pointer: string;
  /** UTF-16 code units from the start of the text; absent when a value was checked and not a text. */
  readonly offset?: number;
}

/** What the root may be: args are an object; a result, an output or a checkpoint is any value. */
export type JsonRoot = 'object' | 'any';

/** Canonical text (RFC 8785) of a value that passed, or the first problem met. */
export type JsonOutcome =
  { readonly ok: true; readonly canonical: string } | { readonly ok: false; readonly problem: JsonProblem };

/** One reference token of a pointer: `~` and `/` escaped (RFC 6901 section 3). */
export function pointerToken(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * The pointer of a place given its member names and indices from the root, cut to the deepest ancestor that fits
 * `MAX_POINTER_LENGTH`.
 */
export function jsonPointer(path: readonly (string | number)[]): string {
  let pointer = '';
  for (const step of path) {
    // Most long names are refused by their plain length, before an escaped copy of them is made.
    if (typeof step === 'string' && step.length >= MAX_POINTER_LENGTH) return pointer;
    const longer = `${pointer}/${typeof step === 'string' ? pointerToken(step) : String(step)}`;
    if (longer.length > MAX_POINTER_LENGTH) return pointer;
    pointer = longer;
  }
  return pointer;
}

/** A caller's text made fit for a message: quoted, escaped, at most 40 characters of it. */
export function quoted(text: string): string {
  return text.length <= MAX_QUOTED_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, MAX_QUOTED_LENGTH))}…`;
}
