/**
 * The work of claiming: a pairing of the dispatcher, judged by the kernel and checked against the session in its
 * own write. What the worker is sent comes from the commit, not from here.
 */
import type { Cause } from '../kernel/cause.js';
import { judge } from '../kernel/decide.js';
import { readyOrder } from '../kernel/placement.js';
import type { Refusal } from '../kernel/refusal.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { Batch } from './batch.js';
import type { Assignment, ClaimSource } from './claim-source.js';
import type { PermitRooms } from './permit-rooms.js';
import { lostStanding } from './session-work.js';
import type { Work } from './work.js';

export class ClaimWork implements Work {
  readonly weightBytes = 0;
  readonly waitsForOutcome = true;

  constructor(
    private readonly assignment: Assignment,
    private readonly source: ClaimSource,
    private readonly acceptTimeoutMs: number,
    private readonly rooms: PermitRooms,
    /** A task that was thought to be ready waits for a permit, or its record is damaged. */
    private readonly onMisplaced: (taskId: string, why: 'waits' | 'damaged') => void,
  ) {}

  get taskId(): string {
    return this.assignment.taskId;
  }

  judge(batch: Batch): void {
    const { assignment, source } = this;
    const located = batch.locate(assignment.taskId);
    if (located.kind === 'refused') {
      const damaged = located.refusal.reason === 'RECORD_DAMAGED';
      if (damaged) this.onMisplaced(assignment.taskId, 'damaged');
      return source.failed(assignment, damaged ? 'damaged' : 'stale');
    }
    const { unit } = located;
    const order = readyOrder(unit.draft.record);
    if (order === null || order > assignment.readyOrder) return source.failed(assignment, 'stale');
    const needs = batch.rules.permitsOf(unit.draft.record.admission);
    if (!this.rooms.has(needs)) return source.failed(assignment, 'crowded');
    const { sessionId, attachment, worker, sessionTtlMs } = assignment;
    const verdict = judge(unit.draft, {
      kind: 'claim',
      sessionId,
      worker,
      sessionTtlMs,
      acceptTimeoutMs: this.acceptTimeoutMs,
      cause: claimCause(worker),
    });
    if (verdict.kind !== 'applied') return source.failed(assignment, 'stale');
    this.rooms.take(needs);
    unit.reads({ sessionId, attachment, needs: 'live' });
    unit.answer(this, () => source.kept(assignment));
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'answered' {
    // A lost pairing is not judged again: the dispatcher pairs afresh with what is true by then.
    const { assignment, source } = this;
    const waiting = verdict.kind === 'conflict' && verdict.subject === 'permit';
    if (waiting) this.onMisplaced(assignment.taskId, 'waits');
    if (waiting || verdict.kind === 'duplicate' || verdict.kind === 'task_id_taken') source.failed(assignment, 'stale');
    else source.failed(assignment, lostStanding(verdict, assignment.sessionId) ? 'session' : 'record');
    return 'answered';
  }

  refuse({ reason }: Refusal): void {
    this.source.failed(this.assignment, reason === 'RECORD_DAMAGED' ? 'damaged' : 'store');
  }
}

const causes = new Map<string, Cause>();
const MAX_CACHED_CAUSES = 10_000;

/** One cause object per worker name: a claim is the most frequent fact there is. */
function claimCause(worker: string): Cause {
  let cause = causes.get(worker);
  if (cause === undefined) {
    if (causes.size >= MAX_CACHED_CAUSES) causes.clear();
    cause = {
      actor: { type: 'worker', id: worker },
      principal: 'reeve',
      source: 'authority',
      reason: null,
      causation: null,
      authoritativeAt: null,
    };
    causes.set(worker, cause);
  }
  return cause;
}
