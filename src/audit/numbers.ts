/**
 * Numbers: of events and of facts without gaps, of sequences upwards (quality.md, invariants 2 and 5).
 */
import { type TaskEvent, isFact } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import type { EventCheck } from './event-check.js';
import type { Findings } from './findings.js';

export class Numbers implements EventCheck {
  private number = 0;
  private sequence = 0;
  /** Null: not known, since what came before can't be read. */
  private revision: number | null = 0;

  constructor(private readonly findings: Findings) {}

  see(event: TaskEvent, sequence: number): void {
    const { number, revision } = event;
    if (number !== this.number + 1) {
      this.findings.add('history.numbers', `event ${this.number + 1} was expected`, number);
    }
    if (sequence <= this.sequence) {
      this.findings.add('history.sequences', `sequence ${sequence} follows ${this.sequence}`, number);
    }
    if ((revision !== null) !== isFact(event.type)) {
      this.findings.add('history.revisions', `${event.type} with revision ${revision ?? 'none'}`, number);
    } else if (revision !== null && this.revision !== null && revision !== this.revision + 1) {
      this.findings.add('history.revisions', `revision ${revision} follows ${this.revision}`, number);
    }
    this.number = number;
    this.sequence = sequence;
    this.revision = revision ?? this.revision;
  }

  lost(lastNumber: number): void {
    this.number = lastNumber;
    this.revision = null;
  }

  restart(event: TaskEvent, sequence: number, record: TaskRecord): void {
    this.number = event.number;
    this.sequence = sequence;
    this.revision = record.revision;
  }
}
