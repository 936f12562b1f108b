/**
 * What a new task's parent and dependencies mean for its admission (lifecycle.md section 8): each is read as the batch
 * has it, and the write of the new task checks that it was so. The first child and the first waiter of a task are noted
 * on it, so that the end of a task whom nobody follows costs nothing.
 */
import type { Dependency } from '../kernel/admission/family-policy.js';
import type { TaskPolicy } from '../kernel/admission/policy.js';
import type { Cause } from '../kernel/cause.js';
import { dependencyImpossible, holdForDependencies, satisfies } from '../kernel/dependencies.js';
import type { Draft } from '../kernel/draft.js';
import type { Follower } from '../kernel/event.js';
import { familyRefusal, noteFollower } from '../kernel/family.js';
import type { TaskRecord } from '../kernel/record.js';
import type { Refusal } from '../kernel/refusal.js';
import { isTerminal } from '../kernel/status.js';
import { type Batch, isRecord, refusalFor } from './batch.js';
import type { RecordUnit } from './unit.js';

/** The tasks whose records an admission needs. */
export function namedTasks({ parent, dependsOn }: TaskPolicy): readonly string[] {
  if (parent === null && dependsOn.length === 0) return NOBODY;
  const upstream = dependsOn.map(({ taskId }) => taskId);
  return parent === null ? upstream : [parent.taskId, ...upstream];
}

const NOBODY: readonly string[] = [];

export type Family =
  | { readonly kind: 'found'; readonly parent: TaskRecord | null; readonly upstream: readonly Upstream[] }
  /** Another decision of this batch rests on a task that would have to be changed, or it is full: the next judges it. */
  | { readonly kind: 'later' }
  /** `about`: the task whose record says so. */
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly about: string };

interface Upstream extends Dependency {
  readonly record: TaskRecord;
}

/** Looks everybody up and notes on them that they are followed; nothing is noted when it is not `found`. */
export function findFamily(batch: Batch, { parent: link, dependsOn }: TaskPolicy, cause: Cause): Family {
  const notes: (readonly [Draft, Follower])[] = [];
  let parent: TaskRecord | null = null;
  if (link !== null) {
    const found = find(batch, link.taskId, 'policy.parent.task_id', link.attached ? 'child' : null);
    if (found.kind !== 'task') return found;
    const refusal = link.attached ? familyRefusal(link, found.record) : null;
    if (refusal !== null) return { kind: 'refused', refusal, about: link.taskId };
    if (found.draft !== null) notes.push([found.draft, 'child']);
    parent = found.record;
  }
  const upstream: Upstream[] = [];
  for (const [at, dependency] of dependsOn.entries()) {
    const found = find(batch, dependency.taskId, `policy.depends_on[${String(at)}].task_id`, 'waiter');
    if (found.kind !== 'task') return found;
    if (found.draft !== null) notes.push([found.draft, 'waiter']);
    upstream.push({ ...dependency, record: found.record });
  }
  if (!batch.takeNotes(notes.length)) return { kind: 'later' };
  for (const [draft, by] of notes) noteFollower(draft, by, cause);
  return { kind: 'found', parent, upstream };
}

type Found =
  | { readonly kind: 'task'; readonly record: TaskRecord; readonly draft: Draft | null }
  | Exclude<Family, { readonly kind: 'found' }>;

/** The task as it stands, with its draft where a first follower is still to be noted on it. */
function find(batch: Batch, taskId: string, field: string, by: Follower | null): Found {
  const record = batch.peek(taskId);
  if (!isRecord(record)) return { kind: 'refused', refusal: refusalFor(record, taskId, { field }), about: taskId };
  const noted = by === null || isTerminal(record.status) || (by === 'child' ? record.hasChildren : record.hasWaiters);
  if (noted) return { kind: 'task', record, draft: null };
  if (batch.isSealed(taskId)) return { kind: 'later' };
  const located = batch.locate(taskId);
  if (located.kind === 'refused') return { kind: 'refused', refusal: located.refusal, about: taskId };
  const { draft } = located.unit;
  // Being found may have ended it: its own parent is over.
  if (draft === null || isTerminal(draft.record.status)) return { kind: 'later' };
  return { kind: 'task', record: draft.record, draft };
}

/** Ties the new task to its family: reads, edges, and a hold or an end where a dependency says so. */
export function joinFamily(batch: Batch, unit: RecordUnit, draft: Draft, family: Family, cause: Cause): void {
  if (family.kind !== 'found') return;
  const { taskId: waiterId, policy } = draft.record.admission;
  if (policy.parent?.attached === true && family.parent !== null) draft.parent = batch.read(unit, policy.parent.taskId);
  let impossible: string | null = null;
  let open = 0;
  for (const { taskId, condition } of family.upstream) {
    const record = batch.read(unit, taskId);
    if (record === null) continue;
    const { status, generation } = record;
    if (!isTerminal(status)) {
      unit.openEdge({ kind: 'edge_opened', upstreamId: taskId, generation, waiterId, condition });
      open += 1;
    } else if (!satisfies(status, condition)) impossible ??= taskId;
  }
  if (impossible !== null) {
    unit.forgetEdges();
    dependencyImpossible(draft, { taskId: impossible, causation: cause.causation });
  } else if (open > 0) holdForDependencies(draft, open, cause);
}
