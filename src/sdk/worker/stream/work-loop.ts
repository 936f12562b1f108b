/**
 * What the keeper of a stream must know of the loop that does the work: what it holds, and whether it still answers.
 */
import type { HeldRef } from './link.js';

export interface WorkLoop {
  /** For how long it has not answered, ms; 0 while it does. */
  readonly silentMs: number;
  /** What it believes it holds; naming more is harmless, naming less loses claims. */
  held(): readonly HeldRef[];
  /** A frame of Claims is on its way to it. */
  passed(claims: Uint8Array): void;
}
