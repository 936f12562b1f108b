/**
 * The refusals of the admission step, as values.
 *
 * Owns the shape that every check of this folder answers with. It never throws for bad input, and it never echoes
 * unbounded input: `detail` is a sentence of ours, quoting at most a few characters of the caller's.
 */

import { type Refusal, refuse } from '../refusal.js';

/** Why an application is not admitted (lifecycle.md section 4 step 1, section 5). */
export type AdmissionRefusalReason = 'MALFORMED' | 'ACTION_KIND_UNREGISTERED';

/** A definite refusal: nothing was read, nothing was written. */
export interface AdmissionRefusal {
  readonly reason: AdmissionRefusalReason;
  /** The field as the wire names it: `args_json`, `required_capabilities[2]`, `labels["team"]`, `retry.jitter`. */
  readonly field: string;
  /** One sentence for a person. */
  readonly detail: string;
  /** Inside JSON fields: RFC 6901 pointer from the root of that field; the root itself is the empty text. */
  readonly pointer?: string;
  /** Inside JSON text: the place as a count of UTF-16 code units from the start of the text, from 0. */
  readonly offset?: number;
  /** Where several places inside a JSON field are known: all of them, the one above first. */
  readonly violations?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** A value that passed its checks, or the first check that it failed. */
export type Checked<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly refusal: AdmissionRefusal };

export function accepted<Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value };
}

export function malformed(field: string, detail: string): { readonly ok: false; readonly refusal: AdmissionRefusal } {
  return { ok: false, refusal: { reason: 'MALFORMED', field, detail } };
}

/** The refusal in the kernel's terms; `prefix` (`policy.`) leads to its field in the request. */
export function refusalOfAdmission(admission: AdmissionRefusal, prefix = ''): Refusal {
  const { reason, detail, pointer, offset, violations } = admission;
  const field = `${prefix}${admission.field}`;
  const metadata: Record<string, string> = { field };
  if (pointer !== undefined) metadata['pointer'] = pointer;
  if (offset !== undefined) metadata['offset'] = String(offset);
  if (violations !== undefined) metadata['violations'] = JSON.stringify(violations);
  const more = violations === undefined ? '' : ` (and ${String(violations.length - 1)} more)`;
  return refuse(reason, `${field}${pointer ?? ''}: ${detail}${more}`, metadata);
}
