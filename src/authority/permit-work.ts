/**
 * The works on permits beside what records say: bringing one task to what the configuration in force wants of it, and
 * one step of changing a permit. They may be repeated at any time; what is as it should be stays as it is.
 */
import type { Refusal } from '../kernel/refusal.js';
import type { PermitWrite } from '../store/permit-rows.js';
import type { Batch } from './batch.js';
import type { Work } from './work.js';

/** `again`: it could not be read or written. */
export type PermitsDone = 'done' | 'again';

abstract class PermitWork {
  readonly weightBytes = 256;
  readonly essential = true;
  readonly waitsForOutcome = true;

  constructor(protected readonly settle: (done: PermitsDone) => void) {}

  lost(): 'answered' {
    this.settle('again');
    return 'answered';
  }

  refuse(_refusal: Refusal): void {
    this.settle('again');
  }
}

export class AlignWork extends PermitWork implements Work {
  constructor(
    readonly taskId: string,
    settle: (done: PermitsDone) => void,
  ) {
    super(settle);
  }

  judge(batch: Batch): void {
    const unit = batch.align(this.taskId);
    if (unit === null) this.settle('again');
    else unit.answer(this, () => this.settle('done'));
  }
}

export class PermitStep extends PermitWork implements Work {
  readonly taskId = null;

  constructor(
    private readonly write: PermitWrite,
    settle: (done: PermitsDone) => void,
  ) {
    super(settle);
  }

  judge(batch: Batch): void {
    batch.writePermits([], [this.write]).answer(this, () => this.settle('done'));
  }
}
