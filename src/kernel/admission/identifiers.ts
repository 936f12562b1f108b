/**
 * The names that callers choose: task ids, idempotency keys, namespaces, queues, concurrency keys.
 *
 * Owns their form (lifecycle.md sections 1 and 5). A name is compared byte by byte everywhere, so it is never trimmed,
 * folded or normalised here: it is taken as it is, defaulted when empty where that is allowed, or refused.
 */

import type { Source } from '../cause.js';
import { accepted, malformed } from './admission-refusal.js';
import type { Checked } from './admission-refusal.js';
import { textProblem } from './text-rules.js';
import type { TextRule } from './text-rules.js';

/** ASCII. Leaves room for `~<generation>` in the AEP task id. */
export const MAX_TASK_ID_LENGTH = 128;
/** What an indexed VARBINARY of the stores holds beside a namespace. */
export const MAX_IDEMPOTENCY_KEY_BYTES = 255;
/** ASCII; part of every key and of metric labels. */
export const MAX_NAMESPACE_LENGTH = 64;
/** ASCII; part of every ready-index entry. */
export const MAX_QUEUE_LENGTH = 128;
export const MAX_CONCURRENCY_KEY_BYTES = 255;

export const DEFAULT_NAMESPACE = 'default';
export const DEFAULT_QUEUE = 'default';

/** Where an application came from; set by the binding, never by the caller. The authority itself admits nothing. */
export type AdmissionSource = Exclude<Source, 'authority'>;

/** Key prefixes that only one source may use: their keys are built, and a caller could take them in advance. */
export const RESERVED_KEY_PREFIXES = [
  { prefix: 'schedule:', source: 'schedule' },
  { prefix: 'aep:', source: 'aep' },
] as const;

const TASK_ID_FORM = /^[A-Za-z0-9._:-]+$/;
const NAMESPACE_FORM = /^[a-z0-9][a-z0-9._-]*$/;
const QUEUE_FORM = /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/;

const IDEMPOTENCY_KEY_RULE: TextRule = {
  maxBytes: MAX_IDEMPOTENCY_KEY_BYTES,
  empty: 'refused',
  spaces: 'inside',
  controls: 'refused',
};
const CONCURRENCY_KEY_RULE: TextRule = {
  ...IDEMPOTENCY_KEY_RULE,
  maxBytes: MAX_CONCURRENCY_KEY_BYTES,
};

/** A caller's own task id: 1–128 of `A–Z a–z 0–9 . _ : -`. No `~`, which marks generations in AEP. */
export function checkTaskId(taskId: string): Checked<string> {
  return taskId.length <= MAX_TASK_ID_LENGTH && TASK_ID_FORM.test(taskId)
    ? accepted(taskId)
    : malformed('task_id', `must be 1 to ${MAX_TASK_ID_LENGTH} characters of A–Z a–z 0–9 . _ : -`);
}

/**
 * A submission's key: 1–255 bytes of UTF-8, no control characters, no white space at either end, and a reserved prefix
 * only from its own source.
 */
export function checkIdempotencyKey(key: string, source: AdmissionSource): Checked<string> {
  const checked = checkOperationKey(key, 'idempotency_key');
  if (!checked.ok) return checked;
  for (const reserved of RESERVED_KEY_PREFIXES) {
    if (source !== reserved.source && key.startsWith(reserved.prefix)) {
      return malformed('idempotency_key', `keys that begin with ${reserved.prefix} are reserved`);
    }
  }
  return checked;
}

/** The key of any other mutation (`idempotency_key` of a Transition, `request_id` of a Cancel): no prefix is reserved. */
export function checkOperationKey(key: string, field: string): Checked<string> {
  const problem = textProblem(key, IDEMPOTENCY_KEY_RULE);
  return problem === null ? accepted(key) : malformed(field, problem);
}

/** `""` is `default`; else 1–64 of `a–z 0–9 . _ -`, beginning with a letter or digit. */
export function resolveNamespace(namespace: string): Checked<string> {
  if (namespace === '') return accepted(DEFAULT_NAMESPACE);
  return namespace.length <= MAX_NAMESPACE_LENGTH && NAMESPACE_FORM.test(namespace)
    ? accepted(namespace)
    : malformed(
        'namespace',
        `must be 1 to ${MAX_NAMESPACE_LENGTH} characters of a–z 0–9 . _ - and begin with a letter or digit`,
      );
}

/** `""` is `default`; else 1–128 of `A–Z a–z 0–9 . _ : / -`, beginning with a letter or digit. */
export function resolveQueue(queue: string): Checked<string> {
  if (queue === '') return accepted(DEFAULT_QUEUE);
  return queue.length <= MAX_QUEUE_LENGTH && QUEUE_FORM.test(queue)
    ? accepted(queue)
    : malformed(
        'queue',
        `must be 1 to ${MAX_QUEUE_LENGTH} characters of A–Z a–z 0–9 . _ : / - and begin with a letter or digit`,
      );
}

/** 1–255 bytes of UTF-8, the same characters as an idempotency key. */
export function checkConcurrencyKey(key: string): Checked<string> {
  const problem = textProblem(key, CONCURRENCY_KEY_RULE);
  return problem === null ? accepted(key) : malformed('concurrency_key', problem);
}
