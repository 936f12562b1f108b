/**
 * What a worker says of its claims, from the wire to the domain: one frame of events becomes one report per claim, in
 * the worker's order (worker_service.proto, WorkerEvents). On the hot path: no object is made that is not kept.
 * An event that cannot be read is passed on as refused, because its number is used up all the same; one without a
 * name or a number makes the whole frame MALFORMED.
 */
import type { Output, WorkerEvent as EventMessage } from '../gen/reeve/v1/worker_service_pb.js';
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import type { OutputData } from '../kernel/event.js';
import type { WorkerEvent, WorkerSaying } from '../kernel/intent.js';
import type { Ending, TaskError } from '../kernel/record.js';
import { refuse } from '../kernel/refusal.js';
import { NO_ENDING } from '../kernel/settlement.js';
import { boundedText, cutText } from './bounded-text.js';
import {
  MAX_CHECKPOINT_BYTES,
  MAX_CONTENT_TYPE_BYTES,
  MAX_PROGRESS_MESSAGE_BYTES,
  MAX_REASON_BYTES,
} from './frame-limits.js';
import { MAX_JSON_VALUE_BYTES, optionalJson, requiredJson } from './json-values.js';
import { RefusalError, malformedField } from './refusal-error.js';
import { readEnding, readError, readTimeoutEnding } from './settlement-codec.js';
import { durationMsWithin } from './time-values.js';
import { readEpoch } from './whole-numbers.js';

export interface ClaimEvents {
  readonly taskId: string;
  readonly generation: number;
  readonly epoch: number;
  readonly events: WorkerEvent[];
  /** About what they hold in memory, in bytes. */
  weightBytes: number;
}

/** About what an event takes besides its texts. */
const EVENT_OVERHEAD_BYTES = 256;

const ACCEPTED: WorkerSaying = { kind: 'accepted' };
const STARTED: WorkerSaying = { kind: 'started' };

/** Per claim, in the order in which the claims were first named. Throws MALFORMED for the frame as a whole. */
export function readWorkerEvents(messages: readonly EventMessage[]): ClaimEvents[] {
  const claims: ClaimEvents[] = [];
  const byTask = new Map<string, ClaimEvents>();
  let claim: ClaimEvents | undefined;
  for (const [index, message] of messages.entries()) {
    const { taskId, generation } = message;
    const epoch = readEpoch('events[].epoch', message.epoch, index);
    const seq = readEpoch('events[].event_seq', message.eventSeq, index);
    if (claim?.taskId !== taskId) claim = byTask.get(taskId);
    if (claim?.epoch !== epoch || claim.generation !== generation) {
      if (taskId === '') throw malformedField(`events[${index}].task_id`, 'is required');
      claim = { taskId, generation, epoch, events: [], weightBytes: 0 };
      claims.push(claim);
      byTask.set(taskId, claim);
    }
    const saying = readSaying(message.event);
    claim.events.push({ seq, saying });
    claim.weightBytes += weightOf(saying);
  }
  return claims;
}

export function readSaying(event: EventMessage['event']): WorkerSaying {
  switch (event.case) {
    case 'accepted':
      return ACCEPTED;
    case 'started':
      return STARTED;
    case undefined:
      return {
        kind: 'malformed',
        refusal: refuse('UNSUPPORTED', 'this kind of event is not known, or none was given'),
      };
    default:
      try {
        return readContent(event);
      } catch (error) {
        if (error instanceof RefusalError) return { kind: 'malformed', refusal: error.refusal };
        throw error;
      }
  }
}

type WithContent = Exclude<EventMessage['event'], { case: 'accepted' | 'started' | undefined }>;

