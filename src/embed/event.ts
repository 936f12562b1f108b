/**
 * Committed events as an embedding program sees them: frozen, with the payload that consumers of the wire get
 * (proto/reeve/v1/event.proto; docs/reference/events.md).
 */
import type { Committed } from '../authority/publisher.js';
import type { AepState } from '../kernel/aep.js';
import type { Actor, Reason } from '../kernel/cause.js';
import { type EventType, type TaskEvent as KernelEvent, eventId, transitionId } from '../kernel/event.js';
import type { Admission } from '../kernel/record.js';
import type { TaskStatus } from '../kernel/status.js';
import { deepFreeze } from '../lib/deep-freeze.js';
import { payloadJson } from '../wire/event-payload.js';
import { type JsonValue, parseJson } from './json.js';
import { type Task, taskOf } from './task.js';

export interface TaskEvent {
  /** Position in the store, in commit order. */
  readonly sequence: number;
  /** Position in the task: 1, 2, 3, … without gaps. */
  readonly number: number;
  readonly id: string;
  readonly taskId: string;
  readonly generation: number;
  /** Facts only: the task's revision after it, and the id of the transition. */
  readonly revision: number | null;
  readonly transitionId: string | null;
  readonly type: EventType;
  /** Facts only. */
  readonly from: TaskStatus | null;
  readonly to: TaskStatus | null;
  /** The AEP state after it; null where it is no part of the projection. */
  readonly aepState: AepState | null;
  /** The claim it belongs to; null: none. */
  readonly epoch: number | null;
  /** Epoch ms, the store's clock. */
  readonly atMs: number;
  readonly actor: Actor;
  readonly principal: string;
  readonly source: string;
  readonly reason: Reason | null;
  readonly causation: string | null;
  /** Epoch ms at which it truly happened, where that is known to be earlier than its commit. */
  readonly authoritativeAtMs: number | null;
  /** Supplied by the authority where a settlement came earlier than the AEP table allows. */
  readonly inferred: boolean;
  /** The worker's own number for it; null: no worker said it. */
  readonly workerSeq: number | null;
  /** The type's own content, in AEP's field names. */
  readonly payload: JsonValue;
  /** A binary output. */
  readonly binary: { readonly base64: string; readonly contentType: string } | null;
}

/** One task's share of a commit. */
export interface Commit {
  /** As the commit left it. */
  readonly task: Task;
  /** In their order; at least one. */
  readonly events: readonly TaskEvent[];
}

export function commitOf({ record, events, firstSequence }: Committed): Commit {
  return Object.freeze({
    task: taskOf(record),
    events: Object.freeze(events.map((event, index) => eventOf(record.admission, event, firstSequence + index))),
  });
}

export function eventOf(admission: Admission, event: KernelEvent, sequence: number): TaskEvent {
  const { taskId } = admission;
  const { number, revision, cause } = event;
  return deepFreeze({
    sequence,
    number,
    id: eventId(taskId, number),
    taskId,
    generation: event.generation,
    revision,
    transitionId: revision === null ? null : transitionId(taskId, revision),
    type: event.type,
    from: event.from,
    to: event.to,
    aepState: event.aep,
    epoch: event.epoch,
    atMs: event.at,
    actor: cause.actor,
    principal: cause.principal,
    source: cause.source,
    reason: cause.reason,
    causation: cause.causation,
    authoritativeAtMs: cause.authoritativeAt,
    inferred: event.inferred,
    workerSeq: event.workerSeq,
    payload: parseJson(payloadJson(admission, event)) ?? {},
    binary: binaryOf(event),
  });
}

function binaryOf(event: KernelEvent): TaskEvent['binary'] {
  if (event.type !== 'task.output' || event.data.binaryBase64 === null) return null;
  return { base64: event.data.binaryBase64, contentType: event.data.contentType ?? '' };
}
