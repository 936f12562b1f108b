// The contract said once more, as plainly as possible, for command sequences to be compared with: statuses, attempts,
// epochs, cancellation and families (lifecycle.md sections 2, 3, 6, 7 and 8). It imports nothing of what it is compared
// with, keeps no history, and tells followers at once.

export type Status =
  | 'queued'
  | 'waiting_dependency'
  | 'running'
  | 'retry_wait'
  | 'suspended'
  | 'completed'
  | 'failed'
  | 'timed_out'
  | 'cancelled'
  | 'skipped';

export interface ModelTask {
  status: Status;
  generation: number;
  attempt: number;
  epoch: number;
  asked: boolean;
  owner: string | null;
  accepted: boolean;
  /** Where the attempt is in the AEP table. */
  attemptState: string;
  handBacks: number;
  retryAt: number;
  /** Tasks that it waits for, and the generation of each. */
  readonly waitsFor: Map<string, { readonly generation: number; readonly succeeded: boolean }>;
}

export interface ModelShape {
  readonly parent: { readonly id: string; readonly attached: boolean } | null;
  readonly dependsOn: readonly { readonly id: string; readonly succeeded: boolean }[];
}

export type Said =
  | 'accepted'
  | 'started'
  | 'progress'
  | 'blocked'
  | 'completed'
  | 'failed'
  | 'failed for good'
  | 'cancelled'
  | 'suspended';

export const MAX_ATTEMPTS = 2;
export const RETRY_MS = 1_000;
const MAX_HAND_BACKS = 10;

/** What each word may follow (the AEP table, row by row). */
const FOLLOWS: Readonly<Record<Said, readonly string[]>> = {
  accepted: ['submitted'],
  started: ['accepted', 'blocked'],
  progress: ['started', 'blocked', 'progress'],
  blocked: ['started', 'progress'],
  completed: ['started', 'progress'],
  failed: ['submitted', 'accepted', 'started', 'blocked', 'progress'],
  'failed for good': ['submitted', 'accepted', 'started', 'blocked', 'progress'],
  cancelled: ['submitted', 'accepted', 'started', 'blocked', 'progress'],
  // Reeve's own word: it has no row, and is legal wherever an attempt runs.
  suspended: ['submitted', 'accepted', 'started', 'blocked', 'progress'],
};

const OVER: readonly Status[] = ['completed', 'failed', 'timed_out', 'cancelled', 'skipped'];

export class ContractModel {
  readonly tasks = new Map<string, ModelTask>();
  now = 0;

  constructor(
    private readonly shapes: ReadonlyMap<string, ModelShape>,
    private readonly fenced: boolean,
  ) {}

  submit(id: string): string {
    const shape = this.shapes.get(id) ?? { parent: null, dependsOn: [] };
    if (this.tasks.has(id)) return 'replayed';
    const { parent } = shape;
    if (parent !== null && !this.tasks.has(parent.id)) return 'TASK_NOT_FOUND';
    if (parent?.attached === true && !this.takesChildren(parent.id)) return 'PARENT_CONSTRAINT';
    if (shape.dependsOn.some((dependency) => !this.tasks.has(dependency.id))) return 'TASK_NOT_FOUND';
    const task = fresh(1, 0);
    this.tasks.set(id, task);
    const over = shape.dependsOn.map((dependency) => ({ ...dependency, task: this.task(dependency.id) }));
    if (over.some(({ task: { status }, succeeded }) => isOver(status) && succeeded && status !== 'completed')) {
      task.status = 'skipped';
      return 'created';
    }
    for (const { id: upstream, succeeded, task: of } of over) {
      if (!isOver(of.status)) task.waitsFor.set(upstream, { generation: of.generation, succeeded });
    }
    if (task.waitsFor.size > 0) task.status = 'waiting_dependency';
    return 'created';
  }

