/**
 * What the authority does to tasks on nobody's request, or on an operator's: telling followers, mending, purging, bringing
 * permits in line. Commits like everything else and never rejects; it decides nothing itself.
 */
import type { Committer } from './committer.js';
import type { Propagation } from '../store/family-rows.js';
import type { PermitStep } from '../store/permit-rows.js';
import type { OperationWrite, TombstoneRepair } from '../store/purge-rows.js';
import { type Follow, FollowWork, type Followed } from './follow-work.js';
import { AlignWork, PermitStepWork, type PermitsDone } from './permit-work.js';
import { PropagatedWork } from './propagated-work.js';
import { type OperationAnswer, OperationWork, type PurgeAnswer, type PurgeRequest, PurgeWork } from './purge-work.js';
import { type RepairOutcome, type RepairRequest, RepairWork } from './repair-work.js';
import { type TombstoneOutcome, TombstoneWork } from './tombstone-work.js';

export class Upkeep {
  constructor(private readonly committer: Committer) {}

  /** Tells one follower of a task what became of that task (section 8). */
  follow(follow: Follow): Promise<Followed> {
    return new Promise((resolve) => this.committer.enqueue(new FollowWork(follow, resolve)));
  }

  /** All who follow were told; `again` when a later fact took its place meanwhile. */
  endPropagation(row: Propagation): Promise<Followed> {
    return new Promise((resolve) => this.committer.enqueue(new PropagatedWork(row, resolve)));
  }

  /** Mends what is stored of a task, as it was decided on what was read (`RepairRequest`). */
  repair(request: RepairRequest): Promise<RepairOutcome> {
    return new Promise((resolve) => this.committer.enqueue(new RepairWork(request, resolve)));
  }

  /** Mends what is left of a purged task, and keeps the answer of the call that asked for it. */
  repairTombstone(repair: TombstoneRepair, operation: OperationWrite): Promise<TombstoneOutcome> {
    return new Promise((resolve) => this.committer.enqueue(new TombstoneWork(repair, operation, resolve)));
  }

  /** Takes a finished task away, unless something still needs it (section 9). Never rejects. */
  purge(request: PurgeRequest): Promise<PurgeAnswer> {
    return new Promise((resolve) => this.committer.enqueue(new PurgeWork(request, resolve)));
  }

  /** Keeps the answer to an operator's call that concerns no single task; what stands under its key stays. */
  keepOperation(write: OperationWrite): Promise<OperationAnswer> {
    return new Promise((resolve) => this.committer.enqueue(new OperationWork(write, resolve)));
  }

  /** Brings what the store keeps of a task's permits to what the rules in force want of it. */
  alignPermits(taskId: string): Promise<PermitsDone> {
    return new Promise((resolve) => this.committer.enqueue(new AlignWork(taskId, resolve)));
  }

  /** One step of changing a permit; of a `limited` one, what is left is gone on with by itself. */
  changePermit(write: PermitStep): Promise<PermitsDone> {
    return new Promise((resolve) => this.committer.enqueue(new PermitStepWork(write, resolve)));
  }
}
