/**
 * Permits: how many tasks of one concurrency key, or with one serialized capability, may run at once (lifecycle.md
 * section 5). Owns which permits a task needs, and how its record stands to them. Who holds one and who waits is the
 * store's to keep; how many there are is the deployment's to say. Nearly every task needs none.
 */
import type { CapabilityClasses } from './placement.js';
import type { Admission, TaskRecord } from './record.js';
import { readyOrder } from './placement.js';
import { type Refusal, refuse } from './refusal.js';

export interface Permit {
  /** Opaque outside this file; equal exactly when it is the same permit. */
  readonly name: string;
  /** How many tasks may run with it at once. */
  readonly limit: number;
}

/** Sorted by name: the one order in which a task stands in line for them. */
export type Permits = readonly Permit[];

export const NO_PERMITS: Permits = [];

/** What the deployment says of how many may run at once. */
export interface PermitRules {
  /** The first pattern that fits a key counts; `*` stands for any text, the empty one too. */
  readonly keyLimits: readonly KeyLimit[];
  readonly capabilities: CapabilityClasses;
}

export interface KeyLimit {
  readonly pattern: string;
  /** 1 … MAX_PERMIT_LIMIT. */
  readonly limit: number;
}

export const NO_PERMIT_RULES: PermitRules = { keyLimits: [], capabilities: new Map() };

/** A key that no pattern fits: its tasks take turns. */
export const DEFAULT_KEY_LIMIT = 1;
/** More than any deployment runs at once; whoever wants no limit uses no key. */
export const MAX_PERMIT_LIMIT = 1_000_000;
const SERIALIZED_LIMIT = 1;

/** What a permit is of: a key within its namespace, or a capability of the whole deployment. */
export type PermitSubject =
  | { readonly kind: 'key'; readonly namespace: string; readonly key: string }
  | { readonly kind: 'capability'; readonly label: string };

/** How the record stands to its permits: it wants them, runs under them, or needs none now. */
export type PermitStance = 'queued' | 'running' | 'none';

/** A task that waits for a permit, and who is in its way. */
export interface PermitWait {
  readonly name: string;
  readonly limit: number;
  /** So many run with it. */
  readonly running: number;
  /** Tasks that run with it, by id; not all of them where there are many. */
  readonly holders: readonly string[];
  /** Tasks of its own route that come before it, the ready ones too, as far as they were counted. */
  readonly ahead: number;
  readonly aheadIsAtLeast: boolean;
}

export function permitsOf({ namespace, policy, application }: Admission, rules: PermitRules): Permits {
  const { concurrencyKey } = policy;
  const { requiredCapabilities } = application;
  if (concurrencyKey === null && (rules.capabilities.size === 0 || requiredCapabilities.length === 0)) {
    return NO_PERMITS;
  }
  const permits: Permit[] = requiredCapabilities
    .filter((label) => rules.capabilities.get(label) === 'serialization')
    .map((label) => ({ name: nameOf({ kind: 'capability', label }), limit: SERIALIZED_LIMIT }));
  if (concurrencyKey !== null) {
    permits.push({
      name: nameOf({ kind: 'key', namespace, key: concurrencyKey }),
      limit: keyLimit(concurrencyKey, rules),
    });
  }
  return permits.length > 1 ? permits.sort((left, right) => (left.name < right.name ? -1 : 1)) : permits;
}

export function permitStance(record: TaskRecord): PermitStance {
  if (record.status === 'running') return 'running';
  return readyOrder(record) === null ? 'none' : 'queued';
}

/** How many may run with the permit of this name; null when nobody needs it under these rules. */
export function permitLimit(name: string, rules: PermitRules): number | null {
  const subject = subjectOf(name);
  if (subject.kind === 'key') return keyLimit(subject.key, rules);
  return rules.capabilities.get(subject.label) === 'serialization' ? SERIALIZED_LIMIT : null;
}

/** Sorts behind the names of all keys and before those of all capabilities. */
export const BEFORE_CAPABILITIES = 'serialized';

/**
 * No part of a name can hold a line feed. Names of keys sort before those of capabilities: whoever stands in line for a
 * capability of the whole deployment is kept from it by no key of its own.
 */
function nameOf(subject: PermitSubject): string {
  return subject.kind === 'key'
    ? `key\n${subject.namespace}\n${subject.key}`
    : `${BEFORE_CAPABILITIES}\n${subject.label}`;
}

export function subjectOf(name: string): PermitSubject {
  const [kind, first = '', second = ''] = name.split('\n');
  return kind === 'key' ? { kind: 'key', namespace: first, key: second } : { kind: 'capability', label: first };
}

function keyLimit(key: string, { keyLimits }: PermitRules): number {
  return keyLimits.find(({ pattern }) => fits(pattern, key))?.limit ?? DEFAULT_KEY_LIMIT;
}

/** Each part between two stars is looked for once, from left to right: the time is that of the key's length. */
function fits(pattern: string, key: string): boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return key === pattern;
  if (!key.startsWith(head)) return false;
  let from = head.length;
  for (const part of rest) {
    const at = key.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return key.length - from >= tail.length && key.endsWith(tail);
}

/** The permit that a claim would be refused for; one that has room is no obstacle, whoever else stands in line. */
export function fullPermit(wait: PermitWait | null): string | null {
  return wait !== null && wait.running >= wait.limit ? wait.name : null;
}

/** A claim of a task whose permit is full: it is not claimable yet, as one whose start is delayed. */
export function permitRefusal(taskId: string, name: string): Refusal {
  const subject = subjectOf(name);
  return subject.kind === 'key'
    ? refuse('INVALID_TRANSITION', 'this task waits for its concurrency key', {
        task_id: taskId,
        concurrency_key: subject.key,
      })
    : refuse('INVALID_TRANSITION', 'this task waits for a capability that one task at a time may use', {
        task_id: taskId,
        capability: subject.label,
      });
}
