/**
 * The intents a caller may send through Transition, as users write them, and their messages.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TransitionRequestSchema } from '../../gen/reeve/v1/task_service_pb.js';
import {
  type CompletionInput,
  type ErrorInput,
  type ExecutionDetail,
  type FailureInput,
  toCompleted,
  toFailed,
  toTimedOut,
  withDetail,
} from '../settlement.js';
import { requireJsonText } from '../transport/json.js';
import { msToDuration } from '../transport/time.js';

/** One typed intent. Which statuses allow it stands in docs/lifecycle.md. */
export type Intent =
  /** Take a queued task for one session of its own; `ttlMs` 2,000 … 3,600,000, default 30,000. */
  | { readonly type: 'claim'; readonly workerName?: string; readonly ttlMs?: number }
  | { readonly type: 'suspend' }
  | { readonly type: 'resume'; readonly newGenerationId?: string; readonly input?: unknown }
  | { readonly type: 'request_cancellation'; readonly graceMs?: number }
  | ({ readonly type: 'settle_cancellation' } & ExecutionDetail)
  | ({ readonly type: 'settle_completion' } & CompletionInput)
  | ({ readonly type: 'settle_failure' } & FailureInput)
  | ({ readonly type: 'settle_timeout'; readonly error?: ErrorInput } & ExecutionDetail)
  /** A reason is required with it. */
  | { readonly type: 'skip' };

type IntentInit = Exclude<MessageInitShape<typeof TransitionRequestSchema>['intent'], undefined>;

export function toIntent(intent: Intent): IntentInit {
  switch (intent.type) {
    case 'claim': {
      const { workerName = '', ttlMs } = intent;
      return {
        case: 'claim',
        value: { workerName, ...(ttlMs !== undefined && { ttl: msToDuration(ttlMs, 'ttlMs') }) },
      };
    }
    case 'suspend':
      return { case: 'suspend', value: {} };
    case 'resume': {
      const { newGenerationId, input } = intent;
      return {
        case: 'resume',
        value: {
          ...(newGenerationId !== undefined && { newGenerationId }),
          ...(input !== undefined && { inputJson: requireJsonText(input, 'input') }),
        },
      };
    }
    case 'request_cancellation': {
      const grace = intent.graceMs === undefined ? {} : { grace: msToDuration(intent.graceMs, 'graceMs') };
      return { case: 'requestCancellation', value: grace };
    }
    case 'settle_cancellation':
      return { case: 'settleCancellation', value: withDetail(intent) };
    case 'settle_completion':
      return { case: 'settleCompletion', value: toCompleted(intent) };
    case 'settle_failure':
      return { case: 'settleFailure', value: toFailed(intent) };
    case 'settle_timeout':
      return { case: 'settleTimeout', value: toTimedOut(intent) };
    case 'skip':
      return { case: 'skip', value: {} };
  }
}

/** The code that goes with a bare text; each is one that callers may state. */
export const TEXT_REASONS: Readonly<Record<Intent['type'], string>> = {
  claim: 'app.sdk.claim',
  suspend: 'run.suspended.operator',
  resume: 'run.resumed.operator',
  request_cancellation: 'run.cancelled.requested',
  settle_cancellation: 'run.cancelled.operator',
  settle_completion: 'run.completed.external',
  settle_failure: 'run.failed.operator',
  settle_timeout: 'run.timed_out.external',
  skip: 'run.skipped.operator',
};
