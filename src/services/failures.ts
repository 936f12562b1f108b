/**
 * Whatever a handler threw, as the refusal that its caller is told. What is not a refusal or a store's failure is a
 * defect: the caller learns a request id, the log everything.
 */
import { storeRefusal } from '../authority/store-refusal.js';
import type { Refusal } from '../kernel/refusal.js';
import { RefusalError } from '../wire/refusal-error.js';

export function refusalOf(error: unknown): Refusal {
  return error instanceof RefusalError ? error.refusal : storeRefusal(error);
}
