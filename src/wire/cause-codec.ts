/**
 * Who and why, between the wire and the domain: Actor, Reason, Cause.
 * Owns what a caller may state of them (lifecycle.md section 4): actor types and reason codes that are the
 * authority's own are MALFORMED from outside.
 */
import type { Actor, ActorSchema, Cause, Reason, ReasonSchema } from '../gen/reeve/v1/task_pb.js';
import { type Actor as DomainActor, type Reason as DomainReason, mayClaimActor } from '../kernel/cause.js';
import { REASON_CODES, mayStateReason } from '../kernel/reason-codes.js';
import { boundedText, cutText, optionalText } from './bounded-text.js';
import { actorTypes } from './enum-tables.js';
import { malformedField } from './refusal-error.js';
import type { Fields } from './message-fields.js';

export const MAX_ACTOR_ID_BYTES = 255;
const MAX_SOURCE_BYTES = 128;
const MAX_CAUSATION_BYTES = 255;
const MAX_SUMMARY_BYTES = 1_024;
const MAX_EVIDENCE_REFS = 32;
const MAX_EVIDENCE_REF_BYTES = 2_048;

/** What a caller said of the cause; null where it left the default. */
export interface StatedCause {
  readonly actor: DomainActor | null;
  readonly source: string | null;
  readonly reason: DomainReason | null;
  readonly causation: string | null;
  readonly authoritativeEventId: string | null;
}

export const NOTHING_STATED: StatedCause = {
  actor: null,
  source: null,
  reason: null,
  causation: null,
  authoritativeEventId: null,
};

export const DEFAULT_ACTOR: DomainActor = { type: 'producer', id: '' };

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
  const type = actorTypes.readOr(`${field}.type`, actor.type, 'producer' as const);
  if (!mayClaimActor(type)) {
    throw malformedField(`${field}.type`, 'a caller may be a producer, an operator or a webhook');
  }
  return { type, id: boundedText(`${field}.id`, actor.id, MAX_ACTOR_ID_BYTES) };
}

export function readReason(field: string, reason: Reason | undefined): DomainReason | null {
  if (reason === undefined) return null;
  if (!mayStateReason(reason.code)) {
    throw malformedField(`${field}.code`, 'must be a reason that callers may state, or app.<word>.<word>');
  }
  const summary = reason.summary === '' ? documentedSummary(reason.code) : cutText(reason.summary, MAX_SUMMARY_BYTES);
  return { code: reason.code, summary, evidenceRefs: readEvidenceRefs(`${field}.evidence_refs`, reason.evidenceRefs) };
}

export function readEvidenceRefs(field: string, refs: readonly string[]): readonly string[] {
  if (refs.length > MAX_EVIDENCE_REFS) throw malformedField(field, `must not be more than ${MAX_EVIDENCE_REFS}`);
  return refs.map((ref, index) => boundedText(`${field}[${index}]`, ref, MAX_EVIDENCE_REF_BYTES));
}

export function readCausation(field: string, id: string): string | null {
  return optionalText(field, id, MAX_CAUSATION_BYTES);
}

export function actorMessage(actor: DomainActor): Fields<typeof ActorSchema> {
  return { type: actorTypes.value(actor.type), id: actor.id };
}

/** `moreEvidence` is what a settlement brought besides its reason's own. */
export function reasonMessage(reason: DomainReason, moreEvidence: readonly string[] = []): Fields<typeof ReasonSchema> {
  const { code, summary, evidenceRefs } = reason;
  return { code, summary, evidenceRefs: [...evidenceRefs, ...moreEvidence] };
}

function documentedSummary(code: string): string {
  const documented: Readonly<Record<string, { readonly summary: string }>> = REASON_CODES;
  return Object.hasOwn(documented, code) ? (documented[code]?.summary ?? '') : '';
}
