/**
 * A refusal as a value: the Refusal message of batches, streams and verdicts (error_reason.proto). Tells exactly what
 * the status of a call would tell.
 */
import type { RefusalSchema } from '../gen/reeve/v1/error_reason_pb.js';
import type { Refusal } from '../kernel/refusal.js';
import { ERROR_TABLE } from './error-table.js';
import { refusalContent } from './refusal-content.js';
import { toDuration } from './time-values.js';
import type { Fields } from './message-fields.js';

export function refusalMessage(refusal: Refusal): Fields<typeof RefusalSchema> {
  const { code, reason } = ERROR_TABLE[refusal.reason];
  const { message, metadata, retryAfterMs } = refusalContent(refusal);
  return {
    reason,
    grpcCode: code,
    message,
    metadata,
    ...(retryAfterMs === null ? {} : { retryAfter: toDuration(retryAfterMs) }),
  };
}
