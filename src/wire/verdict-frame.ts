/**
 * Frames of verdicts on what workers said, written by hand (worker_service.proto, EventVerdicts; field numbers as
 * there). Refusals are rare and come encoded by the generated codec.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { RejectedEventSchema } from '../gen/reeve/v1/worker_service_pb.js';
import type { Refusal } from '../kernel/refusal.js';
import { isRetryable } from './error-table.js';
import type { Fields } from './message-fields.js';
import { ProtoWriter } from './proto-writer.js';
import { refusalContent } from './refusal-content.js';
import { refusalMessage } from './refusal-message.js';

export interface VerdictToSend {
  readonly taskId: string;
  readonly epoch: number;
  readonly judgedThrough: number;
  readonly committedSequence: number;
  readonly refused: readonly { readonly seq: number; readonly refusal: Refusal }[];
}

const VERDICT_OVERHEAD_BYTES = 256;
/** Message and metadata are bounded where a refusal is told. */
const REFUSAL_BYTES = 4_096;

const writer = new ProtoWriter();

/** In bytes, at most about. */
export function verdictWeight(verdict: VerdictToSend): number {
  return VERDICT_OVERHEAD_BYTES + verdict.refused.length * REFUSAL_BYTES;
}

/** An encoded WorkResponse. */
export function verdictsFrame(frameId: number, verdicts: readonly VerdictToSend[]): Uint8Array {
  writer.integer(1, frameId);
  const frame = writer.begin(3);
  for (const verdict of verdicts) {
    const start = writer.begin(1);
    writer.string(1, verdict.taskId);
    writer.integer(2, verdict.epoch);
    writer.integer(3, verdict.judgedThrough);
    writer.integer(4, verdict.committedSequence);
    for (const { seq, refusal } of verdict.refused) writer.bytes(5, encodedRejection(seq, refusal));
    writer.end(start);
  }
  writer.end(frame);
  return writer.take();
}

function encodedRejection(seq: number, refusal: Refusal): Uint8Array {
  return toBinary(RejectedEventSchema, create(RejectedEventSchema, rejectedEventMessage(seq, refusal)));
}

/** In Reeve's terms, and in AEP's: the content of `event.rejected`. */
export function rejectedEventMessage(seq: number, refusal: Refusal): Fields<typeof RejectedEventSchema> {
  const { message, metadata } = refusalContent(refusal);
  return {
    eventSeq: BigInt(seq),
    refusal: refusalMessage(refusal),
    error: {
      code: refusal.reason.toLowerCase(),
      message,
      retryable: isRetryable(refusal),
      detailsJson: JSON.stringify(metadata),
    },
  };
}
