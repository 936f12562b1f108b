/**
 * Chance as a dependency: ids and jitter come from here, so that a simulation can be run again from its seed.
 */
import { randomBytes } from 'node:crypto';
import { v7 as uuidV7 } from 'uuid';

export interface Random {
  /** Uniform in [0, 1). */
  chance(): number;
  /** A UUIDv7 in its usual text form. */
  uuidV7(): string;
  /** An unguessable text of `bytes` random bytes, base64url. */
  token(bytes: number): string;
}

export const systemRandom: Random = {
  chance: () => Math.random(),
  uuidV7: () => uuidV7(),
  token: (bytes) => randomBytes(bytes).toString('base64url'),
};
