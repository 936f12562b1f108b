/**
 * What became of a submission.
 */
import type { Authority } from '../authority/authority.js';
import type { SubmitAnswer } from '../authority/submit-work.js';
import type { Refusal } from '../kernel/refusal.js';
import { type Tombstone, taskPurged } from '../kernel/tombstone.js';
import { valueOf } from '../services/value-of.js';
import { type Fact, named } from './fact.js';
import type { ReeveRefusal } from './refusal.js';
import { type Task, taskOf } from './task.js';

export interface Submitted {
  readonly task: Task;
  /** REPLAYED: the key was admitted before, with the same application; nothing changed. */
  readonly outcome: 'CREATED' | 'REPLAYED';
  /** The admission. */
  readonly fact: Fact;
  /** Of a replay: the policy fields that differ from those admitted, by their names on the wire. */
  readonly ignoredPolicyFields: readonly string[];
}

export type SubmitVerdict =
  ({ readonly ok: true } & Submitted) | { readonly ok: false; readonly refusal: ReeveRefusal };

const ADMISSION = 1;

export async function submittedOf(
  authority: Authority,
  answer: Extract<SubmitAnswer, { readonly kind: 'created' | 'replayed' }>,
): Promise<Submitted> {
  const { record } = answer;
  const { taskId } = record.admission;
  const created = answer.kind === 'created';
  const sequence = created ? answer.sequence : (valueOf(await authority.reads.event(taskId, ADMISSION))?.sequence ?? 0);
  return {
    task: taskOf(record),
    outcome: created ? 'CREATED' : 'REPLAYED',
    fact: named(taskId, ADMISSION, ADMISSION, sequence),
    ignoredPolicyFields: created ? [] : answer.ignoredPolicyFields,
  };
}

/** The application is the one that was admitted, and its task is gone: what is left of it is told. */
export function purgedRefusal({ taskId, status, generation, finishedAt }: Tombstone): Refusal {
  const finished = new Date(finishedAt).toISOString();
  return taskPurged(taskId, { status, generation: String(generation), finished_at: finished });
}
