/**
 * Texts of bounded size: those that are refused when they are too long, and those that are cut.
 * Owns the mark that a cut leaves, so that whoever reads the text later can be told that something is missing though
 * the record has no flag for it (lifecycle.md section 9: "truncated with a flag; the transition always commits"). Only
 * a cut leaves it: a text that was sent with the mark at its end is kept with another spelling of it.
 */
import { exceedsUtf8Bytes } from '../kernel/admission/text-rules.js';
import { malformedField } from './refusal-error.js';

/** Ends a text that was cut, or that stands beside something that was dropped. */
export const CUT_MARK = '… [cut]';
const CUT_MARK_BYTES = Buffer.byteLength(CUT_MARK);
/** The mark as somebody else's word, in as many bytes. */
const FOREIGN_MARK = CUT_MARK.replace('…', '...');

/** The text if it is at most `maxBytes` of UTF-8. Throws MALFORMED. */
export function boundedText(field: string, text: string, maxBytes: number): string {
  if (exceedsUtf8Bytes(text, maxBytes))
    throw malformedField(field, `must not be longer than ${maxBytes} bytes of UTF-8`);
  return text;
}

/** As `boundedText`; the empty text is nothing. */
export function optionalText(field: string, text: string, maxBytes: number): string | null {
  return text === '' ? null : boundedText(field, text, maxBytes);
}

/** The text, or its beginning and the mark when it is longer than `maxBytes`. */
export function cutText(text: string, maxBytes: number): string {
  if (exceedsUtf8Bytes(text, maxBytes)) return `${firstBytes(text, maxBytes - CUT_MARK_BYTES)}${CUT_MARK}`;
  return wasCut(text) ? `${text.slice(0, -CUT_MARK.length)}${FOREIGN_MARK}` : text;
}

/** A text from `cutText` with the mark at its end, still within `maxBytes`. */
export function markCut(text: string, maxBytes: number): string {
  if (wasCut(text)) return text;
  return `${firstBytes(text, maxBytes - CUT_MARK_BYTES)}${CUT_MARK}`;
}

/** The end of a text that is longer than `maxBytes`: of a log the tail is what matters. */
export function lastBytes(text: string, maxBytes: number): string {
  if (!exceedsUtf8Bytes(text, maxBytes)) return text;
  const bytes = Buffer.from(text, 'utf8');
  let start = bytes.length - maxBytes;
  // Continuation bytes begin with the bits 10: skip to the next whole character.
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.toString('utf8', start);
}

/** Of a text from `cutText` or `markCut`: whether something is missing. */
export function wasCut(text: string): boolean {
  return text.endsWith(CUT_MARK);
}

function firstBytes(text: string, maxBytes: number): string {
  if (!exceedsUtf8Bytes(text, maxBytes)) return text;
  const bytes = Buffer.from(text, 'utf8');
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
