/**
 * The action kinds of a deployment: which exist, what each says about its args, and how long its tasks may take.
 *
 * Owns the built-in kinds, the one alias, the form of a kind's name and the building of a registry from configuration.
 * It never decides who runs a kind, and holds no registry of its own: the registry is an argument of admission.
 */

import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { quoted } from './json-problem.js';
import { integerProblem, MAX_DURATION_MS } from './policy-bounds.js';

export const BUILT_IN_ACTION_KINDS = ['agent', 'flow', 'fanout', 'play', 'flow_yaml', 'workflow'] as const;

/** ASCII, so that a byte is a character: what a column, a metric label and a configuration key hold without trouble. */
export const MAX_ACTION_KIND_LENGTH = 128;

const ACTION_KIND_FORM = /^[A-Za-z][A-Za-z0-9_.-]*$/;

/** One place in args that is not as its kind wants it. */
export interface ArgsViolation {
  /** What was expected there. */
  readonly detail: string;
  /** RFC 6901, from the root of args. */
  readonly pointer: string;
}

export interface ArgsProblem extends ArgsViolation {
  /** Where more than one place is known: all of them, this one first; at most MAX_ARGS_VIOLATIONS. */
  readonly violations?: readonly ArgsViolation[];
}

/** What a caller can mend in one go, and what fits the details of an error. */
export const MAX_ARGS_VIOLATIONS = 8;

/** A kind's own judgement of its args, given as canonical JSON text. Pure: the same text has the same answer. */
export type ArgsCheck = (argsJson: string) => ArgsProblem | null;

export interface ActionKind {
  readonly checkArgs: ArgsCheck;
  /** The total time-out, in ms, of a task whose submission states none. Null: no limit. */
  readonly timeoutMs: number | null;
}

/** Kind, as it is after `canonicalActionKind`, to what is registered of it. Absent: not registered. */
export type ActionKindRegistry = ReadonlyMap<string, ActionKind>;

/** A kind that a deployment adds; or a built-in one, to say more about it. */
export interface ActionKindRegistration {
  readonly kind: string;
  /** Absent: any object is fine. */
  readonly checkArgs?: ArgsCheck | undefined;
  /** Whether `{}` is fine whatever the check says of it. Default: true. */
  readonly allowEmptyArgs?: boolean;
  /** 1 ms to 10 years. Default: null. */
  readonly timeoutMs?: number | null;
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
 * The built-in kinds and those of the deployment. Refuses a malformed name, a name that is given twice and a time-out
 * out of its bounds; the field of the refusal is `action_kinds[i]`.
 */
export function buildActionKindRegistry(registrations: readonly ActionKindRegistration[]): Checked<ActionKindRegistry> {
  const registry = new Map<string, ActionKind>(BUILT_IN_ACTION_KINDS.map((kind) => [kind, PLAIN]));
  const given = new Set<string>();
  for (const [index, registration] of registrations.entries()) {
    const kind = canonicalActionKind(registration.kind);
    const field = `action_kinds[${index}]`;
    if (!isActionKindName(kind)) return malformed(field, `${quoted(kind)} is not the name of an action kind`);
    if (given.has(kind)) return malformed(field, `the action kind ${kind} is registered twice`);
    given.add(kind);
    const timeoutMs = registration.timeoutMs ?? null;
    const problem = timeoutMs === null ? null : integerProblem(`${field}.timeout`, timeoutMs, 1, MAX_DURATION_MS);
    if (problem !== null) return problem;
    registry.set(kind, { checkArgs: argsCheckOf(registration), timeoutMs });
  }
  return accepted(registry);
}

const EMPTY_ARGS = '{}';

function argsCheckOf({ checkArgs = anyArgs, allowEmptyArgs = true }: ActionKindRegistration): ArgsCheck {
  if (allowEmptyArgs) return (argsJson) => (argsJson === EMPTY_ARGS ? null : checkArgs(argsJson));
  // What the check says of it comes first: it tells what is missing.
  return (argsJson) => checkArgs(argsJson) ?? (argsJson === EMPTY_ARGS ? EMPTY : null);
}

function anyArgs(): null {
  return null;
}

const EMPTY: ArgsProblem = { detail: 'must not be empty', pointer: '' };
const PLAIN: ActionKind = { checkArgs: anyArgs, timeoutMs: null };
