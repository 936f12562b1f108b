/**
 * Committed events from the domain to the wire (event.proto).
 * Owns every field but the payload. Ids are derived, never stored; what has no value on the wire is left out.
 */
import type { EventSchema } from '../gen/reeve/v1/event_pb.js';
import type { EventRefSchema } from '../gen/reeve/v1/task_pb.js';
import { type TaskEvent, eventId } from '../kernel/event.js';
import type { Admission, Ending } from '../kernel/record.js';
import type { StoredEvent } from '../store/task-store.js';
import { wasCut } from './bounded-text.js';
import { actorMessage, reasonMessage } from './cause-codec.js';
import { aepStates, statuses } from './enum-tables.js';
import type { Fields } from './message-fields.js';
import { binaryOf, payloadJson } from './event-payload.js';
import { toTimestamp } from './time-values.js';

export type EventFields = Fields<typeof EventSchema>;

export function eventMessage(admission: Admission, stored: Omit<StoredEvent, 'taskId'>): EventFields {
  const { event, sequence, link } = stored;
  const { cause, from, to, aep } = event;
  const ending = endingOf(event);
  return {
    sequence: BigInt(sequence),
    eventNumber: BigInt(event.number),
    eventId: eventId(admission.taskId, event.number),
    taskId: admission.taskId,
    generation: event.generation,
    revision: BigInt(event.revision ?? 0),
    type: event.type,
    ...(from === null ? {} : { fromStatus: statuses.value(from) }),
    ...(to === null ? {} : { toStatus: statuses.value(to) }),
    ...(aep === null ? {} : { aepState: aepStates.value(aep) }),
    epoch: BigInt(event.epoch ?? 0),
    time: toTimestamp(event.at),
    actor: actorMessage(cause.actor),
    principal: cause.principal,
    source: cause.source,
    ...(cause.reason === null ? {} : { reason: reasonMessage(cause.reason, ending?.evidenceRefs ?? []) }),
    causationId: cause.causation ?? '',
    ...(cause.authoritativeAt === null ? {} : { authoritativeAt: toTimestamp(cause.authoritativeAt) }),
    inferred: event.inferred,
    payloadJson: payloadJson(admission, event),
    ...binaryField(event),
    truncated: truncated(event, ending),
    ...(link === null ? {} : { link: Buffer.from(link, 'hex') }),
    eventSeq: BigInt(event.workerSeq ?? 0),
  };
}

export function eventRefMessage(taskId: string, eventNumber: number, sequence: number): Fields<typeof EventRefSchema> {
  return {
    eventId: eventId(taskId, eventNumber),
    eventNumber: BigInt(eventNumber),
    sequence: BigInt(sequence),
  };
}

function binaryField(event: TaskEvent): Pick<EventFields, 'binary'> {
  if (event.type !== 'task.output' || event.data.binaryBase64 === null) return {};
  return { binary: { data: binaryOf(event.data.binaryBase64), contentType: event.data.contentType ?? '' } };
}

function endingOf(event: TaskEvent): Ending | null {
  return 'ending' in event.data ? event.data.ending : null;
}

function truncated(event: TaskEvent, ending: Ending | null): boolean {
  if (event.type === 'task.output') return event.data.truncated;
  if (event.type === 'task.progress') return wasCut(event.data.message ?? '');
  if (event.type === 'task.blocked') return wasCut(event.data.reason);
  return ending?.error ? wasCut(ending.error.message) : false;
}
