// What the events of the authority's own rules carry, to the last field: who did it, why, and the values that a reader
// of the history relies on.

import { describe, expect, it } from 'vitest';
import { holdForDependencies, dependencyImpossible, dependencySatisfied } from '../../src/kernel/dependencies.js';
import { Draft } from '../../src/kernel/draft.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import { followParent, noteFollower } from '../../src/kernel/family.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { NO_ENDING } from '../../src/kernel/settlement.js';
import { nextDueAt } from '../../src/kernel/timers.js';
import {
  OPERATOR,
  OWNER,
  PRODUCER,
  T0,
  TaskWorld,
  WORKER,
  admission,
  cause,
  claim,
  failure,
  policy,
  settle,
} from './task-world.js';

const UPSTREAM = { taskId: 'upstream', causation: 'upstream~e4' };

/** By the holder of the first claim, and for good. */
function heldSettle(outcome: 'failed' | 'timed_out'): Intent {
  const lease = { epoch: 1, sessionId: OWNER };
  return settle(outcome, { lease, ending: outcome === 'failed' ? failure('broken', false) : null, cause: WORKER });
}

const REAPER = { actor: { type: 'reaper', id: 'reeve' }, principal: 'reeve', source: 'authority' };
const started = (input = {}): TaskWorld => TaskWorld.admit(input).claim().say('accepted', 'started');
const lastOf = (world: TaskWorld): TaskEvent | undefined => world.draft.events.at(-1);

describe('a timer that fires', () => {
  it.each([
    ['attempt_timeout', 'the attempt exceeded its time-out', { attemptTimeoutMs: 60_000 }, 'attempt_timed_out'],
    ['no_progress', 'the attempt made no progress in time', { progressTimeoutMs: 60_000 }, 'no_progress'],
  ])('says %s with the error, the cause of the retry and the reaper', (code, message, input, why) => {
    const world = started(input).at(T0 + 60_000);
    world.tick();
    expect(lastOf(world)).toMatchObject({
      type: 'reeve.task.retry_scheduled',
      data: {
        cause: 'time_out',
        attemptGivenBack: false,
        ending: { ...NO_ENDING, error: { code, message, retryable: true, detailsJson: null } },
      },
      cause: { ...REAPER, reason: { code: `run.retry.${why}` } },
    });
  });

  it('is the earliest of them, in whichever order they stand', () => {
    const spans = { timeoutMs: 90_000, attemptTimeoutMs: 60_000, progressTimeoutMs: 70_000 };
    expect(nextDueAt(started(spans).record)).toBe(T0 + 60_000);
    expect(nextDueAt(started({ ...spans, timeoutMs: 50_000 }).record)).toBe(T0 + 50_000);
    expect(nextDueAt(started({ ...spans, progressTimeoutMs: 40_000 }).record)).toBe(T0 + 40_000);
  });

  it('ends a delay as the reaper, without a reason', () => {
    const world = TaskWorld.admit({ notBeforeAtMs: T0 + 500 }).at(T0 + 500);
    world.tick();
    expect(lastOf(world)).toMatchObject({ type: 'reeve.task.ready', cause: { ...REAPER, reason: null } });
  });

  it('times out as FENCED says only when there was a request', () => {
    const world = started({ cancellationPolicy: 'FENCED', timeoutMs: 60_000 }).at(T0 + 60_000);
    expect(world.tick().record).toMatchObject({ status: 'timed_out', ownerStopped: false });
    // What nobody holds any more has an owner that stopped, or has not.
    const waits = started({ timeoutMs: 60_000, retry: { initialMs: 300_000 } })
      .say('failed')
      .at(T0 + 60_000);
    expect(waits.tick().record).toMatchObject({ status: 'timed_out', ownerStopped: true });
  });
});

