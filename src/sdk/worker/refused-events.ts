/**
 * Which refusals of what a worker says time may mend, and which it does not: the same event is never said for ever.
 */
import { status } from '@grpc/grpc-js';
import { ReeveError } from '../transport/reeve-error.js';

/** The same would be refused again. Others (a damaged record, a defect) somebody may mend meanwhile. */
const FOR_GOOD: ReadonlySet<status> = new Set([
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.ALREADY_EXISTS,
  status.FAILED_PRECONDITION,
  status.OUT_OF_RANGE,
  status.UNIMPLEMENTED,
]);

/** What a stream ends with when it could not even read a frame. */
const UNREADABLE: ReadonlySet<status> = new Set([
  status.INVALID_ARGUMENT,
  status.OUT_OF_RANGE,
  status.UNIMPLEMENTED,
  status.RESOURCE_EXHAUSTED,
  status.INTERNAL,
]);

/** Of events that were not judged. */
export function isForGood({ code, reason, retryable }: ReeveError): boolean {
  return !retryable && reason !== 'EVENT_GAP' && FOR_GOOD.has(code);
}

/** Whether a welcomed stream may have ended for what was said on it. */
export function mayBeForWhatWasSaid({ code, retryable }: ReeveError): boolean {
  return !retryable && UNREADABLE.has(code);
}

/** The settlement was said, and the worker has left. */
export const unanswered = new ReeveError({
  reason: 'UNAVAILABLE',
  code: status.UNAVAILABLE,
  message: 'the worker left before the settlement was answered',
});
