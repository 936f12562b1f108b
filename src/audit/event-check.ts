/**
 * What a check of a history is told, event after event.
 */
import type { TaskEvent } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';

export interface EventCheck {
  see(event: TaskEvent, sequence: number): void;
  /** A commit whose last event has this number can't be read: what it said is not known. */
  lost(lastNumber: number): void;
  /** All before was accepted as lost; the history goes on from this event and the record after it. */
  restart(event: TaskEvent, sequence: number, record: TaskRecord): void;
}