describe('the end of a lease', () => {
  it('is the reaper’s, and says lease_lost', () => {
    const world = started();
    world.apply({ kind: 'session_lost', sessionId: OWNER, cause: cause('reaper') });
    const [scheduled, requeued] = world.draft.events.slice(-2);
    expect(scheduled).toMatchObject({ data: { cause: 'lease_lost', attemptGivenBack: false }, cause: REAPER });
    expect(requeued).toMatchObject({ type: 'reeve.task.requeued', cause: REAPER });
  });

  it('under a request is the reaper’s too', () => {
    const world = started().requestCancel();
    world.apply({ kind: 'session_lost', sessionId: OWNER, cause: cause('reaper') });
    expect(lastOf(world)).toMatchObject({ cause: { ...REAPER, reason: { code: 'run.cancelled.owner_lost' } } });
  });

  it('that nobody ever took, for the tenth time, is the reaper’s as well', () => {
    const world = TaskWorld.admit().claim();
    for (let times = 1; times < 10; times++) {
      world.handBack();
      if (world.record.status === 'retry_wait') world.at(world.record.retryAt ?? 0).tick();
      world.claim();
    }
    world.handBack();
    expect(lastOf(world)).toMatchObject({
      to: 'failed',
      cause: { ...REAPER, reason: { code: 'run.failed.undeliverable' } },
    });
  });

  it('by a release is the worker’s own, its checkpoint before it', () => {
    const world = started();
    const lease = world.proof();
    world.apply({ kind: 'release', lease, checkpointJson: '{"page":3}', cause: WORKER });
    expect(world.draft.events.slice(-3)).toMatchObject([
      { type: 'reeve.task.checkpoint', data: { checkpointJson: '{"page":3}' }, cause: WORKER },
      { type: 'reeve.task.retry_scheduled', data: { cause: 'release' }, cause: { actor: WORKER.actor } },
      { type: 'reeve.task.requeued', cause: { actor: WORKER.actor, reason: { code: 'run.requeued.released' } } },
    ]);
  });
});

describe('what a holder says through an intent', () => {
  it('is its own failure: it stopped, and the wish for a delay is kept', () => {
    const world = started();
    world.apply(settle('failed', { lease: world.proof(), cause: WORKER, retryAfterMs: 77 }));
    expect(lastOf(world)).toMatchObject({ data: { cause: 'failure', retryAt: T0 + 77 } });
    expect(world.record.ownerStopped).toBe(true);
    const last = started({ retry: { maxAttempts: 1 } });
    last.apply(settle('failed', { lease: last.proof(), cause: WORKER }));
    expect(last.record).toMatchObject({ status: 'failed', ownerStopped: true });
  });

  it('is its own time-out, with its ending or the one that every time-out has', () => {
    const spoken = started({ cancellationPolicy: 'FENCED' });
    spoken.apply(settle('timed_out', { lease: spoken.proof(), ending: failure('slow'), cause: WORKER }));
    expect(spoken.record).toMatchObject({ status: 'timed_out', ending: { error: { code: 'slow' } } });
    const silent = started();
    silent.apply(settle('timed_out', { lease: silent.proof(), cause: WORKER }));
    expect(silent.record.ending).toEqual({
      ...NO_ENDING,
      error: { code: 'task_timeout', message: 'task order-17 timed out', retryable: true, detailsJson: null },
    });
  });

  it('unasked, is a request without a grace before its settlement', () => {
    const world = started();
    world.apply(settle('cancelled', { lease: world.proof(), cause: WORKER }));
    const request = world.draft.events.at(-2);
    expect(request).toMatchObject({ type: 'task.cancel.requested', data: { graceEndsAt: null } });
  });

  it('without an error is one that may be tried again', () => {
    const world = started();
    world.apply(settle('failed', { lease: world.proof(), cause: WORKER, ending: null }));
    expect(world.record).toMatchObject({ status: 'retry_wait', ending: NO_ENDING });
    expect(NO_ENDING).toEqual({
      error: null,
      exitCode: null,
      errorDetail: null,
      invocationId: null,
      resultRef: null,
      evidenceRefs: [],
    });
  });
});

