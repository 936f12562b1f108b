/**
 * What a caller says of the cause of a change, whichever door it came by: plain values in, MALFORMED or domain values out.
 * Owns what may be stated (lifecycle.md section 4) and how long it may be; it knows no message of the wire.
 */
import { type Actor, type Reason, mayClaimActor } from '../kernel/cause.js';
import { REASON_CODES, mayStateReason } from '../kernel/reason-codes.js';
import { boundedText, cutText, optionalText } from './bounded-text.js';
import { malformedField } from './refusal-error.js';

export const MAX_ACTOR_ID_BYTES = 255;
export const MAX_SOURCE_BYTES = 128;
export const MAX_CAUSATION_BYTES = 255;
const MAX_SUMMARY_BYTES = 1_024;
const MAX_EVIDENCE_REFS = 32;
const MAX_EVIDENCE_REF_BYTES = 2_048;

/** What a caller said of the cause; null where it left the default. */
export interface StatedCause {
  readonly actor: Actor | null;
  readonly source: string | null;
  readonly reason: Reason | null;
  readonly causation: string | null;
  readonly authoritativeEventId: string | null;
  /** Epoch ms; only an embedding program may state it. */
  readonly authoritativeAt?: number;
}

export const NOTHING_STATED: StatedCause = {
  actor: null,
  source: null,
  reason: null,
  causation: null,
  authoritativeEventId: null,
};

export const DEFAULT_ACTOR: Actor = { type: 'producer', id: '' };

/** A type that a caller may not claim is MALFORMED. */
export function statedActor(field: string, { type, id }: Actor): Actor {
  if (!mayClaimActor(type)) {
    throw malformedField(`${field}.type`, 'a caller may be a producer, an operator or a webhook');
  }
  return { type, id: boundedText(`${field}.id`, id, MAX_ACTOR_ID_BYTES) };
}

export function readReason(field: string, reason: Reason | undefined): Reason | null {
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

function documentedSummary(code: string): string {
  const documented: Readonly<Record<string, { readonly summary: string }>> = REASON_CODES;
  return Object.hasOwn(documented, code) ? (documented[code]?.summary ?? '') : '';
}
