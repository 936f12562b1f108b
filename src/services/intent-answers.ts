/**
 * What became of an intent, in the terms that Transition, Resume and Cancel share: which fact, where it stands, and
 * the task now. A refusal is thrown, a conflict is an answer, and a replay is the first answer beside the task of now.
 */
import type { Authority } from '../authority/authority.js';
import type { IntentAnswer, Remembered } from '../authority/intent-work.js';
import { Conflict } from '../gen/reeve/v1/task_service_pb.js';
import { type TaskEvent, transitionId } from '../kernel/event.js';
import type { TaskRecord } from '../kernel/record.js';
import { refuse } from '../kernel/refusal.js';
import { TASK_STATUSES, type TaskStatus } from '../kernel/status.js';
import { eventRefMessage } from '../wire/event-codec.js';
import { RefusalError } from '../wire/refusal-error.js';
import { valueOf } from './task-views.js';

/** A fact, by its names on the wire. */
export interface FactFields {
  readonly transitionId: string;
  readonly event: ReturnType<typeof eventRefMessage>;
}

export interface IntentResult {
  readonly kind: 'applied' | 'unchanged' | 'conflict';
  readonly replayed: boolean;
  readonly conflict: Conflict;
  readonly previousStatus: TaskStatus;
  readonly currentStatus: TaskStatus;
  readonly record: TaskRecord;
  /** The fact that answers it; null when there is none. */
  readonly fact: FactFields | null;
}

const CONFLICTS = {
  FROM_STATUS: Conflict.FROM_STATUS,
  REVISION: Conflict.REVISION,
  LEASE: Conflict.LEASE,
} as const;

export async function resultOf(authority: Authority, answer: IntentAnswer): Promise<IntentResult> {
  switch (answer.kind) {
    case 'refused':
      throw new RefusalError(answer.refusal);
    case 'conflict': {
      const { record } = answer;
      return { ...standing(record), kind: 'conflict', conflict: CONFLICTS[answer.guard] };
    }
    case 'unchanged': {
      const { record } = answer;
      return { ...standing(record), kind: 'unchanged', fact: await pendingCancel(authority, record) };
    }
    case 'applied': {
      const { before, after, events, firstSequence } = answer;
      return {
        ...standing(after),
        kind: 'applied',
        previousStatus: before.status,
        fact: lastFact(after.admission.taskId, events, firstSequence) ?? (await pendingCancel(authority, after)),
      };
    }
    case 'replayed': {
      const { remembered, record } = answer;
      if (remembered.kind === 'refused') throw new RefusalError(rememberedRefusal(remembered, record));
      return {
        ...standing(record),
        kind: remembered.kind,
        replayed: true,
        previousStatus: statusOf(remembered.previousStatus),
        currentStatus: statusOf(remembered.status),
        fact: await knownFact(authority, record, remembered.revision, remembered.eventNumber),
      };
    }
  }
}

function standing(record: TaskRecord): IntentResult {
  return {
    kind: 'unchanged',
    replayed: false,
    conflict: Conflict.NONE,
    previousStatus: record.status,
    currentStatus: record.status,
    record,
    fact: null,
  };
}

/** The last fact of a commit: where request and settlement were one, the settlement. */
function lastFact(taskId: string, events: readonly TaskEvent[], firstSequence: number): FactFields | null {
  for (let index = events.length - 1; index >= 0; index -= 1) {
    const event = events[index];
    if (event === undefined || event.revision === null) continue;
    return {
      transitionId: transitionId(taskId, event.revision),
      event: eventRefMessage(taskId, event.number, firstSequence + index),
    };
  }
  return null;
}

/** What a later request to cancel is answered with: the request that is pending, whether or not it was hastened. */
function pendingCancel(authority: Authority, record: TaskRecord): Promise<FactFields | null> {
  return knownFact(authority, record, record.cancellation?.revision, record.cancellation?.eventNumber);
}

/** A fact of the past: its sequence is in the history. */
export async function knownFact(
  authority: Authority,
  record: TaskRecord,
  revision: number | null | undefined,
  eventNumber: number | null | undefined,
): Promise<FactFields | null> {
  if (typeof revision !== 'number' || typeof eventNumber !== 'number') return null;
  const { taskId } = record.admission;
  const stored = valueOf(await authority.reads.event(taskId, eventNumber));
  return {
    transitionId: transitionId(taskId, revision),
    event: eventRefMessage(taskId, eventNumber, stored?.sequence ?? 0),
  };
}

/** The one refusal that a key remembers: the generation was over when it was asked (Cancel's ALREADY_TERMINAL). */
function rememberedRefusal(remembered: Remembered, record: TaskRecord): ReturnType<typeof refuse> {
  const message = `this generation ended as ${remembered.status}; Resume starts the next`;
  return refuse('TERMINAL_GENERATION', message, {
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
