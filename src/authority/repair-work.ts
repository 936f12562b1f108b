/**
 * The work of an operator's repair (lifecycle.md section 4, step 3): the one thing that may be done to a damaged task.
 * What is to be done was decided on what was read before; here it becomes one event and one guarded write, in the order
 * of all other writes. It never judges: whether anything changed since is the store's to say.
 */
import type { Cause } from '../kernel/cause.js';
import { Draft } from '../kernel/draft.js';
import type { RepairData } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { Refusal } from '../kernel/refusal.js';
import type { LedgerEntry, PlanVerdict } from '../store/commit-plan.js';
import type { LinkWrite } from '../store/family-rows.js';
import type { Batch } from './batch.js';
import { RepairUnit } from './repair-unit.js';
import type { Work } from './work.js';

export interface RepairRequest {
  /** What the repair was decided on: `AuditedTask.fingerprint`. */
  readonly fingerprint: string;
  /** The record as it was, where that can be trusted. */
  readonly before: TaskRecord | null;
  /** The record that the task goes on from, args or not; the event comes behind it. */
  readonly base: TaskRecord;
  readonly data: RepairData;
  /** What is written beside the record in the same transaction. */
  readonly links: readonly LinkWrite[];
  readonly rederive: boolean;
  /** The counts of its permits were found to be wrong. */
  readonly recount: boolean;
  readonly cause: Cause;
  /** The key of the repair, and what a repeat of it is answered with. */
  readonly ledger: LedgerEntry;
}

export type RepairOutcome =
  | { readonly kind: 'applied'; readonly record: TaskRecord }
  /** The key was taken meanwhile. */
  | { readonly kind: 'repeated'; readonly original: LedgerEntry }
  /** The task is not what it was: decide again on what it is now. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export class RepairWork implements Work {
  /** None: a damaged record is no record to be judged on. */
  readonly taskId = null;
  readonly weightBytes = 4_096;

  constructor(
    private readonly request: RepairRequest,
    private readonly settle: (outcome: RepairOutcome) => void,
  ) {}

  judge(batch: Batch): void {
    const { base, data, cause } = this.request;
    const draft = Draft.of(base, batch.now);
    draft.append({ type: 'reeve.task.repaired', data }, { cause });
    const unit = new RepairUnit(this.request, draft);
    batch.addRepair(unit);
    unit.answer(this, () => this.settle({ kind: 'applied', record: draft.record }));
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'answered' {
    this.settle(verdict.kind === 'repeated' ? verdict : { kind: 'lost' });
    return 'answered';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}
