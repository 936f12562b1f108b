/**
 * The work of ending a propagation: all who follow the task were told. Guarded by the store alone, since a later fact of
 * the same generation may have taken its place.
 */
import type { Refusal } from '../kernel/refusal.js';
import type { Propagation } from '../store/family-rows.js';
import type { Batch } from './batch.js';
import type { Followed } from './follow-work.js';
import type { Work } from './work.js';

export class PropagatedWork implements Work {
  readonly taskId = null;
  readonly weightBytes = 256;
  readonly essential = true;
  readonly waitsForOutcome = true;

  constructor(
    private readonly row: Propagation,
    private readonly settle: (followed: Followed) => void,
  ) {}

  judge(batch: Batch): void {
    batch.writeLinks([{ kind: 'propagated', row: this.row }]).answer(this, () => this.settle('done'));
  }

  lost(): 'answered' {
    this.settle('again');
    return 'answered';
  }

  refuse(_refusal: Refusal): void {
    this.settle('again');
  }
}
