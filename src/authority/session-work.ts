/**
 * The work of changing a session: opening, attaching, renewing, draining, ending. Guarded entirely by the store's
 * own checks, so there is nothing to judge; a guard that does not hold is the answer `false`.
 */
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { PlanVerdict, SessionWrite } from '../store/commit-plan.js';
import type { Batch } from './batch.js';
import type { Work } from './work.js';

export type SessionAnswer =
  { readonly kind: 'done' } | { readonly kind: 'lost' } | { readonly kind: 'refused'; readonly refusal: Refusal };

export class SessionWork implements Work {
  readonly taskId = null;
  readonly weightBytes = 256;
  /** Workers that live must not lose their leases because producers fill the queue. */
  readonly essential = true;
  /** A renewal that waited behind a full queue would come too late; it passes nothing that it could change. */
  readonly urgent: boolean;

  constructor(
    private readonly write: SessionWrite,
    private readonly settle: (answer: SessionAnswer) => void,
  ) {
    this.urgent = write.kind === 'renew';
  }

  judge(batch: Batch): void {
    batch.writeSession(this.write).answer(this, () => this.settle({ kind: 'done' }));
  }

  lost(_verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'answered' {
    this.settle({ kind: 'lost' });
    return 'answered';
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}

export function sessionGone(): Refusal {
  return refuse('SESSION_GONE', 'the session is not known, has expired, or this is not its secret; say Hello anew');
}

/** Whether a unit was lost because this session is not what it was: judging again cannot help what it said. */
export function lostStanding(verdict: PlanVerdict, sessionId: string | undefined): boolean {
  return verdict.kind === 'conflict' && verdict.subject === 'session' && verdict.id === sessionId;
}
