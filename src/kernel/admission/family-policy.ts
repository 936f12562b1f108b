/**
 * What a submission says of other tasks: its parent, and the tasks that must end before it (lifecycle.md section 8).
 *
 * Owns the form of both. Whether those tasks exist, and what has become of them, is judged against their records,
 * elsewhere.
 */
import { type Checked, accepted, malformed } from './admission-refusal.js';
import { checkTaskId } from './identifiers.js';

/** The parent generation that a child belongs to. */
export interface ParentLink {
  readonly taskId: string;
  /** Opaque; empty only for a detached child that means whichever is current. */
  readonly generationId: string;
  /** Attached: shares its parent's fate. Detached: only remembers its parent. */
  readonly attached: boolean;
}

export const DEPENDENCY_CONDITIONS = ['succeeded', 'terminal'] as const;
export type DependencyCondition = (typeof DEPENDENCY_CONDITIONS)[number];

export interface Dependency {
  readonly taskId: string;
  readonly condition: DependencyCondition;
}

export const ON_UNSATISFIED = ['skip', 'fail', 'cancel'] as const;
/** What becomes of a task when one of its dependencies can no longer be satisfied. */
export type OnUnsatisfied = (typeof ON_UNSATISFIED)[number];

export interface FamilyPolicy {
  readonly parent: ParentLink | null;
  /** In the order given; no id twice. */
  readonly dependsOn: readonly Dependency[];
  readonly onUnsatisfied: OnUnsatisfied;
}

/** One task waits for few others; whoever has more to wait for gathers them under one. */
export const MAX_DEPENDENCIES = 100;
const MAX_GENERATION_ID_LENGTH = 128;
const NONE: readonly Dependency[] = [];

export function resolveFamily(input: {
  readonly parent?: ParentLink | null | undefined;
  readonly dependsOn?: readonly Dependency[] | null | undefined;
  readonly onUnsatisfied?: OnUnsatisfied | null | undefined;
}): Checked<FamilyPolicy> {
  const parent = input.parent ?? null;
  const problem = parent === null ? null : parentProblem(parent);
  if (problem !== null) return problem;
  const dependsOn = resolveDependencies(input.dependsOn ?? NONE);
  if (!dependsOn.ok) return dependsOn;
  // Its parent cannot complete while it lives: neither would ever end.
  const deadlock = parent?.attached ? dependsOn.value.findIndex(({ taskId }) => taskId === parent.taskId) : -1;
  if (deadlock >= 0) {
    return malformed(`depends_on[${String(deadlock)}].task_id`, 'an attached child does not wait for its parent');
  }
  return accepted({ parent, dependsOn: dependsOn.value, onUnsatisfied: input.onUnsatisfied ?? 'skip' });
}

/** Refuses a task that names itself. */
export function namesItself(taskId: string, { parent, dependsOn }: FamilyPolicy): ReturnType<typeof malformed> | null {
  if (parent?.taskId === taskId) return malformed('parent.task_id', 'a task is not its own parent');
  const at = dependsOn.findIndex((dependency) => dependency.taskId === taskId);
  return at < 0 ? null : malformed(`depends_on[${String(at)}].task_id`, 'a task does not wait for itself');
}

function parentProblem({ taskId, generationId, attached }: ParentLink): ReturnType<typeof malformed> | null {
  const id = checkTaskId(taskId);
  if (!id.ok) return malformed('parent.task_id', id.refusal.detail);
  if (attached && generationId === '') {
    return malformed('parent.generation_id', 'an attached child names the generation of its parent');
  }
  return generationId.length > MAX_GENERATION_ID_LENGTH
    ? malformed('parent.generation_id', `must not be longer than ${String(MAX_GENERATION_ID_LENGTH)} characters`)
    : null;
}

/** The same id twice counts once; with two conditions it could mean either. */
function resolveDependencies(given: readonly Dependency[]): Checked<readonly Dependency[]> {
  if (given.length === 0) return accepted(NONE);
  if (given.length > MAX_DEPENDENCIES) {
    return malformed('depends_on', `must not be more than ${String(MAX_DEPENDENCIES)}`);
  }
  const conditions = new Map<string, DependencyCondition>();
  for (const [at, { taskId, condition }] of given.entries()) {
    const field = `depends_on[${String(at)}]`;
    const id = checkTaskId(taskId);
    if (!id.ok) return malformed(`${field}.task_id`, id.refusal.detail);
    if ((conditions.get(taskId) ?? condition) !== condition) {
      return malformed(`${field}.condition`, 'the same task is named before with another condition');
    }
    conditions.set(taskId, condition);
  }
  return accepted([...conditions].map(([taskId, condition]) => ({ taskId, condition })));
}

export function sameParent(left: ParentLink | null, right: ParentLink | null): boolean {
  if (left === null || right === null) return left === right;
  if (left.taskId !== right.taskId || left.attached !== right.attached) return false;
  // A detached child that named no generation was given the current one.
  return left.generationId === right.generationId || (!left.attached && right.generationId === '');
}

export function sameDependencies(left: readonly Dependency[], right: readonly Dependency[]): boolean {
  if (left.length !== right.length) return false;
  const conditions = new Map(left.map(({ taskId, condition }) => [taskId, condition]));
  return right.every(({ taskId, condition }) => conditions.get(taskId) === condition);
}
