/**
 * The work of telling one follower what became of the task that it follows (lifecycle.md section 8): an attached child
 * of its parent's fence or end, a waiter of the end it waited for. It may be repeated after a crash at any point; what
 * it does is done once, because the edge that it rests on is checked in its own write.
 */
import type { DependencyCondition } from '../kernel/admission/family-policy.js';
import { dependencyImpossible, dependencySatisfied, satisfies } from '../kernel/dependencies.js';
import { eventId } from '../kernel/event.js';
import type { Refusal } from '../kernel/refusal.js';
import type { TerminalStatus } from '../kernel/status.js';
import type { Batch } from './batch.js';
import type { RecordUnit } from './unit.js';
import type { Work } from './work.js';

export type Follow =
  | { readonly kind: 'child'; readonly taskId: string }
  | {
      readonly kind: 'waiter';
      readonly taskId: string;
      readonly upstreamId: string;
      readonly generation: number;
      readonly outcome: TerminalStatus;
      /** The number of the upstream's event that this is about. */
      readonly eventNumber: number;
      readonly condition: DependencyCondition;
      /** How many tasks it waited for when the edge was read. */
      readonly unsatisfied: number;
    };

/** `again`: not yet; what it rests on has changed, or it could not be read or written. */
export type Followed = 'done' | 'again';

export class FollowWork implements Work {
  readonly weightBytes = 256;
  readonly essential = true;
  readonly waitsForOutcome = true;

  constructor(
    private readonly follow: Follow,
    private readonly settle: (followed: Followed) => void,
  ) {}

  get taskId(): string {
    return this.follow.taskId;
  }

  judge(batch: Batch): void {
    // Finding an attached child brings it to where its parent is: there is nothing else to do for it.
    const located = batch.locate(this.taskId);
    if (located.kind === 'refused') return this.settle('again');
    const { unit } = located;
    if (this.follow.kind === 'waiter') tellWaiter(batch, unit, this.follow);
    unit.answer(this, () => this.settle('done'));
  }

  lost(): 'answered' {
    this.settle('again');
    return 'answered';
  }

  refuse(_refusal: Refusal): void {
    this.settle('again');
  }
}

function tellWaiter(batch: Batch, unit: RecordUnit, follow: Extract<Follow, { kind: 'waiter' }>): void {
  const { draft } = unit;
  const { upstreamId, generation, outcome, eventNumber, condition, unsatisfied } = follow;
  const upstream = { taskId: upstreamId, causation: eventId(upstreamId, eventNumber) };
  // Over, or nothing is open any more: its edges went with that.
  if (!draft.record.openDependencies) return;
  // An end that this very transaction commits counts only if it does.
  if (batch.unitOf(upstreamId) !== undefined) batch.read(unit, upstreamId);
  if (!satisfies(outcome, condition)) return dependencyImpossible(draft, upstream);
  if (unit.closeEdge({ upstreamId, generation })) {
    dependencySatisfied(draft, upstream, Math.max(unsatisfied - unit.closedEdges, 0));
  }
}
