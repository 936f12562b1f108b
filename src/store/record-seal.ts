/**
 * The seal of a stored record: a digest of its text and of the task it belongs to, kept beside it by whoever stores
 * records as text. A record whose seal does not hold is not the one that was committed, however well it reads, and is
 * never acted on (lifecycle.md section 4, step 3). It shows damage and hands in the file; whoever makes a seal anew is
 * found by the fold of the history, which no seal takes the place of.
 */
import { hash } from 'node:crypto';

/** `unsealed`: it was written before there were seals. */
export type SealState = 'holds' | 'broken' | 'unsealed';

/** 48 bits: an edit goes unseen once in 10^14, and SQLite keeps a number as exact as it is given only below 2^51. */
const SEAL_DIGITS = 12;

export function sealOf(taskId: string, record: string): number {
  return Number.parseInt(hash('sha256', `${taskId}\n${record}`, 'hex').slice(0, SEAL_DIGITS), 16);
}

export function sealState(taskId: string, record: string, seal: number | null): SealState {
  if (seal === null) return 'unsealed';
  return seal === sealOf(taskId, record) ? 'holds' : 'broken';
}
