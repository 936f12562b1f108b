/**
 * JSON strings with escapes or surrogates: the slow half of reading a string.
 *
 * Owns decoding and the refusal of what two parsers could read differently (lone surrogates, raw control characters,
 * unknown escapes). The fast half, strings that are their own canonical form, is in the reader.
 */

import { isHighSurrogate, isLowSurrogate } from './text-rules.js';

export type DecodedString =
  | { readonly ok: true; readonly value: string; readonly end: number }
  | { readonly ok: false; readonly detail: string; readonly offset: number };

/**
 * Decodes the JSON string whose first character after the quote is at `start`.
 * @returns its value and the offset of its closing quote, or the first problem with its offset.
 */
export function decodeString(text: string, start: number): DecodedString {
  let value = '';
  let copied = start;
  let at = start;
  // Offset of a high surrogate, raw or escaped, that still needs its low one; -1 when there is none.
  let highAt = -1;
  while (at < text.length) {
    const place = at;
    let unit = text.charCodeAt(at);
    if (unit === 0x22) {
      if (highAt >= 0) return loneSurrogate(highAt);
      return { ok: true, value: value + text.slice(copied, at), end: at };
    }
    if (unit < 0x20) {
      return { ok: false, detail: 'a control character in a string must be escaped', offset: at };
    }
    if (unit === 0x5c) {
      const escaped = escapedUnit(text, at);
      if (escaped < 0) return { ok: false, detail: 'this is not an escape that JSON knows', offset: at };
      value += text.slice(copied, at) + String.fromCharCode(escaped);
      at += text.charCodeAt(at + 1) === 0x75 ? 6 : 2;
      copied = at;
      unit = escaped;
    } else {
      at += 1;
    }
    if (isLowSurrogate(unit)) {
      if (highAt < 0) return loneSurrogate(place);
      highAt = -1;
    } else if (highAt >= 0) {
      return loneSurrogate(highAt);
    } else if (isHighSurrogate(unit)) {
      highAt = place;
    }
  }
  return { ok: false, detail: 'the text ends inside a string', offset: text.length };
}

function loneSurrogate(offset: number): DecodedString {
  return { ok: false, detail: 'a lone surrogate has no UTF-8 form', offset };
}

/** The code unit that the escape at this backslash stands for, or -1 when it is none. */
function escapedUnit(text: string, backslash: number): number {
  switch (text[backslash + 1]) {
    case '"':
      return 0x22;
    case '\\':
      return 0x5c;
    case '/':
      return 0x2f;
    case 'b':
      return 0x08;
    case 'f':
      return 0x0c;
    case 'n':
      return 0x0a;
    case 'r':
      return 0x0d;
    case 't':
      return 0x09;
    case 'u': {
      const digits = text.slice(backslash + 2, backslash + 6);
      return /^[0-9a-fA-F]{4}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
    }
    default:
      return -1;
  }
}