describe('what anybody says', () => {
  it('is kept with whoever said it', () => {
    const world = started().say('checkpoint', 'blocked').requestCancel();
    const lease = world.proof();
    world.apply({ kind: 'receipt', lease, acknowledged: true, cause: WORKER });
    expect(world.draft.events.map(({ type, cause: { actor }, workerSeq }) => [type, actor.type, workerSeq])).toEqual([
      ['task.submitted', 'producer', null],
      ['reeve.task.claimed', 'worker', null],
      ['task.accepted', 'worker', 1],
      ['task.started', 'worker', 2],
      ['reeve.task.checkpoint', 'worker', 3],
      ['task.blocked', 'worker', 4],
      ['task.cancel.requested', 'producer', null],
      ['reeve.task.cancel_delivered', 'worker', null],
      ['reeve.task.cancel_acknowledged', 'worker', null],
    ]);
    expect(world.draft.events[4]).toMatchObject({ data: { checkpointJson: '{"next":2}' } });
    expect(world.draft.events.every(({ inferred }) => !inferred)).toBe(true);
    expect(world.record.outputTruncated).toBe(false);
  });

  it('the projection names the state of every end', () => {
    const ends: readonly (readonly [Intent, string])[] = [
      [heldSettle('failed'), 'failed'],
      [heldSettle('timed_out'), 'timed_out'],
    ];
    for (const [intent, aep] of ends) expect(lastOf(TaskWorld.admit().claim().apply(intent))?.aep).toBe(aep);
  });

  it('what is no part of the projection says so, whatever it is', () => {
    const hold: Intent = { kind: 'suspend', lease: null, cause: OPERATOR };
    const resume: Intent = {
      kind: 'resume',
      newGenerationId: null,
      spareGenerationId: 'generation-2',
      inputJson: null,
      cause: OPERATOR,
    };
    const world = TaskWorld.admit({ notBeforeAtMs: T0 + 500 });
    noteFollower(world.draft, 'child', OPERATOR);
    holdForDependencies(world.draft, 1, PRODUCER);
    dependencySatisfied(world.draft, UPSTREAM, 0);
    const values = policy({ priority: 1, notBeforeAtMs: T0 + 500 });
    world.apply({ kind: 'update_policy', fields: ['priority'], values, cause: OPERATOR });
    const history = [...world.draft.events, ...world.at(T0 + 500).tick().draft.events];
    world
      .at(T0 + 600)
      .apply(hold)
      .apply(resume)
      .claim()
      .say('accepted', 'checkpoint')
      .requestCancel();
    world.apply({ kind: 'receipt', lease: world.proof(), acknowledged: true, cause: WORKER }).say('cancelled');
    const projected = [...history, ...world.draft.events].map(({ type, aep }) => [type, aep]);
    expect(projected).toStrictEqual([
      ['task.submitted', 'submitted'],
      ['reeve.task.followed', null],
      ['reeve.task.held', null],
      ['reeve.task.dependencies_met', null],
      ['reeve.task.policy_updated', null],
      ['reeve.task.ready', null],
      ['reeve.task.suspended', null],
      ['reeve.task.resumed', null],
      ['reeve.task.claimed', null],
      ['task.accepted', 'accepted'],
      ['reeve.task.checkpoint', null],
      ['task.cancel.requested', null],
      ['reeve.task.cancel_delivered', null],
      ['reeve.task.cancel_acknowledged', null],
      ['task.cancelled', 'cancelled'],
    ]);
  });

  it('a skip and an update carry all of their fields', () => {
    const skipped = TaskWorld.admit();
    const why = { code: 'run.skipped.operator', summary: 'not today', evidenceRefs: [] };
    skipped.apply({ kind: 'skip', cause: cause('operator', why) });
    expect(lastOf(skipped)?.data).toEqual({ resultJson: null, ending: null, ownerStopped: true });
    expect(skipped.record.resultEvent).toBeNull();
    const values = policy({ notBeforeAtMs: T0 });
    const update: Intent = { kind: 'update_policy', fields: ['not_before'], values, cause: OPERATOR };
    const updated = TaskWorld.admit().apply(update);
    // The moment itself is no delay any more.
    expect(lastOf(updated)).toMatchObject({ data: { notBeforeAt: null }, cause: OPERATOR });
    expect(nextDueAt(TaskWorld.admit().apply({ ...update, values: policy({ notBeforeAtMs: T0 + 1 }) }).record)).toBe(
      T0 + 1,
    );
  });

  it('a delay that changes while it is held moves no place in a queue', () => {
    const held = TaskWorld.admit()
      .apply({ kind: 'suspend', lease: null, cause: OPERATOR })
      .at(T0 + 10);
    const { queuedAt } = held.record;
    const values = policy({ notBeforeAtMs: T0 + 5_000 });
    held.apply({ kind: 'update_policy', fields: ['not_before'], values, cause: OPERATOR });
    expect(held.record).toMatchObject({ queuedAt, notBeforeAt: T0 + 5_000 });
    expect(nextDueAt(held.record)).toBeNull();
  });
});

