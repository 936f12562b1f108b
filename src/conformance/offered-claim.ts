/**
 * A claim that the kit gives to the worker under test.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ExecutionTarget } from '../gen/reeve/v1/task_pb.js';
import type { ClaimSchema } from '../gen/reeve/v1/worker_service_pb.js';

export interface OfferedClaim {
  readonly taskId: string;
  readonly epoch: bigint;
  readonly generation: number;
  readonly cancellationToken: string;
  readonly message: MessageInitShape<typeof ClaimSchema>;
}

/** By which a worker that mixes up generation, attempt and epoch is found out: no two of them are the same. */
const FIRST_EPOCH = 4n;
const GENERATION = 2;
const ATTEMPT = 3;

let made = 0;

export function claimOf(kind: string, args: object, deadline?: Date): OfferedClaim {
  made += 1;
  const taskId = `task-${made}`;
  const epoch = FIRST_EPOCH;
  const cancellationToken = `cancel-${taskId}-${epoch}`;
  const message = {
    taskId,
    epoch,
    generation: GENERATION,
    generationId: `generation-of-${taskId}`,
    attempt: ATTEMPT,
    maxAttempts: 5,
    actionKind: kind,
    argsJson: JSON.stringify(args),
    cancellationToken,
    leaseToken: `lease-${taskId}-${epoch}`,
    queue: 'default',
    namespace: 'default',
    executionTarget: ExecutionTarget.HOST,
    ...(deadline !== undefined && { deadline: timestampFromDate(deadline) }),
  };
  return { taskId, epoch, generation: GENERATION, cancellationToken, message };
}

/** The same task, claimed once more after the claim was lost. */
export function claimedAgain(claim: OfferedClaim): OfferedClaim {
  const epoch = claim.epoch + 1n;
  const { message, taskId } = claim;
  const cancellationToken = `cancel-${taskId}-${epoch}`;
  const again = { ...message, epoch, cancellationToken, leaseToken: `lease-${taskId}-${epoch}` };
  return { ...claim, epoch, cancellationToken, message: again };
}
