/**
 * Measures and character rules that the identifiers, labels and texts of a submission share.
 *
 * Owns "how long" (bytes of UTF-8, because columns and other languages count those) and "which characters". It never
 * trims, folds or repairs: a text is taken as it is or refused.
 */

export interface TextRule {
  readonly maxBytes: number;
  readonly empty: 'allowed' | 'refused';
  /** `inside`: not at either end. */
  readonly spaces: 'anywhere' | 'inside' | 'nowhere';
  readonly controls: 'allowed' | 'refused';
}

/** Most texts are this: visible ASCII, which breaks no rule but those of length. */
const VISIBLE_ASCII = /^[!-~]*$/;

/** U+0000–001F, DEL, and the C1 range U+0080–009F. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** A surrogate that is not half of a pair: with the u flag a pair is one character of another category. */
const LONE_SURROGATE = /\p{Cs}/u;

/** Unicode's White_Space, and what ECMAScript's trim takes besides (U+FEFF): nobody's trim may change the text. */
const SPACE = /[\s\p{White_Space}]/u;
const EDGE_SPACE = /^[\s\p{White_Space}]|[\s\p{White_Space}]$/u;

/** What breaks the rule, as the end of a sentence that begins with the field; null when nothing does. */
export function textProblem(text: string, rule: TextRule): string | null {
  if (text === '') return rule.empty === 'allowed' ? null : 'must not be empty';
  if (exceedsUtf8Bytes(text, rule.maxBytes)) return `must not be longer than ${rule.maxBytes} bytes of UTF-8`;
  if (VISIBLE_ASCII.test(text)) return null;
  if (hasLoneSurrogate(text)) return 'must not contain a lone surrogate, which has no UTF-8 form';
  if (rule.controls === 'refused' && CONTROL_CHARACTER.test(text)) return 'must not contain control characters';
  if (rule.spaces === 'nowhere' && SPACE.test(text)) return 'must not contain white space';
  if (rule.spaces === 'inside' && EDGE_SPACE.test(text)) return 'must not begin or end with white space';
  return null;
}

/** Whether the UTF-8 form is longer than `maxBytes`; a lone surrogate counts 3 bytes. */
export function exceedsUtf8Bytes(text: string, maxBytes: number): boolean {
  // A code unit is 1 to 3 bytes, so most answers need no look at the characters.
  if (text.length > maxBytes) return true;
  if (text.length * 3 <= maxBytes) return false;
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    // 2 bytes: one more. 3 bytes: two more. A pair is 4 bytes for 2 units, so each of its halves adds one.
    if (unit > 0x7f) bytes += unit > 0x7ff && !isPaired(text, at, unit) ? 2 : 1;
  }
  return bytes > maxBytes;
}

function isPaired(text: string, at: number, unit: number): boolean {
  if (isHighSurrogate(unit)) return at + 1 < text.length && isLowSurrogate(text.charCodeAt(at + 1));
  return isLowSurrogate(unit) && at > 0 && isHighSurrogate(text.charCodeAt(at - 1));
}

export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

export function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

export function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
