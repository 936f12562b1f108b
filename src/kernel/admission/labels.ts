/**
 * Labels: small texts by which people and tools find tasks.
 *
 * Owns their limits and their one order. They are policy, never part of the application's hash, and nothing in the
 * lifecycle may depend on one.
 */

import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { byCodeUnits } from './canonical-json.js';
import { quoted } from './json-problem.js';
import { textProblem } from './text-rules.js';
import type { TextRule } from './text-rules.js';

/** All labels of a task together stay below 25 KiB, so that a page of tasks fits a frame. */
export const MAX_LABELS = 64;
export const MAX_LABEL_KEY_BYTES = 128;
export const MAX_LABEL_VALUE_BYTES = 256;

/** Own members in key order (UTF-16 code units). */
export type Labels = Readonly<Record<string, string>>;

const KEY_RULE: TextRule = {
  maxBytes: MAX_LABEL_KEY_BYTES,
  empty: 'refused',
  spaces: 'inside',
  controls: 'refused',
};
const VALUE_RULE: TextRule = {
  maxBytes: MAX_LABEL_VALUE_BYTES,
  empty: 'allowed',
  spaces: 'anywhere',
  controls: 'refused',
};

const NO_LABELS: Labels = Object.freeze({});

/** Checks and sorts. The field of a refusal is `labels` or `labels["key"]`. */
export function resolveLabels(given: Labels): Checked<Labels> {
  const entries = Object.entries(given);
  if (entries.length === 0) return accepted(NO_LABELS);
  if (entries.length > MAX_LABELS) return malformed('labels', `must not be more than ${MAX_LABELS}`);
  for (const [key, value] of entries) {
    const keyProblem = textProblem(key, KEY_RULE);
    if (keyProblem !== null) return malformed(`labels[${quoted(key)}]`, `the key ${keyProblem}`);
    const valueProblem = textProblem(value, VALUE_RULE);
    if (valueProblem !== null) return malformed(`labels[${quoted(key)}]`, `the value ${valueProblem}`);
  }
  entries.sort(([left], [right]) => byCodeUnits(left, right));
  // fromEntries defines members, so a key like __proto__ stays a label.
  return accepted(Object.fromEntries(entries));
}

export function sameLabels(left: Labels, right: Labels): boolean {
  const entries = Object.entries(left);
  return (
    entries.length === Object.keys(right).length &&
    entries.every(([key, value]) => Object.hasOwn(right, key) && right[key] === value)
  );
}