function readContent(event: WithContent): WorkerSaying {
  switch (event.case) {
    case 'progress': {
      const { fraction, message } = event.value;
      if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
        throw malformedField('progress.fraction', 'must be a finite number from 0 to 1');
      }
      return {
        kind: 'progress',
        progress: fraction ?? null,
        message: message === '' ? null : cutText(message, MAX_PROGRESS_MESSAGE_BYTES),
      };
    }
    case 'output':
      return { kind: 'output', output: readOutput(event.value) };
    case 'blocked':
      return { kind: 'blocked', reason: cutText(event.value.reason, MAX_REASON_BYTES) };
    case 'checkpoint':
      return {
        kind: 'checkpoint',
        checkpointJson: requiredJson('checkpoint.checkpoint_json', event.value.checkpointJson, MAX_CHECKPOINT_BYTES),
      };
    case 'completed': {
      const { resultJson, resultRef, detail } = event.value;
      const result = optionalJson('completed.result_json', resultJson);
      return { kind: 'completed', resultJson: result, ending: readEnding('completed', null, detail, resultRef) };
    }
    case 'failed': {
      const { error, detail, retryAfter } = event.value;
      const retryAfterMs =
        retryAfter === undefined ? null : durationMsWithin('failed.retry_after', retryAfter, 0, MAX_DURATION_MS);
      return {
        kind: 'failed',
        ending: failedEnding(readError('failed.error', error), readEnding('failed', null, detail, '')),
        retryAfterMs,
      };
    }
    case 'cancelled':
      return {
        kind: 'cancelled',
        ending: readEnding('cancelled', null, event.value.detail, ''),
        reason: optionalReason(event.value.reason),
      };
    case 'timedOut':
      return { kind: 'timed_out', ending: readTimeoutEnding('timed_out', event.value.error, event.value.detail) };
    case 'suspended':
      return { kind: 'suspended', reason: optionalReason(event.value.reason) };
  }
}

function readOutput({ content }: Output): OutputData {
  switch (content.case) {
    case 'outputJson':
      return {
        outputJson: requiredJson('output.output_json', content.value),
        binaryBase64: null,
        contentType: null,
        truncated: false,
      };
    case 'binary': {
      const { data, contentType } = content.value;
      if (data.length > MAX_JSON_VALUE_BYTES) {
        throw malformedField('output.binary.data', `must not be longer than ${MAX_JSON_VALUE_BYTES} bytes`);
      }
      if (contentType === '') throw malformedField('output.binary.content_type', 'is required');
      return {
        outputJson: null,
        binaryBase64: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
        contentType: boundedText('output.binary.content_type', contentType, MAX_CONTENT_TYPE_BYTES),
        truncated: false,
      };
    }
    case undefined:
      throw malformedField('output', 'output_json or binary is required');
  }
}

function failedEnding(error: TaskError, ending: Ending | null): Ending & { readonly error: TaskError } {
  return { ...(ending ?? NO_ENDING), error };
}

function optionalReason(reason: string): string | null {
  return reason === '' ? null : cutText(reason, MAX_REASON_BYTES);
}

function weightOf(saying: WorkerSaying): number {
  switch (saying.kind) {
    case 'output':
      return EVENT_OVERHEAD_BYTES + (saying.output.outputJson?.length ?? 0) + (saying.output.binaryBase64?.length ?? 0);
    case 'completed':
      return EVENT_OVERHEAD_BYTES + (saying.resultJson?.length ?? 0);
    case 'checkpoint':
      return EVENT_OVERHEAD_BYTES + saying.checkpointJson.length;
    case 'failed':
      return (
        EVENT_OVERHEAD_BYTES + (saying.ending.errorDetail?.length ?? 0) + (saying.ending.error.detailsJson?.length ?? 0)
      );
    case 'progress':
      return EVENT_OVERHEAD_BYTES + (saying.message?.length ?? 0);
    case 'accepted':
    case 'started':
    case 'blocked':
    case 'cancelled':
    case 'timed_out':
    case 'suspended':
    case 'malformed':
      return EVENT_OVERHEAD_BYTES;
  }
}
