/**
 * Bounds of the numbers in a policy, and the refusal of what lies outside.
 *
 * Owns the longest duration and the latest time that the service handles. It refuses and never clamps: a caller who
 * asked for 20 years would otherwise learn of 10 when they have passed.
 */

import { malformed } from './admission-refusal.js';
import type { AdmissionRefusal } from './admission-refusal.js';

/** 10 years of 365 days: the documented maximum of every time-out (lifecycle.md section 7). */
export const MAX_DURATION_MS = 315_360_000_000;

/** 9999-12-31T23:59:59.999Z, the last instant of google.protobuf.Timestamp, in epoch ms. */
export const MAX_EPOCH_MS = 253_402_300_799_999;

type Malformed = { readonly ok: false; readonly refusal: AdmissionRefusal };

/** Whole numbers from `least` to `most`, both included. */
export function integerProblem(field: string, value: number, least: number, most: number): Malformed | null {
  return Number.isInteger(value) && value >= least && value <= most
    ? null
    : malformed(field, `must be a whole number from ${least} to ${most}`);
}

/** Finite numbers from `least` to `most`, both included. */
export function numberProblemIn(field: string, value: number, least: number, most: number): Malformed | null {
  return value >= least && value <= most ? null : malformed(field, `must be a number from ${least} to ${most}`);
}
