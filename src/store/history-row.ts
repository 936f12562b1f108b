/**
 * The text of a history row as two things: its head, and the payloads behind it, each of which may have been taken out.
 * Of a payload that was taken out its hash stays, so that what is proved over the row can still be checked; it cannot be
 * put back. Owns where payloads begin and end. Format `1` is what the codec writes; `2[[index, hash]]`, a line feed and
 * the rest of format 1 is a row that was redacted.
 */
import { hash } from 'node:crypto';
import { Damage, integerOf, parsed, textOf, tupleOf } from './decode-guards.js';

/** What stands for a payload that was taken out, where it is read. */
export const REDACTED_JSON = '{"redacted":true}';

const HASH = /^[0-9a-f]{64}$/;

export interface HistoryRowParts {
  /** Format 1 without its payloads; never changed by a redaction. */
  readonly head: string;
  /** Hex SHA-256 of each payload, in their order. */
  readonly payloadHashes: readonly string[];
}

/** Throws `Damage`. */
export function partsOfHistoryRow(row: string): HistoryRowParts {
  const { taken, rest } = unredacted(row);
  const headEnd = rest.indexOf('\n');
  if (headEnd === -1 && taken.size === 0) return { head: rest, payloadHashes: [] };
  const head = headEnd === -1 ? rest : rest.slice(0, headEnd);
  const payloadHashes: string[] = [];
  let position = headEnd === -1 ? rest.length : headEnd + 1;
  for (const [index, length] of payloadLengths(head).entries()) {
    const known = taken.get(index);
    if (known === undefined) {
      payloadHashes.push(sha256(rest.slice(position, position + length)));
      position += length;
    } else {
      payloadHashes.push(known);
    }
  }
  // Nothing may hide behind what is proved.
  if (position !== rest.length) throw new Damage('history row has other payloads than it says');
  return { head, payloadHashes };
}

/** The row without the payloads that have these places in it, counted from 0. Throws `Damage`. */
export function withoutPayloads(row: string, places: ReadonlySet<number>): string {
  const { head, payloadHashes } = partsOfHistoryRow(row);
  const { taken, rest } = unredacted(row);
  const gone = new Map(taken);
  let kept = '';
  let position = head.length + 1;
  for (const [index, length] of payloadLengths(head).entries()) {
    if (taken.has(index)) continue;
    if (places.has(index)) gone.set(index, payloadHashes[index] ?? '');
    else kept += rest.slice(position, position + length);
    position += length;
  }
  const list = [...gone].sort(([left], [right]) => left - right);
  return `2${JSON.stringify(list)}\n${head}${kept === '' ? '' : `\n${kept}`}`;
}

/** Format 1 without what was taken out, and the hashes of that by place. Throws `Damage`. */
export function unredacted(row: string): { readonly taken: ReadonlyMap<number, string>; readonly rest: string } {
  if (row.charAt(0) !== '2') return { taken: NOTHING, rest: row };
  const listEnd = row.indexOf('\n');
  const list = parsed(row.slice(1, listEnd === -1 ? row.length : listEnd), 'list of redactions');
  const taken = new Map<number, string>();
  for (const item of tupleOf(list, 'list of redactions')) {
    const [place, hex] = tupleOf(item, 'redaction');
    const known = textOf(hex, 'hash of a payload');
    if (!HASH.test(known)) throw new Damage('hash of a payload is none');
    taken.set(integerOf(place, 'place of a payload'), known);
  }
  return { taken, rest: listEnd === -1 ? '' : row.slice(listEnd + 1) };
}

const NOTHING: ReadonlyMap<number, string> = new Map();

/** The last item of a head with payloads: it is found from its end, since parsing all of it would cost a commit dear. */
function payloadLengths(head: string): readonly number[] {
  const lengths = parsed(head.slice(head.lastIndexOf('['), -1), 'lengths of payloads');
  return tupleOf(lengths, 'lengths of payloads').map((length) => integerOf(length, 'length of a payload'));
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}
