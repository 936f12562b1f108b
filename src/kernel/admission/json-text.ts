/**
 * The strict reader of JSON text: one pass that checks everything and writes the canonical form as it goes.
 *
 * Owns the grammar (RFC 8259) and the refusals of lifecycle.md section 5. It builds no JavaScript values, so no member
 * name can mean anything to it, and it never throws: every text gets an answer. It is on the path of every submission:
 * a string that is its own canonical form is a slice of the text, and members that come in order are not sorted.
 */

import { byCodeUnits, canonicalString } from './canonical-json.js';
import { beginsNumber, canonicalWrittenNumber, numberProblem, scanNumber } from './json-number.js';
import { jsonPointer, MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_JSON_ITEMS, quoted } from './json-problem.js';
import type { JsonOutcome, JsonRoot } from './json-problem.js';
import { decodeString } from './json-string.js';
import { exceedsUtf8Bytes, isHighSurrogate, isLowSurrogate } from './text-rules.js';

const LITERALS = ['true', 'false', 'null'] as const;
const NOT_NUMBERS = ['NaN', 'Infinity'] as const;

const END_OF_TEXT = -1;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Reads a JSON text strictly and answers its RFC 8785 canonical text, or the first problem met and its place. A
 * duplicate member is met at the end of its object.
 */
export function readJsonText(text: string, root: JsonRoot): JsonOutcome {
  if (exceedsUtf8Bytes(text, MAX_JSON_BYTES)) {
    return {
      ok: false,
      problem: {
        detail: `the text is longer than ${MAX_JSON_BYTES} bytes of UTF-8`,
        pointer: '',
        offset: 0,
      },
    };
  }
  return new JsonTextReader(text).read(root);
}

interface Member {
  readonly name: string;
  /** `"name":value`, canonical. */
  readonly text: string;
  /** Where its name begins: the place of a duplicate. */
  readonly offset: number;
}

/**
 * A cursor over one text. Its methods answer canonical text, or undefined after `fail`; each caller on the way out then
 * adds its step to the path, so that knowing the place costs nothing while all is well.
 */
class JsonTextReader {
  private at = 0;
  private depth = 0;
  private items = 0;
  private detail = '';
  private offset = 0;
  private readonly pathFromInside: (string | number)[] = [];
  /** Of the string read last: its value. */
  private stringValue = '';

  constructor(private readonly text: string) {}

  read(root: JsonRoot): JsonOutcome {
    const canonical = this.document(root);
    if (canonical !== undefined) return { ok: true, canonical };
    const pointer = jsonPointer(this.pathFromInside.toReversed());
    return { ok: false, problem: { detail: this.detail, pointer, offset: this.offset } };
  }

  private document(root: JsonRoot): string | undefined {
    const first = this.next();
    if (root === 'object' && first !== OPEN_BRACE) return this.fail('a JSON object is required');
    const canonical = this.value(first);
    if (canonical === undefined || this.next() === END_OF_TEXT) return canonical;
    return this.fail('nothing may follow the value');
  }

  /** The value that begins at the cursor, with this code unit. */
  private value(first: number): string | undefined {
    if (first === QUOTE) return this.string();
    if (first === OPEN_BRACE) return this.object();
    if (first === OPEN_BRACKET) return this.array();
    if (beginsNumber(first)) return this.number();
    return this.literal();
  }

  private object(): string | undefined {
    if (!this.enter()) return undefined;
    let next = this.next();
    const members: Member[] = [];
    let ascending = true;
    let last = '';
    if (next !== CLOSE_BRACE) {
      for (;;) {
        if (next !== QUOTE) return this.expected('a member name in double quotes');
        const offset = this.at;
        const nameText = this.string();
        if (nameText === undefined) return undefined;
        const name = this.stringValue;
        if (!this.countItem()) return undefined;
        if (this.next() !== COLON) return this.expected('a colon');
        this.at += 1;
        const value = this.value(this.next());
        if (value === undefined) return this.failedAt(name);
        if (members.length > 0 && name <= last) ascending = false;
        last = name;
        members.push({ name, text: `${nameText}:${value}`, offset });
        next = this.next();
        if (next === CLOSE_BRACE) break;
        if (next !== COMMA) return this.expected('a comma or a closing brace');
        this.at += 1;
        next = this.next();
      }
    }
    this.at += 1;
    this.depth -= 1;
    return ascending || this.sort(members) ? joined(members) : undefined;
  }

