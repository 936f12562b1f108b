/**
 * From whatever a handler threw to the status of its call. Owns the log line of a defect: the caller gets a request id
 * and nothing else, the log gets the error under the same id.
 */
import type { DescMethod } from '@bufbuild/protobuf';
import { Metadata } from '@grpc/grpc-js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { refusalOf } from '../services/failures.js';
import { STATUS_DETAILS_KEY, statusOf } from '../wire/status-details.js';
import type { Log } from './log.js';

export interface GrpcStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

export class CallFailures {
  constructor(private readonly log: Log) {}

  statusOf(error: unknown, requestId: string, method: DescMethod): GrpcStatus {
    const refusal = refusalOf(error);
    if (refusal.reason !== 'INTERNAL') return grpcStatus(refusal);
    this.log.error({ err: error, request_id: requestId, method: method.name }, 'a handler failed');
    return grpcStatus(refuse('INTERNAL', refusal.message, { request_id: requestId }));
  }

  statusOfRefusal(refusal: Refusal, requestId: string): GrpcStatus {
    if (refusal.reason !== 'INTERNAL') return grpcStatus(refusal);
    return grpcStatus(refuse('INTERNAL', refusal.message, { request_id: requestId }));
  }
}

function grpcStatus(refusal: Refusal): GrpcStatus {
  const { code, message, details } = statusOf(refusal);
  const metadata = new Metadata();
  metadata.set(STATUS_DETAILS_KEY, Buffer.from(details));
  return { code, details: message, metadata };
}
