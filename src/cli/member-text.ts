/**
 * The text of a value inside a JSON text, as it was written: values that are passed on must not be rounded or set anew.
 * Iterative, and only for texts that a JSON reader has taken already: the grammar is not checked again.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Undefined when a member on the way is missing. Of members with the same name the last counts, as for JSON.parse. */
export function memberText(json: string, ...path: readonly string[]): string | undefined {
  let text: string | undefined = json;
  for (const name of path) text = text === undefined ? undefined : memberOf(text, name);
  return text;
}

function memberOf(object: string, wanted: string): string | undefined {
  let found: string | undefined;
  let depth = 0;
  let name: string | undefined;
  let valueFrom = 0;
  for (let at = 0; at < object.length; at += 1) {
    switch (object.charCodeAt(at)) {
      case QUOTE: {
        const end = stringEnd(object, at);
        if (depth === 1 && name === undefined) name = JSON.parse(object.slice(at, end + 1)) as string;
        at = end;
        break;
      }
      case COLON:
        if (depth === 1) valueFrom = at + 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        break;
      case COMMA:
      case CLOSE_BRACE:
      case CLOSE_BRACKET: {
        const ends = object.charCodeAt(at) !== COMMA;
        if (depth === 1) {
          if (name === wanted) found = object.slice(valueFrom, at).trim();
          name = undefined;
        }
        if (ends) depth -= 1;
      }
    }
  }
  return found;
}

/** Where the string that begins at `from` has its closing quote. */
function stringEnd(text: string, from: number): number {
  let end = from;
  do {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
  } while (isEscaped(text, end));
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 1;
}
