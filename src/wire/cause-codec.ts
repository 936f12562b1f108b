/**
 * Who and why, between the wire and the domain: Actor, Reason, Cause.
 * What a caller may state of them is judged in stated-cause.ts.
 */
import type { Actor, ActorSchema, Cause, ReasonSchema } from '../gen/reeve/v1/task_pb.js';
import type { Actor as DomainActor, Reason as DomainReason } from '../kernel/cause.js';
import { optionalText } from './bounded-text.js';
import { actorTypes } from './enum-tables.js';
import type { Fields } from './message-fields.js';
import {
  MAX_CAUSATION_BYTES,
  MAX_SOURCE_BYTES,
  NOTHING_STATED,
  type StatedCause,
  readCausation,
  readReason,
  statedActor,
} from './stated-cause.js';

export {
  DEFAULT_ACTOR,
  MAX_ACTOR_ID_BYTES,
  NOTHING_STATED,
  type StatedCause,
  readCausation,
  readEvidenceRefs,
  readReason,
} from './stated-cause.js';

export function readCause(field: string, cause: Cause | undefined): StatedCause {
  if (cause === undefined) return NOTHING_STATED;
  return {
    actor: readActor(`${field}.actor`, cause.actor),
    source: optionalText(`${field}.source`, cause.source, MAX_SOURCE_BYTES),
    reason: readReason(`${field}.reason`, cause.reason),
    causation: readCausation(`${field}.causation_id`, cause.causationId),
    authoritativeEventId: optionalText(
      `${field}.authoritative_event_id`,
      cause.authoritativeEventId,
      MAX_CAUSATION_BYTES,
    ),
  };
}

/** Null when nothing was said; a type that a caller may not claim is MALFORMED. */
export function readActor(field: string, actor: Actor | undefined): DomainActor | null {
  if (actor === undefined) return null;
  return statedActor(field, {
    type: actorTypes.readOr(`${field}.type`, actor.type, 'producer' as const),
    id: actor.id,
  });
}

export function actorMessage(actor: DomainActor): Fields<typeof ActorSchema> {
  return { type: actorTypes.value(actor.type), id: actor.id };
}

/** `moreEvidence` is what a settlement brought besides its reason's own. */
export function reasonMessage(reason: DomainReason, moreEvidence: readonly string[] = []): Fields<typeof ReasonSchema> {
  const { code, summary, evidenceRefs } = reason;
  return { code, summary, evidenceRefs: [...evidenceRefs, ...moreEvidence] };
}
