/**
 * The action kinds of a deployment: which exist, and what each says about its args.
 *
 * Owns the built-in kinds, the one alias, the form of a kind's name and the building of a registry from configuration.
 * It never decides who runs a kind, and holds no registry of its own: the registry is an argument of admission.
 */

import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { quoted } from './json-problem.js';

export const BUILT_IN_ACTION_KINDS = ['agent', 'flow', 'fanout', 'play', 'flow_yaml', 'workflow'] as const;

/** ASCII, so that a byte is a character: what a column, a metric label and a configuration key hold without trouble. */
export const MAX_ACTION_KIND_LENGTH = 128;

const ACTION_KIND_FORM = /^[A-Za-z][A-Za-z0-9_.-]*$/;

export interface ArgsProblem {
  readonly detail: string;
  /** RFC 6901, from the root of args. */
  readonly pointer: string;
}

/** A kind's own judgement of its args, given as canonical JSON text. Pure: the same text has the same answer. */
export type ArgsCheck = (argsJson: string) => ArgsProblem | null;

/** Kind, as it is after `canonicalActionKind`, to the check of its args. Absent: not registered. */
export type ActionKindRegistry = ReadonlyMap<string, ArgsCheck>;

/** A kind that a deployment adds; or a built-in one, to give it a check. */
export interface ActionKindRegistration {
  readonly kind: string;
  /** Absent: any object is fine, the empty one too. */
  readonly checkArgs?: ArgsCheck;
}

/** The name under which a kind is known and hashed: `playbook` is the old name of `play`. Case matters. */
export function canonicalActionKind(kind: string): string {
  return kind === 'playbook' ? 'play' : kind;
}

/** Whether the text could name a kind at all: a letter, then letters, digits, `_`, `.`, `-`; at most 128. */
export function isActionKindName(kind: string): boolean {
  return kind.length <= MAX_ACTION_KIND_LENGTH && ACTION_KIND_FORM.test(kind);
}

/**
 * The built-in kinds and those of the deployment. Refuses a malformed name and a name that is given twice; the field
 * of the refusal is `action_kinds[i]`.
 */
export function buildActionKindRegistry(registrations: readonly ActionKindRegistration[]): Checked<ActionKindRegistry> {
  const registry = new Map<string, ArgsCheck>(BUILT_IN_ACTION_KINDS.map((kind) => [kind, anyArgs]));
  const given = new Set<string>();
  for (const [index, registration] of registrations.entries()) {
    const kind = canonicalActionKind(registration.kind);
    const field = `action_kinds[${index}]`;
    if (!isActionKindName(kind)) return malformed(field, `${quoted(kind)} is not the name of an action kind`);
    if (given.has(kind)) return malformed(field, `the action kind ${kind} is registered twice`);
    given.add(kind);
    registry.set(kind, registration.checkArgs ?? anyArgs);
  }
  return accepted(registry);
}

function anyArgs(): null {
  return null;
}
