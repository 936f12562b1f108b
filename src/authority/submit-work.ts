/**
 * The work of admitting: one insert-or-return decision per (namespace, key) (ADR D2, lifecycle.md section 5).
 * The store's own check of the key is the decision; what it answers `duplicate` is compared and replayed or refused.
 */
import {
  type ApplicationDifference,
  applicationDifference,
  applicationDifferenceByHash,
} from '../kernel/admission/application-difference.js';
import { applicationFieldHashes } from '../kernel/admission/application-hash.js';
import { policyDifferences } from '../kernel/admission/policy.js';
import type { Submission } from '../kernel/admission/submission.js';
import type { Cause } from '../kernel/cause.js';
import { Draft } from '../kernel/draft.js';
import type { Admission, TaskRecord } from '../kernel/record.js';
import { type Refusal, refuse } from '../kernel/refusal.js';
import type { PlanVerdict } from '../store/commit-plan.js';
import type { PurgedTask } from '../store/task-store.js';
import type { Batch } from './batch.js';
import { findFamily, joinFamily, namedTasks } from './family-admission.js';
import type { RecordUnit } from './unit.js';
import type { Judged, Work } from './work.js';

export type SubmitAnswer =
  | { readonly kind: 'created'; readonly record: TaskRecord; readonly sequence: number }
  /** The key was seen before with the same application; policy that differs was ignored. */
  | { readonly kind: 'replayed'; readonly record: TaskRecord; readonly ignoredPolicyFields: readonly string[] }
  /** The same, of a task that was purged: its name is all that is left. */
  | { readonly kind: 'purged'; readonly task: PurgedTask }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** The task that a name leads to, or what is left of it. */
export type Found = { readonly kind: 'task'; readonly record: TaskRecord } | PurgedTask;

export interface SubmitContext {
  readonly newId: () => string;
  /** Answers a submission whose key the store knows: loads the task and compares. */
  readonly resolveDuplicate: (work: SubmitWork, taskId: string) => void;
  /** Refuses what is not admitted as new work, unless its key is known: a replay is a replay whatever holds by now. */
  readonly refuseUnlessKnown: (work: SubmitWork, refusal: Refusal) => void;
}

export class SubmitWork implements Work {
  readonly taskId = null;
  readonly weightBytes: number;
  readonly alsoNeeds: readonly string[];
  private readonly assignedId: string;

  constructor(
    readonly submission: Submission,
    private readonly context: SubmitContext,
    private readonly settle: (answer: SubmitAnswer) => void,
  ) {
    this.assignedId = submission.taskId ?? context.newId();
    this.alsoNeeds = namedTasks(submission.policy);
    this.weightBytes = 1_024 + submission.application.argsJson.length;
  }

  judge(batch: Batch): Judged {
    const { submission } = this;
    const { namespace, idempotencyKey, policy } = submission;
    const holder = batch.admitted(namespace, idempotencyKey);
    if (holder !== undefined) return this.join(holder);
    if (submission.refusalIfNew !== null) return this.context.refuseUnlessKnown(this, submission.refusalIfNew);
    const cause = causeOf(submission);
    const family = this.alsoNeeds.length === 0 ? null : findFamily(batch, policy, cause);
    if (family?.kind === 'later') return 'later';
    if (family?.kind === 'refused') return this.refuseFor(batch, family.refusal, family.about);
    const admission = admissionOf(withParent(submission, family?.parent ?? null), this.assignedId, batch.now);
    const notBeforeAt = policy.notBeforeAtMs !== null && policy.notBeforeAtMs > batch.now ? policy.notBeforeAtMs : null;
    const draft = Draft.admit(admission, this.context.newId(), notBeforeAt, cause);
    const unit = batch.admit(draft, submission.taskId === null ? 'made' : 'wanted');
    if (family !== null) joinFamily(batch, unit, draft, family, cause);
    unit.answer(this, (commit) => {
      if (commit !== null) this.settle({ kind: 'created', record: commit.record, sequence: commit.firstSequence });
    });
  }

