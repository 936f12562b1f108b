/**
 * A task as an embedding program sees it: a frozen snapshot of its record. Times are epoch ms of the store's clock,
 * spans ms; meanings and limits are those of proto/reeve/v1/task.proto.
 */
import type { Authority } from '../authority/authority.js';
import type { ExecutionTarget } from '../kernel/admission/application.js';
import type { TaskPolicy } from '../kernel/admission/policy.js';
import type { AepState } from '../kernel/aep.js';
import type { Actor, Reason, Source } from '../kernel/cause.js';
import type { TaskEvent } from '../kernel/event.js';
import type { Ending, TaskRecord } from '../kernel/record.js';
import { type Lifecycle, type Outcome, type TaskStatus, lifecycleOf, outcomeOf } from '../kernel/status.js';
import { nextDueAt } from '../kernel/timers.js';
import { deepFreeze } from '../lib/deep-freeze.js';
import { valueOf } from '../services/value-of.js';
import { type JsonValue, parseJson } from './json.js';

export interface Task {
  readonly id: string;
  readonly namespace: string;
  readonly queue: string;
  /** The idempotency key it was admitted under. */
  readonly key: string;
  readonly kind: string;
  /** The args in canonical form (RFC 8785). */
  readonly argsJson: string;
  readonly target: ExecutionTarget;
  readonly capabilities: readonly string[];
  readonly libraryRef: string | null;
  readonly libraryContentHash: string | null;
  readonly applicationHash: string;
  /** Its current life: an opaque id, and 1, 2, 3, … */
  readonly generation: { readonly id: string; readonly number: number };
  /** Grows by one with every fact. */
  readonly revision: number;
  /** Two snapshots with the same number are the same. */
  readonly lastEventNumber: number;
  readonly status: TaskStatus;
  readonly lifecycle: Lifecycle;
  /** Null while it is live. */
  readonly outcome: Outcome | null;
  readonly aepState: AepState;
  readonly attempt: number;
  /** The policy in force. */
  readonly policy: TaskPolicy;
  readonly lease: {
    readonly worker: string;
    readonly epoch: number;
    readonly claimedAtMs: number;
    readonly acceptedAtMs: number | null;
  } | null;
  readonly cancellation: {
    readonly requestedAtMs: number;
    readonly requestedBy: Actor;
    readonly reason: Reason | null;
    readonly graceEndsAtMs: number | null;
    readonly deliveredAtMs: number | null;
    readonly acknowledgedAtMs: number | null;
  } | null;
  /** False while it is not known that its last owner stopped. */
  readonly ownerStopped: boolean;
  /** What the running attempt last said; progress is 0 … 1. */
  readonly progress: number | null;
  readonly message: string | null;
  readonly blockedReason: string | null;
  readonly reason: Reason | null;
  /** How the last attempt ended, its result apart. */
  readonly ending: Ending | null;
  readonly outputTruncated: boolean;
  readonly admission: {
    readonly source: Source;
    readonly scheduleId: string | null;
    readonly actor: Actor;
    readonly principal: string;
  };
  /** When something about it happens next by itself; null: nothing does. */
  readonly nextDueAtMs: number | null;
  readonly createdAtMs: number;
  readonly queuedAtMs: number | null;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly updatedAtMs: number;
}

/** With what its history holds of it. */
export interface TaskDetails extends Task {
  readonly args: JsonValue;
  /** Of a completed task; undefined: none. */
  readonly result: JsonValue | undefined;
  /** The last checkpoint of an attempt. */
  readonly checkpoint: JsonValue | undefined;
  /** The input of the Resume that led to the current generation or attempt. */
  readonly resumeInput: JsonValue | undefined;
}

export function taskOf(record: TaskRecord): Task {
  return deepFreeze(fieldsOf(record));
}

/** Throws RefusalError when the history cannot be read. */
export async function detailsOf(authority: Authority, record: TaskRecord): Promise<TaskDetails> {
  const { taskId, application } = record.admission;
  const payload = async (number: number | null, pick: (data: TaskEvent['data']) => string | null) => {
    if (number === null) return undefined;
    const stored = valueOf(await authority.reads.event(taskId, number));
    return parseJson(stored === null ? null : pick(stored.event.data));
  };
  return deepFreeze({
    ...fieldsOf(record),
    args: parseJson(application.argsJson) ?? {},
    result: await payload(record.resultEvent, (data) => ('resultJson' in data ? data.resultJson : null)),
    checkpoint: await payload(record.checkpointEvent, (data) =>
      'checkpointJson' in data ? data.checkpointJson : null,
    ),
    resumeInput: await payload(record.inputEvent, (data) => ('inputJson' in data ? data.inputJson : null)),
  });
}

function fieldsOf(record: TaskRecord): Task {
  const { admission } = record;
  const { application, source, scheduleId, actor, principal } = admission;
  return {
    id: admission.taskId,
    namespace: admission.namespace,
    queue: admission.queue,
    key: admission.idempotencyKey,
    kind: application.actionKind,
    argsJson: application.argsJson,
    target: application.executionTarget,
    capabilities: application.requiredCapabilities,
    libraryRef: application.libraryRef,
    libraryContentHash: application.libraryContentHash,
    applicationHash: admission.applicationHash,
    generation: { id: record.generationId, number: record.generation },
    revision: record.revision,
    lastEventNumber: record.lastEvent,
    status: record.status,
    lifecycle: lifecycleOf(record.status, record.everClaimed),
    outcome: outcomeOf(record.status),
    aepState: record.aep,
    attempt: record.attempt,
    policy: record.policy,
    lease: leaseOf(record),
    cancellation: cancellationOf(record),
    ownerStopped: record.ownerStopped,
    progress: record.progress,
    message: record.message,
    blockedReason: record.blockedReason,
    reason: record.reason,
    ending: record.ending,
    outputTruncated: record.outputTruncated,
    admission: { source, scheduleId, actor, principal },
    nextDueAtMs: nextDueAt(record),
    createdAtMs: admission.createdAt,
    queuedAtMs: record.queuedAt,
    startedAtMs: record.startedAt,
    finishedAtMs: record.finishedAt,
    updatedAtMs: record.updatedAt,
  };
}

function leaseOf({ lease }: TaskRecord): Task['lease'] {
  if (lease === null) return null;
  const { worker, epoch, claimedAt, acceptedAt } = lease;
  return { worker, epoch, claimedAtMs: claimedAt, acceptedAtMs: acceptedAt };
}

function cancellationOf({ cancellation }: TaskRecord): Task['cancellation'] {
  if (cancellation === null) return null;
  const { requestedAt, requestedBy, reason, graceEndsAt, deliveredAt, acknowledgedAt } = cancellation;
  return {
    requestedAtMs: requestedAt,
    requestedBy,
    reason,
    graceEndsAtMs: graceEndsAt,
    deliveredAtMs: deliveredAt,
    acknowledgedAtMs: acknowledgedAt,
  };
}
