/**
 * How deep JSON text is nested, told without parsing it: a parser that follows levels by recursion is what deep text
 * takes down.
 */

/**
 * Of a result, an output, a checkpoint, an input. (Args may have 32.) Trees that programs make stay far below it, and the
 * readers of common languages that go by recursion end at about a thousand.
 */
export const MAX_JSON_VALUE_LEVELS = 500;

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** By the brackets outside of strings; what is wrong with the text otherwise is the parser's to find. */
export function isDeeperThan(text: string, levels: number): boolean {
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
