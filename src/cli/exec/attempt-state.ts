/**
 * Where an attempt stands in the AEP table, by what its program has said. Judged here as well as by the service, so
 * that a program hears about its mistake at once and its later lines are not lost with it.
 */
import { type AepState, isLegalAep } from '../../kernel/aep.js';
import type { Rejected, Saying, SayingKind } from './saying.js';

export type Judgement =
  /** To be passed on. */
  | 'say'
  /** True already: the worker has said it for the program. */
  | 'said'
  | Rejected;

export class AttemptState {
  /** The worker accepts and starts before the program runs. */
  private state: AepState = 'started';
  private over = false;

  /** Whether a saying may follow; if so, it counts as said. */
  judge({ kind }: Saying): Judgement {
    if (this.over) return this.illegal(kind);
    if (kind === 'accepted' || (kind === 'started' && this.state !== 'blocked')) return 'said';
    if (kind === 'checkpoint') return 'say';
    if (kind === 'suspended') {
      this.over = true;
      return 'say';
    }
    if (!isLegalAep(this.state, kind)) return this.illegal(kind);
    this.state = kind;
    this.over = kind === 'completed' || kind === 'failed' || kind === 'cancelled' || kind === 'timed_out';
    return 'say';
  }

  private illegal(kind: SayingKind): Rejected {
    const after = this.over ? 'the end of the task' : this.state;
    return {
      code: 'ILLEGAL_EVENT',
      message: `no ${kind} may follow ${after}`,
      details: { attempt_state: this.state, event: kind },
    };
  }
}
