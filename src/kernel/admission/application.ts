/**
 * The application: what is to be done, immutable, in the one form that is hashed and stored.
 *
 * Owns the normalising and checking of its six fields (lifecycle.md sections 1 and 5), the same for every binding.
 * Policy (priority, timeouts, parent…) is no part of it, nor is the idempotency key. Pure, and it never throws.
 */

import { canonicalActionKind, isActionKindName, MAX_ACTION_KIND_LENGTH } from './action-kinds.js';
import type { ActionKindRegistry } from './action-kinds.js';
import { accepted, malformed } from './admission-refusal.js';
import type { AdmissionRefusal, Checked } from './admission-refusal.js';
import { applicationHash } from './application-hash.js';
import { byCodeUnits, canonicalJson } from './canonical-json.js';
import { quoted } from './json-problem.js';
import type { JsonOutcome } from './json-problem.js';
import { readJsonText } from './json-text.js';
import { textProblem } from './text-rules.js';
import type { TextRule } from './text-rules.js';

export const EXECUTION_TARGETS = ['host', 'local_worktree', 'daytona', 'remote_agent', 'process'] as const;
export type ExecutionTarget = (typeof EXECUTION_TARGETS)[number];

export function isExecutionTarget(text: string): text is ExecutionTarget {
  return EXECUTION_TARGETS.some((target) => target === text);
}

/** Counted as given, before repetitions are dropped: matching is done for every pair of a task and a session. */
export const MAX_REQUIRED_CAPABILITIES = 64;

/** A label is matched, listed and counted by; longer than this it is data. */
export const MAX_CAPABILITY_BYTES = 128;

/** Room for a name, a path or a URI with a version. */
export const MAX_LIBRARY_REF_BYTES = 512;

/** Canonical: two applications are the same exactly when their fields are. */
export interface Application {
  /** A registered kind; never the alias `playbook`. */
  readonly actionKind: string;
  /** RFC 8785 text of a JSON object. */
  readonly argsJson: string;
  readonly executionTarget: ExecutionTarget;
  /** Sorted by UTF-16 code units, no label twice. */
  readonly requiredCapabilities: readonly string[];
  readonly libraryRef: string | null;
  /** `sha256:` and 64 lower-case hexadecimal digits. */
  readonly libraryContentHash: string | null;
}

/** Args as JSON text, or as a plain value (in-process callers, google.protobuf.Struct). */
export type ArgsInput =
  { readonly form: 'text'; readonly text: string } | { readonly form: 'value'; readonly value: unknown };

export interface ApplicationInput {
  readonly actionKind: string;
  readonly args: ArgsInput;
  /** One of `EXECUTION_TARGETS`; whatever the binding could not map arrives as it is and is refused here. */
  readonly executionTarget: string;
  readonly requiredCapabilities: readonly string[];
  /** Null and the empty text both mean absent. */
  readonly libraryRef: string | null;
  /** Null and the empty text both mean absent. */
  readonly libraryContentHash: string | null;
}

export type NormalisedApplication =
  | {
      readonly ok: true;
      readonly application: Application;
      readonly hash: string;
      /**
       * Well-formed, and still nothing that this deployment admits as new work: its kind is not registered, or does not
       * take such args. What was admitted before the deployment said so stays admitted, and a replay of it is one.
       */
      readonly unfit: AdmissionRefusal | null;
    }
  | { readonly ok: false; readonly refusal: AdmissionRefusal };

const CAPABILITY_RULE: TextRule = {
  maxBytes: MAX_CAPABILITY_BYTES,
  empty: 'refused',
  spaces: 'nowhere',
  controls: 'refused',
};
const LIBRARY_REF_RULE: TextRule = {
  maxBytes: MAX_LIBRARY_REF_BYTES,
  empty: 'refused',
  spaces: 'inside',
  controls: 'refused',
};
const CONTENT_HASH_FORM = /^sha256:[0-9a-f]{64}$/;

