/**
 * Who waits for a unit, and what they are told once its fate is known.
 */
import type { Committed } from './publisher.js';
import type { Work } from './work.js';

export interface Answer {
  readonly work: Work;
  readonly onCommitted: (commit: Committed | null) => void;
}

export class Answers {
  answers: Answer[] = [];
  /** Where it stands among the units of its batch. */
  place = 0;

  /** The work is told once the unit is committed, or at once after the batch when there is nothing to commit. */
  answer(work: Work, onCommitted: (commit: Committed | null) => void): void {
    this.answers.push({ work, onCommitted });
  }

  /** Takes out those who do not wait for an unknown outcome; the authority's own works go on waiting for it. */
  impatient(): readonly Work[] {
    const impatient = this.answers.filter(({ work }) => work.waitsForOutcome !== true);
    this.answers = this.answers.filter(({ work }) => work.waitsForOutcome === true);
    return impatient.map(({ work }) => work);
  }
}
