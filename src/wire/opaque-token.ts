/**
 * Cursors and page tokens: opaque, versioned, and bound to the store and the request they were given for.
 * Owns their form and their check: whatever this store did not give for this very purpose is CURSOR_INVALID, a
 * truncated or altered one too. A token is no secret and grants nothing.
 */
import { createHash } from 'node:crypto';
import { refuse } from '../kernel/refusal.js';
import { RefusalError } from './refusal-error.js';

const VERSION = '1';
const CHECK_BYTES = 12;
/** Far above what is ever given; bounds the work on what is not ours. */
const MAX_TOKEN_CHARACTERS = 1_024;

export class TokenMint {
  private readonly storeTag: string;

  /** `storeSecret`: the secret of the store, which no other store has. */
  constructor(storeSecret: string) {
    this.storeTag = createHash('sha256').update(`tokens\n${storeSecret}`).digest('hex');
  }

  /** A token that carries `position` for `purpose`: the kind of token and the request it belongs to. */
  give(purpose: string, position: string): string {
    const body = Buffer.from(`${VERSION}${position}`, 'utf8');
    return Buffer.concat([this.check(purpose, body), body]).toString('base64url');
  }

  /** The position of a token given for the same purpose. Throws CURSOR_INVALID naming `field`. */
  read(field: string, purpose: string, token: string): string {
    const bytes = token.length > MAX_TOKEN_CHARACTERS ? Buffer.alloc(0) : Buffer.from(token, 'base64url');
    const body = bytes.subarray(CHECK_BYTES);
    const version = body.toString('latin1', 0, 1);
    const ours = version === VERSION && bytes.subarray(0, CHECK_BYTES).equals(this.check(purpose, body));
    // base64url has many spellings of one value; only the one that was given is taken.
    if (ours && bytes.toString('base64url') === token) return body.toString('utf8', 1);
    const message = `${field}: is not one that this store gave for this request`;
    throw new RefusalError(refuse('CURSOR_INVALID', message, { field }));
  }

  private check(purpose: string, body: Buffer): Buffer {
    const digest = createHash('sha256').update(`${this.storeTag}\n${purpose}\n`).update(body).digest();
    return digest.subarray(0, CHECK_BYTES);
  }
}
