/**
 * Methods of the contract that this version does not serve: UNIMPLEMENTED, said by the service itself so that the
 * answer carries a reason like every other.
 */
import { refuse } from '../kernel/refusal.js';
import { RefusalError } from '../wire/refusal-error.js';

export function notServed(method: string): Promise<never> {
  return Promise.reject(new RefusalError(refuse('UNSUPPORTED', `${method} is not served by this version`)));
}
