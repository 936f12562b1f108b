/**
 * Claims handed back by a draining worker (lifecycle.md section 3, Release). Their end is told by LeasesLost: by the
 * dispatcher once it is committed, from here when the claim is the worker's no longer.
 */
import type { WorkSession } from '../dispatcher/work-session.js';
import type { LeaseLoss } from '../dispatcher/work-sink.js';
import type { ReleasedClaim } from '../gen/reeve/v1/worker_service_pb.js';
import { refuse } from '../kernel/refusal.js';
import { optionalJson } from '../wire/json-values.js';
import { RefusalError } from '../wire/refusal-error.js';
import type { Speaker } from './work-stream.js';

/** Throws MALFORMED or INVALID_TRANSITION before any is applied. */
export function applyRelease(
  speaker: Speaker,
  session: WorkSession,
  claims: readonly ReleasedClaim[],
  onLost: (losses: readonly LeaseLoss[]) => void,
): void {
  if (!session.draining) {
    throw new RefusalError(refuse('INVALID_TRANSITION', 'only a draining session hands claims back; say Drain first'));
  }
  const { authority, sessionId, attachment, cause } = speaker;
  const read = claims.map((claim, index) => ({
    taskId: claim.taskId,
    generation: claim.generation,
    epoch: Number(claim.epoch),
    checkpointJson: optionalJson(`claims[${index}].checkpoint_json`, claim.checkpointJson),
  }));
  for (const { taskId, generation, epoch, checkpointJson } of read) {
    void authority
      .apply({
        taskId,
        intent: { kind: 'release', lease: { epoch, sessionId }, checkpointJson, cause },
        session: { sessionId, attachment, needs: 'not_gone' },
      })
      .then((answer) => {
        if (answer.kind !== 'refused' || answer.refusal.reason !== 'LEASE_LOST') return;
        onLost([{ taskId, generation, epoch, cause: 'superseded' }]);
      });
  }
}
