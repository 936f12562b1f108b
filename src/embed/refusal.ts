/**
 * The one error of the embedded authority: a refusal with its reason and every dynamic value, as the wire tells it.
 * What is no refusal (a defect, a misuse that types would have shown) is thrown as it is.
 */
import { storeRefusal } from '../authority/store-refusal.js';
import type { Refusal, RefusalReason } from '../kernel/refusal.js';
import { StoreError } from '../store/store-error.js';
import { RefusalError } from '../wire/refusal-error.js';

const RETRYABLE: ReadonlySet<RefusalReason> = new Set([
  'CONTENTION',
  'OVERLOADED',
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
]);

export class ReeveRefusal extends Error {
  override readonly name = 'ReeveRefusal';
  /** The name of an ErrorReason (proto/reeve/v1/error_reason.proto) without its prefix: `IDEMPOTENCY_CONFLICT`. */
  readonly reason: RefusalReason;
  /** Every dynamic value, under the keys that the reason documents: `field`, `task_id`, `pointers`, … */
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether the same call, with the same key, may succeed later. */
  readonly retryable: boolean;

  constructor({ reason, message, metadata }: Refusal, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
    this.metadata = metadata;
    this.retryable = RETRYABLE.has(reason);
  }
}

/** True for a ReeveRefusal, of this reason if one is given. */
export function isReeveRefusal(error: unknown, reason?: RefusalReason): error is ReeveRefusal {
  return error instanceof ReeveRefusal && (reason === undefined || error.reason === reason);
}

/** What the work comes to; what it threw, as callers are told of it. */
export async function refusing<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw asThrown(error);
  }
}

export function asThrown(error: unknown): unknown {
  if (error instanceof RefusalError) return new ReeveRefusal(error.refusal);
  if (error instanceof StoreError) return new ReeveRefusal(storeRefusal(error), { cause: error });
  return error;
}
