/**
 * Events: the history of a task, and the only thing its record is made of (lifecycle.md sections 1 and 9).
 * A *fact* changes the lifecycle and takes a revision; a *stream event* only takes an event number.
 * Event and transition ids are derived from the task id and those numbers, so they need no storage.
 */
import type { TaskPolicy } from './admission/policy.js';
import type { AepState } from './aep.js';
import type { Cause } from './cause.js';
import type { PolicyField } from './policy-update.js';
import type { Ending, TaskRecord } from './record.js';
import type { TaskStatus } from './status.js';

/** Why a running generation leaves its worker for `retry_wait`. */
export type RetryCause = 'failure' | 'time_out' | 'lease_lost' | 'hand_back' | 'release';

/** How another task follows this one: as its attached child, or by waiting for its end. */
export type Follower = 'child' | 'waiter';

export type EventBody =
  | {
      readonly type: 'task.submitted';
      readonly data: { readonly generationId: string; readonly notBeforeAt: number | null };
    }
  | {
      readonly type: 'reeve.task.generation_started';
      readonly data: { readonly generationId: string; readonly inputJson: string | null };
    }
  | {
      readonly type: 'reeve.task.claimed';
      readonly data: {
        readonly sessionId: string;
        readonly worker: string;
        readonly sessionTtlMs: number;
        readonly acceptBy: number;
      };
    }
  | { readonly type: 'reeve.task.followed'; readonly data: { readonly by: Follower } }
  | { readonly type: 'reeve.task.held'; readonly data: { readonly unsatisfied: number } }
  | { readonly type: 'reeve.task.dependencies_met'; readonly data: Record<never, never> }
  | { readonly type: 'task.accepted'; readonly data: Record<never, never> }
  | { readonly type: 'task.started'; readonly data: Record<never, never> }
  | {
      readonly type: 'task.progress';
      readonly data: { readonly progress: number | null; readonly message: string | null };
    }
  | { readonly type: 'task.output'; readonly data: OutputData }
  | { readonly type: 'task.blocked'; readonly data: { readonly reason: string } }
  | { readonly type: 'reeve.task.checkpoint'; readonly data: { readonly checkpointJson: string } }
  | {
      readonly type: 'reeve.task.retry_scheduled';
      readonly data: {
        readonly retryAt: number;
        readonly cause: RetryCause;
        /** The claim never ran, or ended in a drain: the attempt does not count. */
        readonly attemptGivenBack: boolean;
        readonly ending: Ending | null;
      };
    }
  | { readonly type: 'reeve.task.requeued'; readonly data: { readonly keepsPlace: boolean } }
  | { readonly type: 'reeve.task.ready'; readonly data: Record<never, never> }
  | {
      readonly type: 'reeve.task.suspended';
      readonly data: { readonly byHolder: boolean; readonly wasRunning: boolean };
    }
  | { readonly type: 'reeve.task.resumed'; readonly data: { readonly inputJson: string | null } }
  | {
      readonly type: 'reeve.task.policy_updated';
      readonly data: {
        readonly fields: readonly PolicyField[];
        /** The whole policy from here on. */
        readonly policy: TaskPolicy;
        /** Epoch ms before which it is not claimable, as it stands after the change; null: no delay. */
        readonly notBeforeAt: number | null;
      };
    }
  | { readonly type: 'task.cancel.requested'; readonly data: { readonly graceEndsAt: number | null } }
  | { readonly type: 'reeve.task.cancel_hastened'; readonly data: { readonly graceEndsAt: number } }
  | { readonly type: 'reeve.task.cancel_delivered'; readonly data: Record<never, never> }
  | { readonly type: 'reeve.task.cancel_acknowledged'; readonly data: Record<never, never> }
  | { readonly type: 'task.completed'; readonly data: TerminalData }
  | { readonly type: 'task.failed'; readonly data: TerminalData }
  | { readonly type: 'task.timed_out'; readonly data: TerminalData }
  | { readonly type: 'task.cancelled'; readonly data: TerminalData }
  | { readonly type: 'reeve.task.skipped'; readonly data: TerminalData }
  | { readonly type: 'reeve.task.repaired'; readonly data: RepairData };

export type EventType = EventBody['type'];

export interface OutputData {
  readonly outputJson: string | null;
  /** Base64 of a binary output, with its content type. */
  readonly binaryBase64: string | null;
  readonly contentType: string | null;
  /** The payload was dropped because the attempt was over its output limits. */
  readonly truncated: boolean;
  /** What the payload measured before it was taken out of the history; absent where it is there. */
  readonly redactedBytes?: number;
}

export type RepairKind = 'rebuild_record' | 'accept_record' | 'reindex' | 'redact_payload';

/** A record without what never changes. */
export type TaskState = Omit<TaskRecord, 'admission'>;

export interface RepairData {
  readonly repair: RepairKind;
  /** The invariants that did not hold. */
  readonly mended: readonly string[];
  /** The event whose payload was taken out. */
  readonly redacted: number | null;
  /** The history goes on from here, whatever it was before. */
  readonly accepted: TaskState | null;
}

