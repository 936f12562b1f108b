/**
 * The hash chain of a task: one link per commit, over the link before and what the commit says (lifecycle.md section
 * 9). The first link of a task covers the head of its admission instead, and with it the hash of its args. With a key a
 * link is an HMAC, which nobody without the key can make; without one it shows accidents, and tampering to whoever kept
 * a link elsewhere. Pure: it keeps nothing, and places in the store (sequences, orders) are no part of it.
 */
import { createHmac, hash } from 'node:crypto';
import { withoutArgs } from './admission-codec.js';
import { decoded } from './decode-guards.js';
import { partsOfHistoryRow } from './history-row.js';

/** 32 bytes as 64 lower-case hexadecimal digits. */
export type Link = string;

/** Shorter keys can be guessed. */
export const MIN_CHAIN_KEY_BYTES = 32;
const KEY_ID_DIGITS = 16;

/** What a link covers beside the history row itself. */
export interface LinkPlace {
  readonly taskId: string;
  /** The number of the row's last event. */
  readonly lastNumber: number;
  /** Null: it is the first link of the task. */
  readonly previous: Link | null;
  /** The stored admission; used for a first link only. */
  readonly admission: string | null;
}

export class HistoryChain {
  constructor(private readonly key: Uint8Array | null) {}

  /** Names the key without telling it; `none` without one. Stores keep it, to be opened with the same key again. */
  get keyId(): string {
    if (this.key === null) return 'none';
    return createHmac('sha256', this.key).update('reeve.chain.key').digest('hex').slice(0, KEY_ID_DIGITS);
  }

  /** Throws `Damage` when the row's payloads are not where it says. */
  linkOf(place: LinkPlace, row: string): Link {
    const { taskId, lastNumber, previous, admission } = place;
    const { head, payloadHashes } = partsOfHistoryRow(row);
    // One line each, and no part can hold a line feed: no two contents make the same text.
    const before = previous ?? (admission === null ? '' : withoutArgs(admission));
    let text = `reeve.chain.1\n${taskId}\n${String(lastNumber)}\n${before}\n${head}`;
    for (const payload of payloadHashes) text += `\n${payload}`;
    return this.key === null ? hash('sha256', text, 'hex') : createHmac('sha256', this.key).update(text).digest('hex');
  }

  /** Whether the stored link is the one that belongs there. */
  holds(link: Link, place: LinkPlace, row: string): boolean {
    const expected = decoded(() => this.linkOf(place, row));
    return expected.ok && expected.value === link;
  }
}
