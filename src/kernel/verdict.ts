/**
 * Verdicts: what judging one intent on one draft comes to. An `applied` verdict left its events in the draft;
 * every other verdict left the draft exactly as it was.
 */
import type { Refusal } from './refusal.js';

export type Guard = 'FROM_STATUS' | 'REVISION' | 'LEASE';

export type Verdict =
  | { readonly kind: 'applied' }
  /** Legal, and there was nothing to do: a cancel already requested, a timer not due. */
  | { readonly kind: 'unchanged' }
  /** A stated guard does not hold: not an error. `observed` is the value found. */
  | { readonly kind: 'conflict'; readonly guard: Guard; readonly observed: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export const APPLIED: Verdict = { kind: 'applied' };
export const UNCHANGED: Verdict = { kind: 'unchanged' };

export function refused(refusal: Refusal): Verdict {
  return { kind: 'refused', refusal };
}
