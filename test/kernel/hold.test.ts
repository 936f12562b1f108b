// Suspend, resume, the next generation, skip, release (lifecycle.md section 3).

import { describe, expect, it } from 'vitest';
import { judge } from '../../src/kernel/decide.js';
import type { ResumeIntent } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { NO_GUARDS } from '../../src/kernel/intent.js';
import { OPERATOR, SAYINGS, STRANGER, T0, TaskWorld, WORKER, cause, settle } from './task-world.js';

const HOLD = { kind: 'suspend', lease: null, cause: OPERATOR } as const;

function resume(overrides: Partial<ResumeIntent> = {}): ResumeIntent {
  return {
    kind: 'resume',
    newGenerationId: null,
    spareGenerationId: 'spare',
    inputJson: null,
    cause: OPERATOR,
    ...overrides,
  };
}

function running(): TaskWorld {
  return TaskWorld.admit()
    .claim()
    .say('accepted', 'started', 'progress', 'checkpoint')
    .at(T0 + 100);
}

describe('suspending', () => {
  it('by its holder gives the attempt back and keeps what it left', () => {
    const world = running().say('suspended');
    expect(world.record).toMatchObject({
      status: 'suspended',
      attempt: 0,
      epoch: 1,
      lease: null,
      ownerStopped: true,
      progress: 0.5,
      reason: { code: 'run.suspended.worker' },
    });
    expect(world.record.checkpointEvent).not.toBeNull();
  });

  it('by an operator spends the attempt and revokes the lease', () => {
    const world = running().apply(HOLD);
    expect(world.record).toMatchObject({
      status: 'suspended',
      attempt: 1,
      lease: null,
      ownerStopped: false,
      reason: { code: 'run.suspended.operator' },
      endedLease: { epoch: 1, eventSeq: 4 },
    });
  });

  it('of what waits clears the retry and spends nothing', () => {
    const world = TaskWorld.admit().claim().say('failed').apply(HOLD);
    expect(world.record).toMatchObject({ status: 'suspended', attempt: 1, retryAt: null, ownerStopped: true });
  });

  it('gives its sender’s reason where there is one', () => {
    const why = { code: 'app.budget.spent', summary: 'no money', evidenceRefs: ['bill-1'] };
    expect(running().apply({ ...HOLD, cause: cause('operator', why) }).record.reason).toEqual(why);
  });
});

describe('resuming the same generation', () => {
  it('queues it now, with its attempts and what it left', () => {
    const world = running()
      .apply(HOLD)
      .at(T0 + 900)
      .apply(resume());
    expect(world.eventTypes).toEqual(['reeve.task.resumed']);
    expect(world.record).toMatchObject({
      status: 'queued',
      generation: 1,
      generationId: 'generation-1',
      attempt: 1,
      epoch: 1,
      queuedAt: T0 + 900,
      inputEvent: null,
      everClaimed: true,
      reason: { code: 'run.resumed.operator' },
    });
  });

  it('with input names the event that has it, for the next claim', () => {
    const world = running()
      .apply(HOLD)
      .at(T0 + 900)
      .apply(resume({ inputJson: '"go on"' }));
    expect(world.record.inputEvent).toBe(world.record.lastEvent);
    expect(world.draft.events[0]).toMatchObject({ data: { inputJson: '"go on"' } });
    expect(world.record.reason?.code).toBe('run.resumed.input');
    world.claim({ sessionId: STRANGER });
    expect(world.record).toMatchObject({ status: 'running', epoch: 2, attempt: 2 });
  });
});