  /** What this batch only means to commit refuses nobody before it is committed. */
  private refuseFor(batch: Batch, refusal: Refusal, about: string): void {
    const refuseIt = (): void => this.context.refuseUnlessKnown(this, refusal);
    const unit = batch.unitOf(about);
    if (unit === undefined) refuseIt();
    else unit.answer(this, refuseIt);
  }

  /** The batch admits this very key. An id that is taken is for the store to say: it looks at keys first. */
  private join(holder: RecordUnit): void {
    const { record } = holder.draft;
    holder.answer(this, (commit) =>
      this.settle(compare(this.submission, { kind: 'task', record: commit?.record ?? record })),
    );
  }

  lost(verdict: Exclude<PlanVerdict, { kind: 'committed' }>): 'retry' | 'answered' {
    // Only a verdict on what this very submission asked for is its answer: that it joined may want another id.
    if (verdict.kind === 'duplicate') {
      this.context.resolveDuplicate(this, verdict.taskId);
      return 'answered';
    }
    if (verdict.kind === 'task_id_taken' && verdict.taskId === this.submission.taskId) {
      this.settle(idTaken(verdict.taskId));
      return 'answered';
    }
    return 'retry';
  }

  /** The task that holds the key, as read after the store said so. */
  resolve(original: Found): void {
    this.settle(compare(this.submission, original));
  }

  refuse(refusal: Refusal): void {
    this.settle({ kind: 'refused', refusal });
  }
}

/** A detached child that named no generation of its parent means the current one. */
function withParent(submission: Submission, found: TaskRecord | null): Submission {
  const { policy } = submission;
  const { parent } = policy;
  if (parent === null || parent.generationId !== '' || found === null) return submission;
  return { ...submission, policy: { ...policy, parent: { ...parent, generationId: found.generationId } } };
}

function compare(submission: Submission, original: Found): SubmitAnswer {
  const { application, applicationHash, policy } = submission;
  if (original.kind === 'purged') {
    const { taskId, tombstone } = original;
    if (tombstone.applicationHash === applicationHash) return { kind: 'purged', task: original };
    const hashes = applicationFieldHashes(application);
    return keyTaken(submission, taskId, applicationDifferenceByHash(tombstone.fieldHashes, hashes));
  }
  const { record } = original;
  const { admission } = record;
  if (admission.applicationHash === applicationHash) {
    return { kind: 'replayed', record, ignoredPolicyFields: policyDifferences(admission.policy, policy) };
  }
  return keyTaken(submission, admission.taskId, applicationDifference(admission.application, application));
}

function keyTaken(
  { idempotencyKey }: Submission,
  taskId: string,
  { pointers, truncated }: ApplicationDifference,
): SubmitAnswer {
  return {
    kind: 'refused',
    refusal: refuse('IDEMPOTENCY_CONFLICT', 'this idempotency key was admitted with another application', {
      idempotency_key: idempotencyKey,
      task_id: taskId,
      pointers: JSON.stringify(pointers),
      truncated: String(truncated),
    }),
  };
}

function idTaken(taskId: string): SubmitAnswer {
  return {
    kind: 'refused',
    refusal: refuse('TASK_ID_TAKEN', 'this task id was admitted under another idempotency key', { task_id: taskId }),
  };
}

function admissionOf(submission: Submission, taskId: string, createdAt: number): Admission {
  const { namespace, queue, idempotencyKey, application, applicationHash, policy } = submission;
  const { source, scheduleId, actor, principal, traceContext } = submission;
  return {
    taskId,
    namespace,
    queue,
    idempotencyKey,
    application,
    applicationHash,
    policy,
    source,
    scheduleId,
    actor,
    principal,
    traceContext,
    createdAt,
  };
}

function causeOf(submission: Submission): Cause {
  const { actor, principal, source, causation } = submission;
  return { actor, principal, source, reason: null, causation, authoritativeAt: null };
}