describe('the end of a parent', () => {
  const link = { taskId: 'parent', generationId: 'parent-1', attached: true };

  function parentThat(...intents: readonly Intent[]): TaskRecord {
    const draft = Draft.admit({ ...admission(), taskId: 'parent' }, 'parent-1', null, PRODUCER);
    const world = TaskWorld.of(draft.record, T0);
    for (const intent of intents) world.apply(intent);
    return world.record;
  }

  function childOf(parent: TaskRecord): TaskWorld {
    const world = TaskWorld.admit({ parent: link });
    world.draft.parent = parent;
    expect(followParent(world.draft)).toBe(true);
    return world;
  }

  it.each([
    ['failed', 'parent_failed', 'parent parent failed', false],
    ['timed_out', 'task_timeout', 'parent parent timed out', true],
  ] as const)('as %s is the error of its child, and no request', (outcome, code, message, retryable) => {
    const child = childOf(parentThat(claim(), heldSettle(outcome)));
    expect(child.eventTypes).toEqual(['task.submitted', `task.${outcome}`]);
    expect(lastOf(child)).toMatchObject({
      data: { resultJson: null, ending: { ...NO_ENDING, error: { code, message, retryable, detailsJson: null } } },
      cause: { actor: { type: 'parent', id: 'parent' }, causation: 'parent~e3', source: 'authority' },
    });
  });

  it('as cancelled is a request without a grace and a settlement, with the ending that the child had', () => {
    const cancel: Intent = { kind: 'request_cancellation', graceMs: null, cause: PRODUCER };
    const child = childOf(parentThat(cancel));
    expect(child.draft.events.slice(1)).toMatchObject([
      { type: 'task.cancel.requested', data: { graceEndsAt: null } },
      { type: 'task.cancelled', data: { resultJson: null, ending: null, ownerStopped: true } },
    ]);
    // Asked before, it is not asked again.
    const running = TaskWorld.admit({ parent: link }).claim().requestCancel();
    running.draft.parent = parentThat(cancel);
    followParent(running.draft);
    expect(running.eventTypes.filter((type) => type === 'task.cancel.requested')).toHaveLength(1);
    expect(running.record.status).toBe('cancelled');
  });

  it('asked, not over, leaves a child that waits with all that its end carries', () => {
    const parent = TaskWorld.of(parentThat(), T0).claim().requestCancel().record;
    const child = childOf(parent);
    expect(lastOf(child)?.data).toEqual({ resultJson: null, ending: null, ownerStopped: true });
    expect(lastOf(child)?.cause.causation).toBe('parent~e3');
  });

  it('is nothing to a task without one', () => {
    const { draft } = TaskWorld.admit();
    draft.parent = parentThat(settle('failed'));
    expect(followParent(draft)).toBe(false);
  });

  it('was noted with whoever came first', () => {
    const { draft } = TaskWorld.admit();
    noteFollower(draft, 'child', OPERATOR);
    expect(draft.events.at(-1)).toMatchObject({ data: { by: 'child' }, cause: OPERATOR, revision: null });
  });
});

describe('a dependency', () => {
  const DEPENDENCY = {
    ...{ actor: { type: 'dependency', id: 'upstream' }, principal: 'reeve', source: 'authority' },
    causation: UPSTREAM.causation,
  };

  function waiting(onUnsatisfied: 'fail' | 'cancel' | 'skip', input = {}): TaskWorld {
    const world = TaskWorld.admit({ onUnsatisfied, ...input });
    holdForDependencies(world.draft, 2, PRODUCER);
    return world;
  }

  it('holds with the number it waits for, by whoever submitted it', () => {
    const reason = { code: 'run.held.dependencies' };
    expect(lastOf(waiting('skip'))).toMatchObject({ data: { unsatisfied: 2 }, cause: { ...PRODUCER, reason } });
  });

  it('that is met lets go, also what is held, which stays where it is', () => {
    const world = waiting('skip');
    dependencySatisfied(world.draft, UPSTREAM, 0);
    const reason = { code: 'run.queued.dependencies_met' };
    expect(lastOf(world)).toMatchObject({ to: 'queued', cause: { ...DEPENDENCY, reason } });
    const held = waiting('skip').apply({ kind: 'suspend', lease: null, cause: OPERATOR });
    const { queuedAt, reason: why } = held.record;
    held.at(T0 + 10);
    dependencySatisfied(held.draft, UPSTREAM, 0);
    expect(lastOf(held)).toMatchObject({ to: null, cause: { ...DEPENDENCY, reason: null } });
    expect(held.record).toMatchObject({ status: 'suspended', openDependencies: false, queuedAt, reason: why });
  });

  it('that is met at the very moment of a delayed start leaves no delay', () => {
    const world = waiting('skip', { notBeforeAtMs: T0 + 500 }).at(T0 + 500);
    dependencySatisfied(world.draft, UPSTREAM, 0);
    expect(world.record).toMatchObject({ notBeforeAt: null, queuedAt: T0 + 500 });
  });

  it('that never will be fails with an error of its own', () => {
    const world = waiting('fail');
    dependencyImpossible(world.draft, UPSTREAM);
    const message = 'dependency upstream ended otherwise than it had to';
    const error = { code: 'dependency_unsatisfied', message, retryable: false, detailsJson: null };
    expect(lastOf(world)?.data).toEqual({ resultJson: null, ending: { ...NO_ENDING, error }, ownerStopped: true });
  });

  it('or cancels, with a request without a grace', () => {
    const world = waiting('cancel');
    dependencyImpossible(world.draft, UPSTREAM);
    expect(world.draft.events.slice(-2)).toMatchObject([
      { type: 'task.cancel.requested', data: { graceEndsAt: null }, cause: DEPENDENCY },
      { type: 'task.cancelled', cause: DEPENDENCY },
    ]);
  });
});
