/**
 * A draft: one record being carried through a decision, with the events that carry it.
 * Numbers events and revisions, derives the AEP projection and folds every event at once, so that a chain of
 * intents decides on what the one before left. Nothing here is visible outside until it is committed.
 */
import { type AepState, project, statesMissingBeforeCompletion } from './aep.js';
import type { Cause } from './cause.js';
import { isDeclaredEdge } from './edges.js';
import { type EventBody, type TaskEvent, isFact } from './event.js';
import { applyEvent, beginRecord } from './fold.js';
import type { Admission, TaskRecord } from './record.js';
import type { TaskStatus } from './status.js';

export interface EventContext {
  readonly cause: Cause;
  /** Facts that change the status name the new one. */
  readonly to?: TaskStatus;
  readonly workerSeq?: number;
  readonly inferred?: boolean;
  /** Set by a claim and by a new generation; everything else inherits the record's. */
  readonly epoch?: number;
  readonly generation?: number;
}

/**
 * What a decision may know of other records, read only: the parent of an attached child (null when there is none to be
 * found, undefined when it was not looked for), and how many attached children of this task live.
 */
export interface FamilyContext {
  readonly parent: TaskRecord | null | undefined;
  readonly liveChildren: number;
  /** The permit that it was seen to wait for. A write does not rest on it: there the store says so itself. */
  readonly permitAwaited: string | null;
}

export const NO_FAMILY: FamilyContext = { parent: undefined, liveChildren: 0, permitAwaited: null };

export class Draft implements FamilyContext {
  readonly events: TaskEvent[] = [];
  parent: TaskRecord | null | undefined = undefined;
  liveChildren = 0;
  permitAwaited: string | null = null;

  private constructor(
    private current: TaskRecord,
    /** Epoch ms, the store's clock. */
    readonly now: number,
  ) {}

  static of(record: TaskRecord, now: number): Draft {
    return new Draft(record, now);
  }

  /** A new task, its first event already in the draft. */
  static admit(admission: Admission, generationId: string, notBeforeAt: number | null, cause: Cause): Draft {
    const event: TaskEvent = {
      type: 'task.submitted',
      data: { generationId, notBeforeAt },
      number: 1,
      generation: 1,
      revision: 1,
      from: null,
      to: 'queued',
      aep: 'submitted',
      epoch: null,
      workerSeq: null,
      inferred: false,
      at: admission.createdAt,
      cause,
    };
    const draft = new Draft(beginRecord(admission, event), admission.createdAt);
    draft.events.push(event);
    return draft;
  }

  get record(): TaskRecord {
    return this.current;
  }

  append(body: EventBody, context: EventContext): void {
    const { current } = this;
    const fact = isFact(body.type);
    const to = context.to ?? null;
    if (to !== null && !isDeclaredEdge(current.status, to)) {
      // The families of intents judge edges before they get here; this is the last line, not a refusal.
      throw new Error(`undeclared edge ${current.status} → ${to}`);
    }
    const target = aepTarget(body);
    // Type and data belong together because they come from one body; spelled out, since a spread of differently
    // shaped bodies costs more than all the rest of a decision.
    const event = {
      type: body.type,
      data: body.data,
      number: current.lastEvent + 1,
      generation: context.generation ?? current.generation,
      revision: fact ? current.revision + 1 : null,
      from: to === null ? null : current.status,
      to,
      aep: target === 'submitted' ? target : target && project(current.aep, target),
      epoch: context.epoch ?? current.lease?.epoch ?? null,
      workerSeq: context.workerSeq ?? null,
      inferred: context.inferred ?? false,
      at: this.now,
      cause: context.cause,
    } as TaskEvent;
    this.current = applyEvent(current, event);
    this.events.push(event);
  }

  /** Supplies the stream events that the AEP table wants before a completion, marked `inferred`. */
  inferBeforeCompletion(cause: Cause): void {
    const attempt = this.current.lease?.attemptState ?? this.current.aep;
    for (const state of statesMissingBeforeCompletion(attempt)) {
      if (state === 'accepted') this.append({ type: 'task.accepted', data: {} }, { cause, inferred: true });
      else this.append({ type: 'task.started', data: {} }, { cause, inferred: true });
    }
  }
}

/** Where an event would move the projection; null when it does not belong to it. */
function aepTarget(body: EventBody): AepState | null {
  switch (body.type) {
    case 'task.submitted':
    case 'reeve.task.generation_started':
      return 'submitted';
    case 'task.accepted':
      return 'accepted';
    case 'task.started':
      return 'started';
    case 'task.progress':
      return 'progress';
    case 'task.output':
      return 'output';
    case 'task.blocked':
    case 'reeve.task.retry_scheduled':
    case 'reeve.task.suspended':
      return 'blocked';
    case 'task.completed':
      return 'completed';
    case 'task.failed':
      return 'failed';
    case 'task.timed_out':
      return 'timed_out';
    case 'task.cancelled':
    case 'reeve.task.skipped':
      return 'cancelled';
    case 'reeve.task.claimed':
    case 'reeve.task.checkpoint':
    case 'reeve.task.requeued':
    case 'reeve.task.ready':
    case 'reeve.task.followed':
    case 'reeve.task.held':
    case 'reeve.task.dependencies_met':
    case 'reeve.task.resumed':
    case 'reeve.task.policy_updated':
    case 'task.cancel.requested':
    case 'reeve.task.cancel_hastened':
    case 'reeve.task.cancel_delivered':
    case 'reeve.task.cancel_acknowledged':
    case 'reeve.task.repaired':
      return null;
  }
}
