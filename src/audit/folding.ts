/**
 * The fold of a history as it is read, and its comparison with the record (quality.md, invariant 3).
 */
import type { TaskEvent } from '../kernel/event.js';
import { applyEvent, beginRecord } from '../kernel/fold.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import type { EventCheck } from './event-check.js';

export class Folding implements EventCheck {
  private record: TaskRecord | null = null;
  private broken: string | null = null;

  constructor(private readonly admission: Admission) {}

  /** What the history comes to; null when it comes to nothing, or cannot be told. */
  get folded(): TaskRecord | null {
    return this.broken === null ? this.record : null;
  }

  /** Why there is no fold. */
  get problem(): string | null {
    return this.broken;
  }

  see(event: TaskEvent): void {
    if (this.broken !== null) return;
    try {
      this.record = this.record === null ? beginRecord(this.admission, event) : applyEvent(this.record, event);
    } catch (error) {
      // Folding is total over histories that the kernel made; this one it did not make.
      this.broken = error instanceof Error ? error.message : String(error);
    }
  }

  /** The history goes on from this event, which says what it had come to. */
  begin(event: TaskEvent): void {
    this.broken = null;
    this.record = null;
    this.see(event);
  }

  lost(): void {
    this.broken ??= 'part of the history cannot be read';
  }

  restart(_event: TaskEvent, _sequence: number, record: TaskRecord): void {
    this.record = record;
  }
}

/** The names of the fields in which two records of one task differ. */
export function differingFields(left: TaskRecord, right: TaskRecord): readonly string[] {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]) as Set<keyof TaskRecord>;
  names.delete('admission');
  return [...names].filter((name) => left[name] !== right[name] && textOf(left[name]) !== textOf(right[name]));
}

/** Members in one order, since a tampered text may have them in any. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  );
}
