/**
 * The AEP table and the projection of a generation onto it (AEP, lifecycle.md section 2).
 * A worker's own words are judged against the table attempt by attempt; the projection runs over the whole
 * generation and must stay a legal path of the same table whatever retries, losses and suspensions happen.
 */

export const AEP_STATES = [
  'submitted',
  'accepted',
  'started',
  'progress',
  'output',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'timed_out',
] as const;

export type AepState = (typeof AEP_STATES)[number];

const FAILURES: readonly AepState[] = ['failed', 'cancelled', 'timed_out'];

/** For each state the states that may follow it. Terminal states have none. */
export const AEP_TABLE: Readonly<Record<AepState, readonly AepState[]>> = {
  submitted: ['accepted', ...FAILURES],
  accepted: ['started', ...FAILURES],
  started: ['progress', 'output', 'blocked', 'completed', ...FAILURES],
  blocked: ['started', 'progress', ...FAILURES],
  progress: ['progress', 'output', 'blocked', 'completed', ...FAILURES],
  output: ['progress', 'output', 'blocked', 'completed', ...FAILURES],
  completed: [],
  failed: [],
  cancelled: [],
  timed_out: [],
};

/** Whether the table has the row `from → to`. */
export function isLegalAep(from: AepState, to: AepState): boolean {
  return AEP_TABLE[from].includes(to);
}

/** The stream states that must come first so that `completed` becomes legal after `from`, in order. */
export function statesMissingBeforeCompletion(from: AepState): readonly AepState[] {
  switch (from) {
    case 'submitted':
      return ['accepted', 'started'];
    case 'accepted':
    case 'blocked':
      return ['started'];
    case 'started':
    case 'progress':
    case 'output':
    case 'completed':
    case 'failed':
    case 'cancelled':
    case 'timed_out':
      return [];
  }
}

/**
 * The projection after an event that would move it to `next`: the new state, or null when the event is not
 * projected (a second `accepted`, a block of what is blocked already or never started).
 */
export function project(current: AepState, next: AepState): AepState | null {
  return isLegalAep(current, next) ? next : null;
}
