/**
 * What an audit of one task has found so far. Bounded: a task that is wrong everywhere need not be told event by event.
 */
import type { InvariantName } from './invariants.js';

export interface Finding {
  /** Empty where it is about no task that has a name; the detail then says what. */
  readonly taskId: string;
  readonly invariant: InvariantName;
  /** What was expected and what is there; never what callers or workers wrote. */
  readonly detail: string;
  /** 0 when it is about no single event. */
  readonly eventNumber: number;
  /**
   * What it is about where that is no task: the same at every look, also where another task is named with it. Not told to
   * anybody; absent where it is the task.
   */
  readonly about?: string;
}

export const MAX_FINDINGS_PER_TASK = 100;

export class Findings {
  private found: Finding[] = [];

  constructor(private readonly taskId: string) {}

  add(invariant: InvariantName, detail: string, eventNumber = 0): void {
    if (this.found.length >= MAX_FINDINGS_PER_TASK) return;
    this.found.push({ taskId: this.taskId, invariant, detail, eventNumber });
  }

  /** The history up to here was accepted as lost: what was found in it is known. */
  forgetHistory(): void {
    this.found = this.found.filter(({ invariant }) => !isOfHistory(invariant));
  }

  list(): readonly Finding[] {
    return this.found;
  }
}

/** Whether it is about the history itself, and not about what the record makes of it. */
export function isOfHistory(invariant: InvariantName): boolean {
  return invariant === 'chain.link' || (invariant.startsWith('history.') && invariant !== 'history.fold');
}

/** One that is about no task: `detail` begins with what it is about, and a colon. */
export function findingBeside(invariant: InvariantName, about: string, detail: string): Finding {
  return { taskId: '', invariant, detail: `${about}: ${detail}`, eventNumber: 0, about };
}

/** The same thing, looked at twice. */
export function sameFinding(left: Finding, right: Finding): boolean {
  const { invariant, eventNumber } = left;
  if (invariant !== right.invariant || eventNumber !== right.eventNumber || left.about !== right.about) return false;
  return left.about !== undefined || left.taskId === right.taskId;
}
