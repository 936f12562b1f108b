/**
 * The stub of a purged task (task.proto, `purged`): what its tombstone says, the same in every view.
 */
import type { Tombstone } from '../kernel/tombstone.js';
import { lifecycleOf, outcomeOf } from '../kernel/status.js';
import { lifecycles, outcomes, statuses } from './enum-tables.js';
import type { TaskFields } from './task-codec.js';
import { toTimestamp } from './time-values.js';

export function purgedMessage(tombstone: Tombstone): TaskFields {
  const { status, reasonCode } = tombstone;
  const outcome = outcomeOf(status);
  return {
    taskId: tombstone.taskId,
    namespace: tombstone.namespace,
    idempotencyKey: tombstone.idempotencyKey,
    applicationHash: tombstone.applicationHash,
    generation: { id: tombstone.generationId, number: tombstone.generation },
    revision: BigInt(tombstone.revision),
    lastEventNumber: BigInt(tombstone.lastEvent),
    status: statuses.value(status),
    lifecycle: lifecycles.value(lifecycleOf(status, true)),
    ...(outcome === null ? {} : { outcome: outcomes.value(outcome) }),
    ...(reasonCode === null ? {} : { reason: { code: reasonCode } }),
    finishTime: toTimestamp(tombstone.finishedAt),
    purged: true,
  };
}
