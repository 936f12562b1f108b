/**
 * One committed event as users see it, and its reading from the wire. Fields of proto/reeve/v1/event.proto.
 */
import type * as pb from '../../gen/reeve/v1/event_pb.js';
import { type JsonValue, parseJson } from '../transport/json.js';
import { toDate } from '../transport/time.js';
import type { Actor, Reason } from './task.js';
import { readActor, readReason } from './task-codec.js';
import { aepWords, isTerminal, statusWords, type TaskStatusWord } from './words.js';

export interface TaskEvent {
  /** Position in the store, in commit order. */
  readonly sequence: number;
  /** Position in the task: 1, 2, 3, … without gaps. */
  readonly eventNumber: number;
  readonly eventId: string;
  readonly taskId: string;
  readonly generation: number;
  /** The task's revision after this fact; 0 for what a worker said on the way. */
  readonly revision: number;
  /** `task.submitted`, `task.progress`, `reeve.task.claimed`, … (docs/reference/events.md). */
  readonly type: string;
  readonly fromStatus: TaskStatusWord | 'unknown' | undefined;
  readonly toStatus: TaskStatusWord | 'unknown' | undefined;
  /** Undefined where AEP consumers see nothing. */
  readonly aepState: ReturnType<typeof aepWords.word>;
  /** 0 outside a claim. */
  readonly epoch: number;
  readonly time: Date | undefined;
  readonly actor: Actor | undefined;
  readonly principal: string;
  readonly source: string;
  readonly reason: Reason | undefined;
  readonly causationId: string;
  readonly authoritativeAt: Date | undefined;
  readonly inferred: boolean;
  /** The type's own content, in AEP's field names. */
  readonly payload: JsonValue | undefined;
  readonly payloadJson: string;
  readonly binary: { readonly data: Uint8Array; readonly contentType: string } | undefined;
  readonly truncated: boolean;
  readonly link: Uint8Array;
  /** The worker's own number for it; 0 when no worker said it. */
  readonly eventSeq: number;
}

export function readEvent(event: pb.Event): TaskEvent {
  const { binary } = event;
  return {
    sequence: Number(event.sequence),
    eventNumber: Number(event.eventNumber),
    eventId: event.eventId,
    taskId: event.taskId,
    generation: event.generation,
    revision: Number(event.revision),
    type: event.type,
    fromStatus: statusWords.word(event.fromStatus),
    toStatus: statusWords.word(event.toStatus),
    aepState: aepWords.word(event.aepState),
    epoch: Number(event.epoch),
    time: toDate(event.time),
    actor: readActor(event.actor),
    principal: event.principal,
    source: event.source,
    reason: readReason(event.reason),
    causationId: event.causationId,
    authoritativeAt: toDate(event.authoritativeAt),
    inferred: event.inferred,
    payload: parseJson(event.payloadJson),
    payloadJson: event.payloadJson,
    binary: binary && { data: binary.data, contentType: binary.contentType },
    truncated: event.truncated,
    link: event.link,
    eventSeq: Number(event.eventSeq),
  };
}

/** The fact that ends a generation. */
export function endsGeneration(event: TaskEvent): boolean {
  return isTerminal(event.toStatus) && event.fromStatus !== event.toStatus;
}
