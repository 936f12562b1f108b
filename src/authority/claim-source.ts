/**
 * Where claims come from: the dispatcher, seen from the committer. It pairs ready tasks with sessions from memory;
 * the committer judges each pairing like any other intent and commits it before anybody is told.
 */
import type { TaskRecord } from '../kernel/record.js';
import type { TaskReady } from '../store/permit-rows.js';

/** One pairing of a ready task with a session that has a free slot; its credit is already taken. */
export interface Assignment {
  readonly taskId: string;
  readonly sessionId: string;
  readonly attachment: number;
  readonly worker: string;
  readonly sessionTtlMs: number;
  /** Its place in the queue when it was picked; a task that has been put further back since is not claimed yet. */
  readonly readyOrder: number;
}

export type ClaimFailure =
  /** The task is not claimable (any more). */
  | 'stale'
  /** What is stored of the task cannot be trusted: it is not worth another look for a while. */
  | 'damaged'
  /** The task was changed by another writer; it may still be claimable. */
  | 'record'
  /** The session is not what it was. */
  | 'session'
  /** The store did not answer. */
  | 'store'
  /** The batch claims as many already as may begin with a permit of it: another try in the next one. */
  | 'crowded';

export interface ClaimSource {
  /** A task became claimable in the batch being made; it may be assigned in this very batch. */
  offer(record: TaskRecord): void;
  /** A commit has made this task claimable: it holds its permits. */
  offerReady(ready: TaskReady): void;
  /** A commit has put it back behind others: it is not claimable now. */
  withdraw(unready: TaskReady): void;
  /** The next pairing, or null when no free slot has a ready task. */
  next(): Assignment | null;
  /** The claim is committed and was published. */
  kept(assignment: Assignment): void;
  /** The pairing came to nothing: its credit goes back. */
  failed(assignment: Assignment, why: ClaimFailure): void;
  /** All of the batch was answered, or it came to nothing. */
  batchOver(): void;
}

export const NO_CLAIMS: ClaimSource = {
  offer: () => undefined,
  offerReady: () => undefined,
  withdraw: () => undefined,
  next: () => null,
  kept: () => undefined,
  failed: () => undefined,
  batchOver: () => undefined,
};
