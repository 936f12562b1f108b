/**
 * Refusals on their way out of a codec: thrown where a request is read, caught once at the edge of the service.
 * It never carries anything but a refusal, and nothing outside src/wire and src/services may throw it.
 */
import { type Checked, refusalOfAdmission } from '../kernel/admission/admission-refusal.js';
import { type Refusal, malformed, refuse } from '../kernel/refusal.js';

export class RefusalError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message);
    this.name = 'RefusalError';
  }
}

/** MALFORMED, as something to throw. `field` is the path in the request as the caller wrote it. */
export function malformedField(field: string, detail: string): RefusalError {
  return new RefusalError(malformed(field, detail));
}

/** UNSUPPORTED (gRPC UNIMPLEMENTED) for a field that the contract has and this server does not serve yet. */
export function unsupportedField(field: string): RefusalError {
  return new RefusalError(refuse('UNSUPPORTED', `${field} is not served by this version`, { field }));
}

/** The value of a check that passed; throws the refusal of one that did not, its field under `prefix`. */
export function checked<Value>(outcome: Checked<Value>, prefix = ''): Value {
  if (outcome.ok) return outcome.value;
  throw new RefusalError(refusalOfAdmission(outcome.refusal, prefix));
}