  /** Sorts as RFC 8785 does; fails at the first duplicate in the text. */
  private sort(members: Member[]): boolean {
    members.sort((a, b) => byCodeUnits(a.name, b.name));
    let duplicate: Member | undefined;
    let previous: Member | undefined;
    for (const member of members) {
      const repeats = previous !== undefined && previous.name === member.name;
      if (repeats && (duplicate === undefined || member.offset < duplicate.offset)) duplicate = member;
      previous = member;
    }
    if (duplicate === undefined) return true;
    this.at = duplicate.offset;
    this.fail(`the member ${quoted(duplicate.name)} is there twice`);
    this.failedAt(duplicate.name);
    return false;
  }

  private array(): string | undefined {
    if (!this.enter()) return undefined;
    let text = '[';
    let next = this.next();
    if (next !== CLOSE_BRACKET) {
      for (let index = 0; ; index += 1) {
        if (!this.countItem()) return undefined;
        const element = this.value(next);
        if (element === undefined) return this.failedAt(index);
        text += index === 0 ? element : `,${element}`;
        next = this.next();
        if (next === CLOSE_BRACKET) break;
        if (next !== COMMA) return this.expected('a comma or a closing bracket');
        this.at += 1;
        next = this.next();
      }
    }
    this.at += 1;
    this.depth -= 1;
    return `${text}]`;
  }

  /** A string in quotes; its value is left in `stringValue`. */
  private string(): string | undefined {
    const text = this.text;
    const start = this.at + 1;
    for (let at = start; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit === QUOTE) {
        this.at = at + 1;
        this.stringValue = text.slice(start, at);
        return text.slice(start - 1, at + 1);
      }
      if (unit < 0x20 || unit === BACKSLASH) break;
      if (unit >= 0xd800 && unit <= 0xdfff) {
        const paired = isHighSurrogate(unit) && at + 1 < text.length && isLowSurrogate(text.charCodeAt(at + 1));
        if (!paired) break;
        at += 1;
      }
    }
    const decoded = decodeString(text, start);
    if (!decoded.ok) {
      this.at = decoded.offset;
      return this.fail(decoded.detail);
    }
    this.at = decoded.end + 1;
    this.stringValue = decoded.value;
    return canonicalString(decoded.value);
  }

  private number(): string | undefined {
    const start = this.at;
    const scanned = scanNumber(this.text, start);
    this.at = scanned.end;
    if (scanned.problem !== null) return this.fail(scanned.problem);
    const written = this.text.slice(start, scanned.end);
    if (scanned.isSafeInteger) return written;
    const canonical = canonicalWrittenNumber(written);
    if (canonical !== null) return canonical;
    this.at = start;
    return this.fail(numberProblem(written));
  }

  private literal(): string | undefined {
    for (const word of LITERALS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return word;
      }
    }
    for (const word of NOT_NUMBERS) {
      if (this.text.startsWith(word, this.at)) return this.fail(`${word} is not JSON`);
    }
    return this.expected('a value');
  }

  private enter(): boolean {
    this.depth += 1;
    if (this.depth > MAX_JSON_DEPTH) {
      this.fail(`nested deeper than ${MAX_JSON_DEPTH} levels`);
      return false;
    }
    this.at += 1;
    return true;
  }

  private countItem(): boolean {
    this.items += 1;
    if (this.items <= MAX_JSON_ITEMS) return true;
    this.fail(`more than ${MAX_JSON_ITEMS} members and elements in all`);
    return false;
  }

  /** Skips white space; the code unit at the cursor, `END_OF_TEXT` at the end. */
  private next(): number {
    for (;;) {
      const unit = this.unit();
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return unit;
      this.at += 1;
    }
  }

  /** Never reads past the end: V8 makes an out-of-range charCodeAt slow for every later text too. */
  private unit(): number {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : END_OF_TEXT;
  }

  private expected(what: string): undefined {
    const found = this.at < this.text.length ? quoted(this.text.charAt(this.at)) : 'the end of the text';
    return this.fail(`expected ${what}, found ${found}`);
  }

  private fail(detail: string): undefined {
    this.detail = detail;
    this.offset = this.at;
    return undefined;
  }

  private failedAt(step: string | number): undefined {
    this.pathFromInside.push(step);
    return undefined;
  }
}

function joined(members: readonly Member[]): string {
  let text = '';
  for (const member of members) text += text === '' ? member.text : `,${member.text}`;
  return `{${text}}`;
}
