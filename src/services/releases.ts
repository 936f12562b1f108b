/**
 * Claims handed back by a draining worker (lifecycle.md section 3, Release). Their end is told by LeasesLost: by the
 * dispatcher once it is committed, from here when the claim is the worker's no longer. Where a claim could not be taken
 * back the whole frame is rejected; what of it was taken back is safe to say again.
 */
import type { WorkSession } from '../dispatcher/work-session.js';
import type { LeaseLoss } from '../dispatcher/work-sink.js';
import type { ReleasedClaim } from '../gen/reeve/v1/worker_service_pb.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import { MAX_CHECKPOINT_BYTES } from '../wire/frame-limits.js';
import { optionalJson } from '../wire/json-values.js';
import { RefusalError } from '../wire/refusal-error.js';
import { readEpoch } from '../wire/whole-numbers.js';
import { firstRefusal } from './cancel-receipts.js';
import type { Speaker } from './work-stream.js';

/** Resolves with what the frame is rejected with, if at all. Throws MALFORMED or INVALID_TRANSITION before any is applied. */
export function applyRelease(
  speaker: Speaker,
  session: WorkSession,
  claims: readonly ReleasedClaim[],
  onLost: (losses: readonly LeaseLoss[]) => void,
): Promise<Refusal | null> {
  if (!session.draining) {
    throw new RefusalError(refuse('INVALID_TRANSITION', 'only a draining session hands claims back; say Drain first'));
  }
  const { authority, sessionId, attachment, cause } = speaker;
  const read = claims.map(({ taskId, generation, epoch, checkpointJson }, index) => ({
    taskId,
    generation,
    epoch: readEpoch('claims[].epoch', epoch, index),
    checkpointJson: optionalJson(`claims[${index}].checkpoint_json`, checkpointJson, MAX_CHECKPOINT_BYTES),
  }));
  return firstRefusal(
    read.map(async ({ taskId, generation, epoch, checkpointJson }) => {
      const answer = await authority.apply({
        taskId,
        intent: { kind: 'release', lease: { epoch, sessionId }, checkpointJson, cause },
        session: { sessionId, attachment, needs: 'not_gone' },
      });
      if (answer.kind !== 'refused') return null;
      if (answer.refusal.reason !== 'LEASE_LOST') return answer.refusal;
      onLost([{ taskId, generation, epoch, cause: 'superseded' }]);
      return null;
    }),
  );
}
