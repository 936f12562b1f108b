/**
 * A refusal as a gRPC status: code, message, and a serialised google.rpc.Status for `grpc-status-details-bin` with
 * ErrorInfo and, where they fit, BadRequest, PreconditionFailure and RetryInfo (api.md, "Conventions").
 * Transport-free: whoever serves a call puts the three where they belong.
 */
import { type DescMessage, type MessageInitShape, create, toBinary } from '@bufbuild/protobuf';
import { type Any, anyPack } from '@bufbuild/protobuf/wkt';
import type { Code } from '../gen/google/rpc/code_pb.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RetryInfoSchema,
} from '../gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../gen/google/rpc/status_pb.js';
import type { Refusal } from '../kernel/refusal.js';
import { ERROR_TABLE } from './error-table.js';
import { refusalContent } from './refusal-content.js';
import { toDuration } from './time-values.js';

export const ERROR_DOMAIN = 'reeve.dev';
export const STATUS_DETAILS_KEY = 'grpc-status-details-bin';

export interface RefusalStatus {
  readonly code: Code;
  readonly message: string;
  /** A serialised google.rpc.Status. */
  readonly details: Uint8Array;
}

export function statusOf(refusal: Refusal): RefusalStatus {
  const rule = ERROR_TABLE[refusal.reason];
  const { message, metadata, retryAfterMs } = refusalContent(refusal);
  const details = [pack(ErrorInfoSchema, { reason: refusal.reason, domain: ERROR_DOMAIN, metadata })];
  if (rule.detail === 'bad_request') {
    const field = metadata['field'] ?? '';
    details.push(
      pack(BadRequestSchema, { fieldViolations: [{ field, description: message, reason: refusal.reason }] }),
    );
  }
  if (rule.detail === 'precondition') {
    const subject = metadata['task_id'] ?? metadata['action_kind'] ?? metadata['session_id'] ?? '';
    const violation = { type: refusal.reason, subject, description: message };
    details.push(pack(PreconditionFailureSchema, { violations: [violation] }));
  }
  if (retryAfterMs !== null) details.push(pack(RetryInfoSchema, { retryDelay: toDuration(retryAfterMs) }));
  const status = create(StatusSchema, { code: rule.code, message, details });
  return { code: rule.code, message, details: toBinary(StatusSchema, status) };
}

function pack<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Any {
  return anyPack(schema, create(schema, init));
}