describe('a new generation', () => {
  const finished = (): TaskWorld =>
    running()
      .requestCancel(9_000)
      .say('completed')
      .at(T0 + 900);

  it('begins afresh: no result, error, cancellation, attempts, progress or input', () => {
    const world = finished().apply(resume({ newGenerationId: 'generation-2' }));
    expect(world.eventTypes).toEqual(['reeve.task.generation_started']);
    expect(world.record).toMatchObject({
      status: 'queued',
      generation: 2,
      generationId: 'generation-2',
      generationStartedAt: T0 + 900,
      everClaimed: false,
      aep: 'submitted',
      attempt: 0,
      handBacks: 0,
      queuedAt: T0 + 900,
      cancellation: null,
      ownerStopped: true,
      progress: null,
      message: null,
      ending: null,
      resultEvent: null,
      checkpointEvent: null,
      inputEvent: null,
      startedAt: null,
      finishedAt: null,
    });
  });

  it('goes on counting events, revisions and epochs', () => {
    const world = finished();
    const { revision, lastEvent } = world.record;
    world.apply(resume());
    expect(world.record).toMatchObject({ revision: revision + 1, lastEvent: lastEvent + 1, epoch: 1 });
    expect(world.claim().record.epoch).toBe(2);
  });

  it('takes the id it is given, or the fresh one', () => {
    expect(finished().apply(resume()).record.generationId).toBe('spare');
    expect(finished().apply(resume({ newGenerationId: 'mine' })).record.generationId).toBe('mine');
  });

  it('may begin with input', () => {
    const world = finished().apply(resume({ inputJson: '"again"' }));
    expect(world.record.inputEvent).toBe(world.record.lastEvent);
  });

  it('follows a suspended one when it is named', () => {
    const world = running()
      .apply(HOLD)
      .apply(resume({ newGenerationId: 'generation-2' }));
    expect(world.record).toMatchObject({ status: 'queued', generation: 2, attempt: 0, ownerStopped: true });
  });

  it('with the id of the current one is MALFORMED, with the field named', () => {
    for (const world of [finished(), running().apply(HOLD)]) {
      const verdict = judge(world.draft, resume({ newGenerationId: 'generation-1' }));
      expect(verdict).toMatchObject({ refusal: { reason: 'MALFORMED', metadata: { field: 'new_generation_id' } } });
    }
  });

  it('with the id of one before is MALFORMED too, where those are known', () => {
    const formerGenerationIds = new Set(['generation-0', 'generation-1']);
    const verdict = judge(finished().draft, resume({ newGenerationId: 'generation-0', formerGenerationIds }));
    expect(verdict).toMatchObject({ refusal: { reason: 'MALFORMED', metadata: { field: 'new_generation_id' } } });
    const fresh = judge(finished().draft, resume({ newGenerationId: 'generation-2', formerGenerationIds }));
    expect(fresh).toEqual({ kind: 'applied' });
  });

  it('refuses the words of the owner before it', () => {
    const world = running()
      .apply(HOLD)
      .apply(resume({ newGenerationId: 'generation-2' }));
    world.claim({ sessionId: STRANGER }).at(T0 + 901);
    const late = { sessionId: 'session-a', generation: 1, epoch: 1, answeredThrough: 4 } as const;
    const report = world.report([{ seq: 5, saying: SAYINGS.completed }], late);
    expect(world.hearReport(report).refused.map(({ refusal }) => refusal.reason)).toEqual(['LEASE_LOST']);
    expect(world.record.status).toBe('running');
  });
});

describe('skipping', () => {
  it('ends what has not started, with its reason', () => {
    const why = reason('run.skipped.policy', 'too late', ['schedule-3']);
    const world = TaskWorld.admit()
      .at(T0 + 5)
      .apply({ kind: 'skip', cause: cause('schedule', why) });
    expect(world.record).toMatchObject({ status: 'skipped', aep: 'cancelled', reason: why, finishedAt: T0 + 5 });
  });
});

describe('releasing', () => {
  it('gives the task back at once in its place, with the attempt and a checkpoint', () => {
    const world = running();
    world.apply({ kind: 'release', lease: world.proof(), checkpointJson: '{"next":9}', cause: WORKER });
    expect(world.eventTypes).toEqual(['reeve.task.checkpoint', 'reeve.task.retry_scheduled', 'reeve.task.requeued']);
    expect(world.record).toMatchObject({
      status: 'queued',
      attempt: 0,
      epoch: 1,
      queuedAt: T0,
      lease: null,
      ownerStopped: true,
      checkpointEvent: world.draft.events[0]?.number,
      reason: { code: 'run.requeued.released' },
    });
  });

  it('is the worker’s own act', () => {
    const world = running();
    world.apply({ kind: 'release', lease: world.proof(), checkpointJson: null, cause: WORKER });
    expect(world.draft.events.map((event) => event.cause.actor)).toEqual([WORKER.actor, WORKER.actor]);
  });
});

describe('a settlement from outside', () => {
  it('fails what does not run', () => {
    const world = TaskWorld.admit()
      .at(T0 + 5)
      .apply(settle('failed', { ending: null }));
    const code = 'run.failed.operator';
    expect(world.record).toMatchObject({ status: 'failed', reason: { code }, finishedAt: T0 + 5, ownerStopped: true });
    expect(world.record.ending?.error).toBeNull();
  });

  it('times nothing out: what does not run has its deadlines for that', () => {
    const world = TaskWorld.admit();
    expect(judge(world.draft, settle('timed_out'), NO_GUARDS)).toMatchObject({
      refusal: { reason: 'INVALID_TRANSITION', metadata: { from_status: 'queued', to_status: 'timed_out' } },
    });
  });
});
