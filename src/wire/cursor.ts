/**
 * Cursors of watches: where a reader stands, and in which life of the store. A token says that this store gave it for
 * this scope; the incarnation in it says whether the store has been restored or copied since, so that its positions
 * mean something else now.
 */
import { refuse } from '../kernel/refusal.js';
import type { TokenMint } from './opaque-token.js';
import { RefusalError } from './refusal-error.js';

const FIELD = 'cursor';

export class CursorMint {
  constructor(
    private readonly tokens: TokenMint,
    private readonly incarnation: string,
  ) {}

  give(purpose: string, position: string): string {
    return this.tokens.give(purpose, `${this.incarnation}.${position}`);
  }

  /** The position; null when it is of another incarnation. Throws CURSOR_INVALID for what was not given here. */
  read(purpose: string, cursor: string): string | null {
    const text = this.tokens.read(FIELD, purpose, cursor);
    const dot = text.indexOf('.');
    if (dot === -1) throw invalidCursor('is of an older form');
    return text.slice(0, dot) === this.incarnation ? text.slice(dot + 1) : null;
  }
}

export function invalidCursor(detail: string): RefusalError {
  return new RefusalError(refuse('CURSOR_INVALID', `${FIELD}: ${detail}`, { field: FIELD }));
}

/** What lay before it may be gone; `earliest` is a cursor that holds. */
export function expiredCursor(earliest: string): RefusalError {
  const message = 'what followed the cursor may be gone; read the state anew and go on from the earliest cursor';
  return new RefusalError(refuse('CURSOR_EXPIRED', message, { earliest_cursor: earliest }));
}
