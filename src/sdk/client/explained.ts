/**
 * Why a task is where it is, as users see it, and its reading from the wire.
 */
import type { ExplainResponse } from '../../gen/reeve/v1/task_service_pb.js';
import { toDate } from '../transport/time.js';
import { requireTask } from './submitted.js';
import type { Task } from './task.js';
import { readTask } from './task-codec.js';
import { type BlockerWord, blockerWords, type TimerWord, timerWords } from './words.js';

/** One thing in the way. */
export interface Blocker {
  readonly kind: BlockerWord | 'unknown';
  /** For people: one sentence. */
  readonly detail: string;
  /** Who; at most 20 of `holderCount`. */
  readonly holders: readonly {
    readonly taskId: string;
    readonly workerName: string;
    readonly sessionAlias: string;
  }[];
  readonly holderCount: number;
  /** When it will be out of the way by itself, where that is known. */
  readonly until: Date | undefined;
}

export interface Explained {
  readonly task: Task;
  /** The most decisive first; never empty. */
  readonly blockers: readonly Blocker[];
  /** What happens next by itself; undefined: nothing does. */
  readonly nextTimer: { readonly kind: TimerWord | 'unknown'; readonly dueTime: Date | undefined } | undefined;
}

export function readExplained(response: ExplainResponse): Explained {
  const { nextTimer } = response;
  return {
    task: readTask(requireTask(response)),
    blockers: response.blockers.map(({ kind, detail, holders, holderCount, until }) => ({
      kind: blockerWords.word(kind) ?? 'unknown',
      detail,
      holders: holders.map(({ taskId, workerName, sessionAlias }) => ({ taskId, workerName, sessionAlias })),
      holderCount,
      until: toDate(until),
    })),
    nextTimer: nextTimer && {
      kind: timerWords.word(nextTimer.kind) ?? 'unknown',
      dueTime: toDate(nextTimer.dueTime),
    },
  };
}
