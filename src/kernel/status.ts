/**
 * Status: the ten stored states of a generation, and the two coarser views of it (lifecycle.md section 2).
 * Owns the vocabulary only; which change is legal is the edge table's subject.
 */

export const TASK_STATUSES = [
  'queued',
  'waiting_dependency',
  'running',
  'retry_wait',
  'suspended',
  'completed',
  'failed',
  'timed_out',
  'cancelled',
  'skipped',
] as const;

export type TaskStatus = (typeof TASK_STATUSES)[number];

export type TerminalStatus = 'completed' | 'failed' | 'timed_out' | 'cancelled' | 'skipped';

/** What a settlement may end in. `skipped` is never settled: it is a policy decision before the start. */
export type SettledStatus = Exclude<TerminalStatus, 'skipped'>;

export type Lifecycle = 'registered' | 'active' | 'suspended' | 'terminal';

export type Outcome = 'completed' | 'failed' | 'timed_out' | 'cancelled';

/** True when the generation is over; nothing but a new generation follows. */
export function isTerminal(status: TaskStatus): status is TerminalStatus {
  switch (status) {
    case 'completed':
    case 'failed':
    case 'timed_out':
    case 'cancelled':
    case 'skipped':
      return true;
    case 'queued':
    case 'waiting_dependency':
    case 'running':
    case 'retry_wait':
    case 'suspended':
      return false;
  }
}

/** The broad view: a generation that was never claimed is `registered`, afterwards it is `active` until it ends. */
export function lifecycleOf(status: TaskStatus, everClaimed: boolean): Lifecycle {
  switch (status) {
    case 'queued':
    case 'waiting_dependency':
      return everClaimed ? 'active' : 'registered';
    case 'running':
    case 'retry_wait':
      return 'active';
    case 'suspended':
      return 'suspended';
    case 'completed':
    case 'failed':
    case 'timed_out':
    case 'cancelled':
    case 'skipped':
      return 'terminal';
  }
}

/** The terminal outcome in the four-valued view; a skipped task counts as cancelled. */
export function outcomeOf(status: TaskStatus): Outcome | null {
  if (!isTerminal(status)) return null;
  return status === 'skipped' ? 'cancelled' : status;
}
