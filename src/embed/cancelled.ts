/**
 * What became of a cancel request: exactly one of three states, with the generation it applied to (lifecycle.md
 * section 6). That the task was over is an answer and no error.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer } from '../authority/intent-work.js';
import type { TaskRecord } from '../kernel/record.js';
import { type Fact, transitionedOf } from './fact.js';
import { type Task, taskOf } from './task.js';

export interface Cancelled {
  readonly state: 'CANCELLED' | 'CANCELLATION_REQUESTED' | 'ALREADY_TERMINAL';
  readonly generation: { readonly id: string; readonly number: number };
  /** The answer to the same key before; `task` is as it is now. */
  readonly replayed: boolean;
  readonly task: Task;
  /** Null where nothing was committed for it. */
  readonly fact: Fact | null;
}

/** Throws RefusalError. */
export async function cancelledOf(authority: Authority, answer: IntentAnswer): Promise<Cancelled> {
  const over = answer.kind === 'refused' && answer.refusal.reason === 'TERMINAL_GENERATION' ? answer.record : null;
  if (over !== null) return alreadyTerminal(over, { id: over.generationId, number: over.generation }, false);
  if (answer.kind === 'replayed' && answer.remembered.kind === 'refused') {
    const { generation, generationId } = answer.remembered;
    return alreadyTerminal(answer.record, { id: generationId, number: generation }, true);
  }
  const { currentStatus, replayed, task, fact } = await transitionedOf(authority, answer);
  const told = answer.kind === 'replayed' ? answer.remembered : null;
  return {
    state: currentStatus === 'cancelled' ? 'CANCELLED' : 'CANCELLATION_REQUESTED',
    generation: told === null ? task.generation : { id: told.generationId, number: told.generation },
    replayed,
    task,
    fact,
  };
}

function alreadyTerminal(record: TaskRecord, generation: Cancelled['generation'], replayed: boolean): Cancelled {
  return { state: 'ALREADY_TERMINAL', generation, replayed, task: taskOf(record), fact: null };
}
