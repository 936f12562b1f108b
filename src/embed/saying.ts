/**
 * What an in-process worker says of its claim, as it writes it and as the kernel judges it. Throws RefusalError for what
 * is not well-formed: then nothing was said.
 */
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import type { WorkerSaying } from '../kernel/intent.js';
import { cutText } from '../wire/bounded-text.js';
import { MAX_CHECKPOINT_BYTES, MAX_PROGRESS_MESSAGE_BYTES, MAX_REASON_BYTES } from '../wire/frame-limits.js';
import { malformedField } from '../wire/refusal-error.js';
import { jsonText } from './json.js';
import {
  type CompletionInput,
  type ExecutionDetail,
  type FailureInput,
  type TimeoutInput,
  completionOf,
  endingOf,
  failureOf,
  timeoutOf,
} from './settlement.js';

export type Saying =
  | { readonly type: 'accepted' }
  | { readonly type: 'started' }
  /** `fraction` is 0 … 1. */
  | { readonly type: 'progress'; readonly fraction?: number; readonly message?: string }
  /** Any JSON value, at most 1 MiB as text. */
  | { readonly type: 'output'; readonly output: unknown }
  /** Any JSON value, at most 128 KiB as text; handed to the next attempt. */
  | { readonly type: 'checkpoint'; readonly checkpoint: unknown }
  | { readonly type: 'blocked'; readonly reason: string }
  | { readonly type: 'suspended'; readonly reason?: string }
  | ({ readonly type: 'completed' } & CompletionInput)
  | ({ readonly type: 'failed' } & FailureInput)
  | ({ readonly type: 'cancelled'; readonly reason?: string } & ExecutionDetail)
  | ({ readonly type: 'timed_out' } & TimeoutInput);

export function sayingOf(saying: Saying): WorkerSaying {
  switch (saying.type) {
    case 'accepted':
    case 'started':
      return { kind: saying.type };
    case 'progress': {
      const { fraction = null, message = '' } = saying;
      if (fraction !== null && !(fraction >= 0 && fraction <= 1)) {
        throw malformedField('progress.fraction', 'must be a finite number from 0 to 1');
      }
      const told = message === '' ? null : cutText(message, MAX_PROGRESS_MESSAGE_BYTES);
      return { kind: 'progress', progress: fraction, message: told };
    }
    case 'output': {
      const outputJson = required('output', saying.output);
      return { kind: 'output', output: { outputJson, binaryBase64: null, contentType: null, truncated: false } };
    }
    case 'checkpoint':
      return { kind: 'checkpoint', checkpointJson: required('checkpoint', saying.checkpoint, MAX_CHECKPOINT_BYTES) };
    case 'blocked':
      return { kind: 'blocked', reason: cutText(saying.reason, MAX_REASON_BYTES) };
    case 'suspended':
      return { kind: 'suspended', reason: reasonOf(saying.reason) };
    case 'completed':
      return { kind: 'completed', ...completionOf(saying) };
    case 'failed':
      return { kind: 'failed', ending: failureOf(saying), retryAfterMs: retryAfterOf(saying) };
    case 'cancelled':
      return { kind: 'cancelled', ending: endingOf(saying), reason: reasonOf(saying.reason) };
    case 'timed_out':
      return { kind: 'timed_out', ending: timeoutOf(saying) };
    default:
      throw malformedField('type', 'is no event of a worker');
  }
}

export function retryAfterOf({ retryAfterMs }: FailureInput): number | null {
  return retryAfterMs === undefined ? null : spanMs('retryAfterMs', retryAfterMs);
}

/** Whole ms from 0 to 10 years. */
export function spanMs(field: string, ms: number): number {
  if (Number.isInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS) return ms;
  throw malformedField(field, `must be a whole number from 0 to ${MAX_DURATION_MS}`);
}

/** About what it holds in memory while it waits, in bytes. */
export function weightOf(saying: WorkerSaying): number {
  const texts = [
    saying.kind === 'output' ? saying.output.outputJson : null,
    saying.kind === 'checkpoint' ? saying.checkpointJson : null,
    saying.kind === 'completed' ? saying.resultJson : null,
  ];
  return texts.reduce((bytes, text) => bytes + (text?.length ?? 0), SAYING_OVERHEAD_BYTES);
}

const SAYING_OVERHEAD_BYTES = 256;

function required(field: string, value: unknown, maxBytes?: number): string {
  const text = jsonText(field, value, maxBytes);
  if (text === null) throw malformedField(field, 'is required');
  return text;
}

function reasonOf(reason: string | undefined): string | null {
  return reason === undefined || reason === '' ? null : cutText(reason, MAX_REASON_BYTES);
}
