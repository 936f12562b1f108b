/**
 * The task record: an immutable admission document and the state that folding the history over it gives.
 * Nothing here is written except by `applyEvent` in fold.ts. The record stays small whatever workers send:
 * results, checkpoints and resume inputs are kept in the history and named by event number.
 */
import type { AepState } from './aep.js';
import type { Application } from './admission/application.js';
import type { TaskPolicy } from './admission/policy.js';
import type { Actor, Reason, Source } from './cause.js';
import type { TaskStatus } from './status.js';

/** What was admitted, once and for ever. */
export interface Admission {
  readonly taskId: string;
  readonly namespace: string;
  readonly queue: string;
  readonly idempotencyKey: string;
  readonly application: Application;
  /** `sha256:<hex>` over the canonical application. */
  readonly applicationHash: string;
  readonly policy: TaskPolicy;
  readonly source: Source;
  readonly scheduleId: string | null;
  readonly actor: Actor;
  readonly principal: string;
  /** W3C trace context of the caller, handed on with every claim. */
  readonly traceContext: Readonly<Record<string, string>>;
  /** Epoch ms. */
  readonly createdAt: number;
}

/** The right of a session to run its claim; it lives exactly as long as that session (section 7). */
export interface Lease {
  readonly sessionId: string;
  readonly worker: string;
  /** The session's time to live when it claimed, in ms: how long its silence is excused after a quiet period. */
  readonly sessionTtlMs: number;
  readonly epoch: number;
  readonly claimedAt: number;
  /** Epoch ms by which the worker must have accepted. */
  readonly acceptBy: number;
  readonly acceptedAt: number | null;
  /** Epoch ms of the latest word of the worker on this attempt; the no-progress time-out counts from it. */
  readonly lastWordAt: number;
  /** This attempt's own state in the AEP table; each attempt begins at `submitted`. */
  readonly attemptState: AepState;
  /** The highest worker event number that was judged and recorded in this epoch. */
  readonly eventSeq: number;
  readonly outputs: number;
  readonly outputBytes: number;
  readonly outputTruncated: boolean;
}

/** What stays of a lease that ended. */
export interface EndedLease {
  readonly epoch: number;
  readonly sessionId: string;
  readonly eventSeq: number;
}

export interface Cancellation {
  readonly requestedAt: number;
  readonly requestedBy: Actor;
  readonly principal: string;
  readonly reason: Reason | null;
  /** The number of the request's event: what has a lower number was committed before it. */
  readonly eventNumber: number;
  /** The revision of the request fact, which names its transition. */
  readonly revision: number;
  /** Epoch ms at which the lease is revoked if the task has not settled; null: never by itself. */
  readonly graceEndsAt: number | null;
  readonly deliveredAt: number | null;
  readonly acknowledgedAt: number | null;
}

export interface TaskError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly detailsJson: string | null;
}

/** How an attempt ended, without its result (which stays in the history). */
export interface Ending {
  readonly error: TaskError | null;
  readonly exitCode: number | null;
  readonly errorDetail: string | null;
  readonly invocationId: string | null;
  readonly resultRef: string | null;
  readonly evidenceRefs: readonly string[];
}

export interface TaskRecord {
  readonly admission: Admission;
  /** The policy in force: the admitted one until it is updated. */
  readonly policy: TaskPolicy;
  readonly generation: number;
  readonly generationId: string;
  /** Epoch ms at which this generation began; its total and start-by deadlines count from here. */
  readonly generationStartedAt: number;
  readonly revision: number;
  /** The number of the last event, which is also the version of this record. */
  readonly lastEvent: number;
  readonly status: TaskStatus;
  /** Whether this generation was ever claimed. */
  readonly everClaimed: boolean;
  /** The AEP projection of this generation. */
  readonly aep: AepState;
  readonly attempt: number;
  /** Grows with every claim over the whole life of the task, never reset. */
  readonly epoch: number;
  /** Deliveries in a row that no worker accepted. */
  readonly handBacks: number;
  readonly lease: Lease | null;
  /** The lease before, so that a worker whose last answer was lost can ask again and learn that it was judged. */
  readonly endedLease: EndedLease | null;
  /** Epoch ms before which a queued task is not claimable; null once that has passed. */
  readonly notBeforeAt: number | null;
  /** Epoch ms from which it waits in its queue; kept when a claim is handed back, so that it does not lose its place. */
  readonly queuedAt: number | null;
  /** Epoch ms at which `retry_wait` ends. */
  readonly retryAt: number | null;
  readonly cancellation: Cancellation | null;
  /** False while it is not known that the last owner stopped (grace, lost owner, operator's hold). */
  readonly ownerStopped: boolean;
  readonly progress: number | null;
  readonly message: string | null;
  readonly blockedReason: string | null;
  readonly ending: Ending | null;
  /** Event numbers of payloads kept in the history. */
  readonly resultEvent: number | null;
  readonly checkpointEvent: number | null;
  readonly inputEvent: number | null;
  readonly outputTruncated: boolean;
  /** Whether an attached child was ever admitted under this generation: only then are its children looked for. */
  readonly hasChildren: boolean;
  /** Whether a task ever waited for this generation. */
  readonly hasWaiters: boolean;
  /** Whether a task that it waits for is still to end. */
  readonly openDependencies: boolean;
  readonly reason: Reason | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly updatedAt: number;
}
