/**
 * The works of purging: taking one finished task away, on the version at which it was found old enough, and keeping
 * the answer to an operator's purge. Whether anybody still needs the task is decided here for its parent and in the
 * store for everything that is counted there; nothing is forced.
 */
import type { TaskRecord } from '../kernel/record.js';
import type { Refusal } from '../kernel/refusal.js';
import { isNeededByParent, tombstoneOf } from '../kernel/tombstone.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { OperationWrite } from '../store/purge-rows.js';
import { type Batch, isRecord } from './batch.js';
import type { Work } from './work.js';

export interface PurgeRequest {
  readonly taskId: string;
  /** The number of its last event when it was found. */
  readonly version: number;
}

export type PurgeAnswer =
  | { readonly kind: 'purged' }
  /** Something that lives needs it, or has still to hear of it. */
  | { readonly kind: 'kept' }
  /** It is not what it was when it was found: gone, going on, or changing at this moment. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export class PurgeWork implements Work {
  readonly weightBytes = 512;
  /** A purge says nothing to a caller who could repeat it with a key of its own. */
  readonly waitsForOutcome = true;

  constructor(
    private readonly request: PurgeRequest,
    private readonly settle: (answer: PurgeAnswer) => void,
  ) {}

  get taskId(): string {
    return this.request.taskId;
  }

  judge(batch: Batch): void {
    const { taskId, version } = this.request;
    const record = batch.peek(taskId);
    const tombstone = isRecord(record) && record.lastEvent === version ? tombstoneOf(record, batch.now) : null;
    if (!isRecord(record) || tombstone === null) return this.settle({ kind: 'changed' });
    const parent = parentOf(batch, record);
    if (parent === 'unreadable' || isNeededByParent(record, parent)) return this.settle({ kind: 'kept' });
    batch.purge({ taskId, version, tombstone }, parent).answer(this, () => this.settle({ kind: 'purged' }));
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'retry' | 'answered' {
    const ofRecord = verdict.kind === 'conflict' && verdict.subject === 'record';
    // Its parent has moved, gone perhaps in this very batch: that may be what it waited for.
    if (ofRecord && verdict.id !== this.taskId) return 'retry';
    // About itself nothing is gained by insisting: whoever looks for finished tasks comes again.
    this.settle({ kind: verdict.kind === 'conflict' && verdict.subject === 'family' ? 'kept' : 'changed' });
    return 'answered';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}

/** The parent of an attached child; null where there is none any more. A damaged one may yet turn out to live. */
function parentOf(batch: Batch, record: TaskRecord): TaskRecord | null | 'unreadable' {
  const link = record.admission.policy.parent;
  if (link?.attached !== true) return null;
  const parent = batch.peek(link.taskId);
  if (isRecord(parent)) return parent;
  return parent !== null && 'damaged' in parent ? 'unreadable' : null;
}

export type OperationAnswer = { readonly kind: 'kept' } | { readonly kind: 'refused'; readonly refusal: Refusal };

export class OperationWork implements Work {
  readonly taskId = null;
  readonly weightBytes: number;

  constructor(
    private readonly write: OperationWrite,
    private readonly settle: (answer: OperationAnswer) => void,
  ) {
    this.weightBytes = 512 + write.entry.answerJson.length;
  }

  judge(batch: Batch): void {
    batch.keepOperation(this.write).answer(this, () => this.settle({ kind: 'kept' }));
  }

  lost(): 'retry' {
    return 'retry';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}