export interface TerminalData {
  readonly resultJson: string | null;
  readonly ending: Ending | null;
  /** Whether the owner itself ended its claim, or none was held (`owner_stopped` CONFIRMED). */
  readonly ownerStopped: boolean;
}

export type TaskEvent = EventBody & {
  /** 1, 2, 3 … without gaps, per task. */
  readonly number: number;
  readonly generation: number;
  /** Facts only: 1, 2, 3 … per task. */
  readonly revision: number | null;
  /** Facts only. */
  readonly from: TaskStatus | null;
  readonly to: TaskStatus | null;
  /** The projection after this event; null when the event is not part of it. */
  readonly aep: AepState | null;
  /** The claim this belongs to, if any. */
  readonly epoch: number | null;
  /** The worker's own number of the event that caused this. */
  readonly workerSeq: number | null;
  /** Supplied by the authority because a settlement came earlier than the AEP table allows. */
  readonly inferred: boolean;
  /** Epoch ms, the store's clock. */
  readonly at: number;
  readonly cause: Cause;
};

interface EventMeaning {
  /** Facts change the lifecycle and take a revision. */
  readonly fact: boolean;
  readonly says: string;
}

/** Every event type there is, and what it says. */
export const EVENT_CATALOGUE: Readonly<Record<EventType, EventMeaning>> = {
  'task.submitted': { fact: true, says: 'The task was admitted; its first generation begins.' },
  'reeve.task.generation_started': { fact: true, says: 'A new generation begins, with new input if there is any.' },
  'reeve.task.followed': {
    fact: false,
    says: 'The first attached child, or the first task that waits for this one, was admitted.',
  },
  'reeve.task.held': { fact: true, says: 'It waits for so many other tasks to end.' },
  'reeve.task.dependencies_met': { fact: true, says: 'Nothing it waited for is open; a waiting task is queued.' },
  'reeve.task.claimed': { fact: true, says: 'A session was given the task; epoch and attempt grew.' },
  'task.accepted': { fact: false, says: 'The worker confirmed the claim.' },
  'task.started': { fact: false, says: 'Work began, or went on after a block.' },
  'task.progress': { fact: false, says: 'How far it is, from 0 to 1, and a message.' },
  'task.output': { fact: false, says: 'Partial output, as JSON text or bytes.' },
  'task.blocked': { fact: false, says: 'The worker waits for something outside.' },
  'reeve.task.checkpoint': { fact: false, says: 'What the next attempt is handed to go on from.' },
  'reeve.task.retry_scheduled': {
    fact: true,
    says: 'The attempt ended without an outcome; another follows at the time given.',
  },
  'reeve.task.requeued': { fact: true, says: 'The wait is over; the task is claimable again.' },
  'reeve.task.ready': { fact: false, says: 'Its delayed start has come; the task is claimable.' },
  'reeve.task.suspended': { fact: true, says: 'Held, by its worker or by an operator.' },
  'reeve.task.resumed': { fact: true, says: 'The hold ended; the same generation is queued again.' },
  'reeve.task.policy_updated': { fact: true, says: 'How it is treated was changed; its timers and its place follow.' },
  'task.cancel.requested': { fact: true, says: 'Somebody asked for its end; new work is fenced from here.' },
  'reeve.task.cancel_hastened': { fact: false, says: 'A later request set an earlier end to the grace.' },
  'reeve.task.cancel_delivered': { fact: false, says: 'The worker confirmed that the cancel request reached it.' },
  'reeve.task.cancel_acknowledged': { fact: false, says: 'The handler said that it is stopping.' },
  'task.completed': { fact: true, says: 'The generation ended well.' },
  'task.failed': { fact: true, says: 'The generation ended with an error.' },
  'task.timed_out': { fact: true, says: 'The generation ended because its time was over.' },
  'task.cancelled': { fact: true, says: 'The generation ended because it was cancelled.' },
  'reeve.task.skipped': { fact: true, says: 'The generation will never start, by policy.' },
  'reeve.task.repaired': { fact: false, says: 'An operator mended what is stored of the task, or took a payload out.' },
};

/** Facts take a revision; stream events (and `reeve.task.ready`) do not. */
export function isFact(type: EventType): boolean {
  return EVENT_CATALOGUE[type].fact;
}

export function eventId(taskId: string, eventNumber: number): string {
  return `${taskId}~e${String(eventNumber)}`;
}

export function transitionId(taskId: string, revision: number): string {
  return `${taskId}~r${String(revision)}`;
}

/** The event number inside an event id of this task, or null when the id is another's or malformed. */
export function eventNumberOf(taskId: string, id: string): number | null {
  const prefix = `${taskId}~e`;
  if (!id.startsWith(prefix)) return null;
  const digits = id.slice(prefix.length);
  return /^[1-9][0-9]{0,14}$/.test(digits) ? Number(digits) : null;
}
