/**
 * The works on permits beside what records say: bringing one task to what the configuration in force wants of it, taking
 * a damaged one out of its line, and one step of changing a permit. They may be repeated at any time; what is as it should
 * be stays as it is.
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

export class PermitStepWork extends PermitWork implements Work {
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

/** Tasks that one transaction moves in and out of the lines of a permit. */
export const PERMIT_MOVES_PER_STEP = 256;
/** Permits that are gone on with at once: a batch may have a step of each. */
const STEPS_AT_ONCE = 8;

/**
 * Permits of which a plan could not do all that there was to do: each is gone on with, a step per batch, until a commit
 * says that there is no more. What a failed store left undone is tried with the next batch that there is.
 */
export class UnsettledPermits {
  private readonly names = new Set<string>();
  private readonly underWay = new Set<string>();

  constructor(private readonly limitOf: (name: string) => number | null) {}

  note(names: readonly string[]): void {
    for (const name of names) this.names.add(name);
  }

  /** The steps that are to be taken now; of more permits than may be gone on with at once, the others come after them. */
  steps(): PermitStepWork[] {
    const works: PermitStepWork[] = [];
    for (const name of this.names) {
      if (this.underWay.size === STEPS_AT_ONCE) break;
      const limit = this.limitOf(name);
      if (limit === null) this.names.delete(name);
      if (limit === null || this.underWay.has(name)) continue;
      this.underWay.add(name);
      const write = { kind: 'limited', name, limit, most: PERMIT_MOVES_PER_STEP } as const;
      works.push(new PermitStepWork(write, (done) => this.taken(name, done)));
    }
    return works;
  }

  /** Told before `note` hears of the same commit what is left: a name that it names comes back. */
  private taken(name: string, done: PermitsDone): void {
    this.underWay.delete(name);
    if (done === 'done') this.names.delete(name);
  }
}
