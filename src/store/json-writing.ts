/**
 * Writing JSON by hand, for the two texts that every commit makes: a generic serialiser costs several times as much.
 * Owns quoting, numbers, tuples without their trailing nulls, and the payload tail.
 */

/** What can't stand in quotes as it is, or is not plain ASCII; looking for it costs a third of JSON.stringify. */
const NEEDS_ESCAPES = /[^\x20\x21\x23-\x5b\x5d-\x7e]/;

export function quoted(text: string): string {
  return NEEDS_ESCAPES.test(text) ? JSON.stringify(text) : `"${text}"`;
}

export function quotedOrNull(text: string | null): string {
  return text === null ? 'null' : quoted(text);
}

export function numberOrNull(value: number | null): string {
  return value === null ? 'null' : String(value);
}

/** Keys and values in turn, in the order of the map. */
export function quotedMap(map: Readonly<Record<string, string>>): string {
  return `[${Object.entries(map)
    .map(([key, value]) => `${quoted(key)},${quoted(value)}`)
    .join()}]`;
}

export function isEmptyMap(map: Readonly<Record<string, string>>): boolean {
  for (const key in map) if (Object.hasOwn(map, key)) return false;
  return true;
}

export function quotedList(texts: readonly string[]): string {
  return texts.length === 0 ? '[]' : `[${texts.map(quoted).join()}]`;
}

let lastMs = Number.NaN;
let lastMsText = '';

/** Epoch milliseconds. Remembers the last text: a batch has few instants, and 13 digits are slow to make. */
export function instant(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastMsText = String(ms);
  }
  return lastMsText;
}

/** A list whose trailing nulls are left out; readers take what is absent for null. */
export function tuple(...items: readonly string[]): string {
  let length = items.length;
  while (length > 0 && items[length - 1] === 'null') length -= 1;
  return `[${(length === items.length ? items : items.slice(0, length)).join()}]`;
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Payloads (args, results, outputs) stand behind the JSON head of a row, after a line feed, and the head holds their
 * length in UTF-16 units: a megabyte of JSON inside JSON would be escaped and unescaped at every turn.
 * A text that UTF-8 cannot carry (a lone surrogate) stays in the head, escaped.
 */
export class PayloadTail {
  private text = '';
  /** Of the payloads that stand behind the head, in their order, separated by commas. */
  lengths = '';

  add(payload: string | null): string {
    if (payload === null) return 'null';
    if (LONE_SURROGATE.test(payload)) return JSON.stringify(payload);
    const length = String(payload.length);
    this.text += payload;
    this.lengths += this.lengths === '' ? length : `,${length}`;
    return length;
  }

  after(head: string): string {
    return this.lengths === '' ? head : `${head}\n${this.text}`;
  }
}
