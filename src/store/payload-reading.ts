/**
 * Reading a stored row: its format mark, its JSON head, and the payloads behind the head, in the order in which
 * `PayloadTail` wrote them.
 */
import { Damage, integerOf, parsed, textOf } from './decode-guards.js';
import { REDACTED_JSON } from './history-row.js';

export interface StoredText {
  readonly head: unknown;
  readonly payloads: PayloadReader;
}

const NOTHING_TAKEN: ReadonlyMap<number, string> = new Map();

/**
 * `headStart`: where the head begins, behind the format version and what else the row has in fixed places. `taken`: the
 * payloads, by place, that are not in the row any more.
 */
export function readStoredText(
  row: string,
  headStart: number,
  what: string,
  taken: ReadonlyMap<number, string> = NOTHING_TAKEN,
): StoredText {
  const lineFeed = row.indexOf('\n', headStart);
  const headEnd = lineFeed === -1 ? row.length : lineFeed;
  return {
    head: parsed(row.slice(headStart, headEnd), what),
    payloads: new PayloadReader(row, Math.min(headEnd + 1, row.length), what, taken),
  };
}

export class PayloadReader {
  /** How many payloads were read. */
  place = 0;

  constructor(
    private readonly row: string,
    private position: number,
    private readonly what: string,
    private readonly taken: ReadonlyMap<number, string>,
  ) {}

  /** Whether the payload that comes next was taken out: then it reads as `REDACTED_JSON`. */
  get isTaken(): boolean {
    return this.taken.has(this.place);
  }

  /** `reference` is what the head holds in the payload's place. */
  next(reference: unknown): string | null {
    if (reference === null || reference === undefined) return null;
    if (typeof reference === 'string') return reference;
    const length = integerOf(reference, `${this.what} payload length`);
    const { isTaken } = this;
    this.place += 1;
    if (isTaken) return REDACTED_JSON;
    const end = this.position + length;
    if (length < 0 || end > this.row.length) throw new Damage(`${this.what} payload is cut short`);
    const payload = this.row.slice(this.position, end);
    this.position = end;
    return payload;
  }

  required(reference: unknown): string {
    return textOf(this.next(reference), `${this.what} payload`);
  }
}