/**
 * Checks and normalises. Refusals, in the order of judgement: MALFORMED `action_kind`, `execution_target`,
 * `required_capabilities[i]`, `library_ref`, `library_content_hash`, `args_json` (text) or `args` (value) with pointer
 * and, for text, offset. Unfit: ACTION_KIND_UNREGISTERED `action_kind`; MALFORMED `args…` of the kind's own check.
 */
export function normaliseApplication(input: ApplicationInput, registry: ActionKindRegistry): NormalisedApplication {
  const actionKind = canonicalActionKind(input.actionKind);
  if (!isActionKindName(actionKind)) {
    return malformed(
      'action_kind',
      `must be a letter and then letters, digits, _ . - and at most ${MAX_ACTION_KIND_LENGTH} characters`,
    );
  }
  const executionTarget = input.executionTarget;
  if (!isExecutionTarget(executionTarget)) {
    return malformed('execution_target', `must be one of ${EXECUTION_TARGETS.join(', ')}`);
  }
  const capabilities = normaliseCapabilities(input.requiredCapabilities);
  if (!capabilities.ok) return capabilities;
  const libraryRef = input.libraryRef === '' ? null : input.libraryRef;
  const libraryContentHash = input.libraryContentHash === '' ? null : input.libraryContentHash;
  const libraryRefusal = libraryProblem(actionKind, libraryRef, libraryContentHash);
  if (libraryRefusal !== null) return libraryRefusal;
  const argsField = input.args.form === 'text' ? 'args_json' : 'args';
  const args = readArgs(input.args);
  if (!args.ok) return { ok: false, refusal: { reason: 'MALFORMED', field: argsField, ...args.problem } };
  const application: Application = {
    actionKind,
    argsJson: args.canonical,
    executionTarget,
    requiredCapabilities: capabilities.value,
    libraryRef,
    libraryContentHash,
  };
  const unfit = unfitness(application, argsField, registry);
  return { ok: true, application, hash: applicationHash(application), unfit };
}

function unfitness(
  { actionKind, argsJson }: Application,
  field: string,
  registry: ActionKindRegistry,
): AdmissionRefusal | null {
  const kind = registry.get(actionKind);
  if (kind === undefined) return unregistered(actionKind);
  const problem = kind.checkArgs(argsJson);
  return problem === null ? null : { reason: 'MALFORMED', field, ...problem };
}

function readArgs(args: ArgsInput): JsonOutcome {
  return args.form === 'text' ? readJsonText(args.text, 'object') : canonicalJson(args.value, 'object');
}

/** What is wrong with a capability label; null: nothing. */
export function capabilityProblem(label: string): string | null {
  return textProblem(label, CAPABILITY_RULE);
}

function normaliseCapabilities(labels: readonly string[]): Checked<readonly string[]> {
  if (labels.length === 0) return accepted(labels);
  if (labels.length > MAX_REQUIRED_CAPABILITIES) {
    return malformed('required_capabilities', `must not be more than ${MAX_REQUIRED_CAPABILITIES} labels`);
  }
  for (const [index, label] of labels.entries()) {
    const problem = capabilityProblem(label);
    if (problem !== null) return malformed(`required_capabilities[${index}]`, problem);
  }
  return accepted([...new Set(labels)].sort(byCodeUnits));
}

function libraryProblem(
  actionKind: string,
  libraryRef: string | null,
  contentHash: string | null,
): ReturnType<typeof malformed> | null {
  if (libraryRef !== null) {
    const problem = textProblem(libraryRef, LIBRARY_REF_RULE);
    if (problem !== null) return malformed('library_ref', problem);
  }
  if (contentHash !== null && !CONTENT_HASH_FORM.test(contentHash)) {
    return malformed('library_content_hash', 'must be sha256: and 64 lower-case hexadecimal digits');
  }
  if (actionKind !== 'workflow') return null;
  if (libraryRef === null) return malformed('library_ref', 'is required for a workflow');
  if (contentHash === null) return malformed('library_content_hash', 'is required for a workflow');
  return null;
}

function unregistered(actionKind: string): AdmissionRefusal {
  return {
    reason: 'ACTION_KIND_UNREGISTERED',
    field: 'action_kind',
    detail: `no action kind ${quoted(actionKind)} is registered in this deployment`,
  };
}
