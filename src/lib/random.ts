/**
 * Chance as a dependency: ids and jitter come from here, so that a simulation can be run again from its seed.
 */
import { randomBytes } from 'node:crypto';
import { v7 } from 'uuid';

export interface Random {
  /** Uniform in [0, 1). */
  chance(): number;
  /** A UUIDv7 in its usual text form. */
  uuidV7(): string;
  /** An unguessable text of `bytes` random bytes, base64url. */
  token(bytes: number): string;
}

const UUID_BYTES = 16;
/** Asking the kernel for sixteen bytes at a time costs more than the rest of an id. */
const POOL_BYTES = 4_096;
let pool = Buffer.alloc(0);
let poolAt = 0;
let lastMs = 0;
let sequence = 0;

/** Ids of one millisecond ascend too, so that an index over them grows at its end. */
function nextUuidV7(): string {
  if (poolAt + UUID_BYTES > pool.length) {
    pool = randomBytes(POOL_BYTES);
    poolAt = 0;
  }
  const random = pool.subarray(poolAt, (poolAt += UUID_BYTES));
  lastMs = Math.max(Date.now(), lastMs);
  sequence = (sequence + 1) >>> 0;
  if (sequence === 0) lastMs += 1;
  return v7({ random, msecs: lastMs, seq: sequence });
}

export const systemRandom: Random = {
  chance: () => Math.random(),
  uuidV7: nextUuidV7,
  token: (bytes) => randomBytes(bytes).toString('base64url'),
};
