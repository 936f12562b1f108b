/**
 * What became of an intent, as an embedding program is told: whether it stands, which fact says so, and the task now.
 * A refusal is thrown as RefusalError; a guard that does not hold is an answer.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer, Remembered } from '../authority/intent-work.js';
import { type TaskEvent, eventId, transitionId } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import { refuse } from '../kernel/refusal.js';
import { TASK_STATUSES, type TaskStatus } from '../kernel/status.js';
import type { Guard } from '../kernel/verdict.js';
import { valueOf } from '../services/value-of.js';
import { RefusalError } from '../wire/refusal-error.js';
import { type Task, taskOf } from './task.js';

/** A committed lifecycle change, by its names. */
export interface Fact {
  readonly transitionId: string;
  readonly eventId: string;
  readonly eventNumber: number;
  /** Position in the store, in commit order. */
  readonly sequence: number;
  /** The task's revision after it. */
  readonly revision: number;
}

export interface Transitioned {
  /** What was asked for stands committed: by this call, by the same key before, or by an earlier request. */
  readonly applied: boolean;
  /** The guard that did not hold, and what was found instead; null: all held. */
  readonly conflict: { readonly guard: Guard; readonly observed: string } | null;
  /** The answer to the same key before; `task` is as it is now. */
  readonly replayed: boolean;
  readonly previousStatus: TaskStatus;
  readonly currentStatus: TaskStatus;
  readonly task: Task;
  /** Null where nothing was committed for it. */
  readonly fact: Fact | null;
}

export async function transitionedOf(authority: Authority, answer: IntentAnswer): Promise<Transitioned> {
  switch (answer.kind) {
    case 'refused':
      throw new RefusalError(answer.refusal);
    case 'conflict': {
      const { guard, observed } = answer;
      return { ...standing(answer.record), applied: false, conflict: { guard, observed } };
    }
    case 'unchanged': {
      const { record } = answer;
      const { cancellation } = record;
      return { ...standing(record), fact: await factOf(authority, record, cancellation) };
    }
    case 'applied': {
      const { before, after, events, firstSequence } = answer;
      const fact = lastFact(after.admission.taskId, events, firstSequence);
      return { ...standing(after), previousStatus: before.status, fact };
    }
    case 'replayed': {
      const { remembered, record } = answer;
      if (remembered.kind === 'refused') throw new RefusalError(rememberedRefusal(remembered, record));
      return {
        ...standing(record),
        replayed: true,
        previousStatus: statusOf(remembered.previousStatus),
        currentStatus: statusOf(remembered.status),
        fact: await factOf(authority, record, remembered),
      };
    }
  }
}

function standing(record: TaskRecord): Transitioned {
  const { status } = record;
  return {
    applied: true,
    conflict: null,
    replayed: false,
    previousStatus: status,
    currentStatus: status,
    task: taskOf(record),
    fact: null,
  };
}

/** Where request and settlement were one commit: the settlement. */
function lastFact(taskId: string, events: readonly TaskEvent[], firstSequence: number): Fact | null {
  const index = events.findLastIndex(({ revision }) => revision !== null);
  const event = events[index];
  if (event === undefined || event.revision === null) return null;
  return named(taskId, event.revision, event.number, firstSequence + index);
}

/** A fact of the past: its place in the store is in the history. */
async function factOf(
  authority: Authority,
  { admission: { taskId } }: TaskRecord,
  known: { readonly revision: number | null; readonly eventNumber: number | null } | null,
): Promise<Fact | null> {
  if (known === null || known.revision === null || known.eventNumber === null) return null;
  const stored = valueOf(await authority.reads.event(taskId, known.eventNumber));
  return named(taskId, known.revision, known.eventNumber, stored?.sequence ?? 0);
}

export function named(taskId: string, revision: number, eventNumber: number, sequence: number): Fact {
  return {
    transitionId: transitionId(taskId, revision),
    eventId: eventId(taskId, eventNumber),
    eventNumber,
    sequence,
    revision,
  };
}

/** The one refusal that a key remembers: the generation was over when it was asked. */
function rememberedRefusal(remembered: Remembered, record: TaskRecord): ReturnType<typeof refuse> {
  return refuse('TERMINAL_GENERATION', `this generation ended as ${remembered.status}; Resume starts the next`, {
    task_id: record.admission.taskId,
    status: remembered.status,
    generation: String(remembered.generation),
  });
}

function statusOf(stored: string): TaskStatus {
  const status = TASK_STATUSES.find((known) => known === stored);
  if (status === undefined) throw new Error('the ledger holds an unknown status');
  return status;
}
