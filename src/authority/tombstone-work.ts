/**
 * The work of an operator's repair of what is left of a purged task: written together with the answer that is kept under
 * its key, in the order of all other writes. It never judges: whether anything changed since is the store's to say.
 */
import type { Refusal } from '../kernel/refusal.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { OperationWrite, TombstoneRepair } from '../store/purge-rows.js';
import type { Batch } from './batch.js';
import type { Work } from './work.js';

export type TombstoneOutcome =
  | { readonly kind: 'applied' }
  /** It is not what it was: decide again on what it is now. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export class TombstoneWork implements Work {
  readonly taskId = null;
  readonly weightBytes = 4_096;

  constructor(
    private readonly repair: TombstoneRepair,
    private readonly operation: OperationWrite,
    private readonly settle: (outcome: TombstoneOutcome) => void,
  ) {}

  judge(batch: Batch): void {
    batch.keepOperation(this.operation, [this.repair]).answer(this, () => this.settle({ kind: 'applied' }));
  }

  lost(_verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'answered' {
    this.settle({ kind: 'lost' });
    return 'answered';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}