  claim(id: string, session: string): string {
    const task = this.task(id);
    if (isOver(task.status)) return 'TERMINAL_GENERATION';
    if (task.status !== 'queued') return 'INVALID_TRANSITION';
    Object.assign(task, { status: 'running', owner: session, accepted: false, attemptState: 'submitted' });
    task.attempt += 1;
    task.epoch += 1;
    return 'applied';
  }

  say(id: string, session: string, generation: number, epoch: number, said: Said): string {
    const task = this.task(id);
    const holds = task.status === 'running' && task.owner === session && task.epoch === epoch;
    if (!holds || task.generation !== generation) return 'LEASE_LOST';
    if (!FOLLOWS[said].includes(task.attemptState)) return 'ILLEGAL_EVENT';
    switch (said) {
      case 'completed':
        return this.complete(id);
      case 'failed':
        return this.fail(id, true);
      case 'failed for good':
        return this.fail(id, false);
      case 'cancelled':
        return this.end(id, 'cancelled');
      case 'suspended':
        return this.suspend(id, true);
      default:
        if (said === 'accepted') Object.assign(task, { accepted: true, handBacks: 0 });
        task.attemptState = said;
        return 'applied';
    }
  }

  /** By somebody without a lease. */
  settle(id: string, outcome: 'completed' | 'failed' | 'timed_out'): string {
    const { status } = this.task(id);
    if (status === 'running') return 'LEASE_REQUIRED';
    if (isOver(status)) return 'TERMINAL_GENERATION';
    return outcome === 'failed' ? this.end(id, outcome) : 'INVALID_TRANSITION';
  }

  cancel(id: string): string {
    const task = this.task(id);
    if (isOver(task.status)) return 'TERMINAL_GENERATION';
    if (task.asked) return 'unchanged';
    return this.ask(id);
  }

  hold(id: string): string {
    const { status } = this.task(id);
    if (isOver(status)) return 'TERMINAL_GENERATION';
    return status === 'suspended' ? 'INVALID_TRANSITION' : this.suspend(id, false);
  }

  resume(id: string, anew: boolean): string {
    const task = this.task(id);
    const over = isOver(task.status);
    if (!over && task.status !== 'suspended') return 'INVALID_TRANSITION';
    if (!over && !anew) {
      task.status = task.waitsFor.size > 0 ? 'waiting_dependency' : 'queued';
      return 'applied';
    }
    const parent = this.shapes.get(id)?.parent;
    if (parent?.attached === true && !this.takesChildren(parent.id)) return 'PARENT_CONSTRAINT';
    if (this.liveChildren(id).length > 0) return 'CHILDREN_ACTIVE';
    this.tasks.set(id, fresh(task.generation + 1, task.epoch));
    return 'applied';
  }

  skip(id: string): string {
    const { status } = this.task(id);
    if (isOver(status)) return 'TERMINAL_GENERATION';
    return status === 'queued' || status === 'waiting_dependency' ? this.end(id, 'skipped') : 'INVALID_TRANSITION';
  }

  sessionLost(id: string, session: string): string {
    const task = this.task(id);
    if (task.status !== 'running' || task.owner !== session) return 'unchanged';
    if (!task.accepted) return this.takeBack(id);
    if (task.asked) return this.end(id, 'cancelled');
    if (task.attempt >= MAX_ATTEMPTS) return this.end(id, 'failed');
    return this.requeue(id, 0);
  }

  handBack(id: string, session: string, epoch: number): string {
    const task = this.task(id);
    const holds = task.status === 'running' && task.owner === session && task.epoch === epoch;
    return holds && !task.accepted ? this.takeBack(id) : 'unchanged';
  }

  release(id: string, session: string, epoch: number): string {
    const task = this.task(id);
    if (task.status !== 'running' || task.owner !== session || task.epoch !== epoch) return 'LEASE_LOST';
    if (task.asked) return this.end(id, 'cancelled');
    task.attempt -= 1;
    return this.requeue(id, 0);
  }

  tick(id: string): string {
    const task = this.task(id);
    if (task.status !== 'retry_wait' || task.retryAt > this.now) return 'unchanged';
    task.status = 'queued';
    return 'applied';
  }

  private complete(id: string): string {
    if (this.fenced && this.task(id).asked) return 'CANCELLATION_FENCED';
    return this.liveChildren(id).length > 0 ? 'CHILDREN_ACTIVE' : this.end(id, 'completed');
  }

  private fail(id: string, retryable: boolean): string {
    const task = this.task(id);
    if (task.asked && (retryable || this.fenced)) return this.end(id, 'cancelled');
    if (!retryable || task.attempt >= MAX_ATTEMPTS) return this.end(id, 'failed');
    Object.assign(task, { handBacks: 0, owner: null, status: 'retry_wait' });
    task.retryAt = this.now + RETRY_MS * 2 ** (task.attempt - 1);
    return 'applied';
  }

  private suspend(id: string, byHolder: boolean): string {
    const task = this.task(id);
    if (task.asked) return 'CANCELLATION_FENCED';
    if (byHolder) task.attempt -= 1;
    Object.assign(task, { status: 'suspended', owner: null });
    return 'applied';
  }

  /** Never accepted: the attempt comes back; from the third in a row on it waits 1, 2, 4 … s, and the tenth ends it. */
  private takeBack(id: string): string {
    const task = this.task(id);
    if (task.asked) return this.end(id, 'cancelled');
    const handBacks = task.handBacks + 1;
    if (handBacks >= MAX_HAND_BACKS) return this.end(id, 'failed');
    task.attempt -= 1;
    this.requeue(id, handBacks <= 2 ? 0 : 1_000 * 2 ** (handBacks - 3));
    task.handBacks = handBacks;
    return 'applied';
  }

  private requeue(id: string, delayMs: number): string {
    const task = this.task(id);
    Object.assign(task, { status: delayMs > 0 ? 'retry_wait' : 'queued', owner: null, handBacks: 0 });
    task.retryAt = this.now + delayMs;
    return 'applied';
  }

  private ask(id: string): string {
    const task = this.task(id);
    task.asked = true;
    if (task.status !== 'running') return this.end(id, 'cancelled');
    for (const child of this.liveChildren(id)) if (!this.task(child).asked) this.ask(child);
    return 'applied';
  }

  private end(id: string, status: Status): string {
    const task = this.task(id);
    Object.assign(task, { status, owner: null });
    if (status === 'cancelled') task.asked = true;
    task.waitsFor.clear();
    for (const child of this.liveChildren(id)) this.end(child, status === 'skipped' ? 'cancelled' : status);
    for (const [waiter, { waitsFor, status: where }] of this.tasks) {
      const edge = waitsFor.get(id);
      if (edge?.generation !== task.generation) continue;
      if (edge.succeeded && status !== 'completed') this.end(waiter, where === 'suspended' ? 'cancelled' : 'skipped');
      else waitsFor.delete(id);
      const left = this.task(waiter);
      if (left.status === 'waiting_dependency' && left.waitsFor.size === 0) left.status = 'queued';
    }
    return 'applied';
  }

  private takesChildren(parentId: string): boolean {
    const { generation, status, asked } = this.task(parentId);
    return generation === 1 && !isOver(status) && !asked;
  }

  /** Attached, and not over. Children name the first generation of their parent. */
  private liveChildren(id: string): readonly string[] {
    const children = [...this.shapes].filter(([, { parent }]) => parent?.id === id && parent.attached);
    return children
      .map(([child]) => child)
      .filter((child) => this.tasks.has(child) && !isOver(this.task(child).status));
  }

  private task(id: string): ModelTask {
    const task = this.tasks.get(id);
    if (task === undefined) throw new Error(`${id} was never admitted`);
    return task;
  }
}

function isOver(status: Status): boolean {
  return OVER.includes(status);
}

function fresh(generation: number, epoch: number): ModelTask {
  const nobody = { asked: false, owner: null, accepted: false, attemptState: 'submitted', handBacks: 0, retryAt: 0 };
  return { status: 'queued', generation, attempt: 0, epoch, ...nobody, waitsFor: new Map() };
}
