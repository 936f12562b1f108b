// UpdatePolicy in the kernel: what the named fields become, what follows from them, and what stays as it was.

import { describe, expect, it } from 'vitest';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import { decide } from '../../src/kernel/decide.js';
import { fold } from '../../src/kernel/fold.js';
import type { Intent } from '../../src/kernel/intent.js';
import { readyOrder } from '../../src/kernel/placement.js';
import { CHANGEABLE_POLICY_FIELDS, type PolicyField } from '../../src/kernel/policy-update.js';
import { nextDueAt, timersOf } from '../../src/kernel/timers.js';
import { OPERATOR, T0, TaskWorld, policy, settle } from './task-world.js';

function update(fields: readonly PolicyField[], input: TaskPolicyInput): Intent {
  return { kind: 'update_policy', fields, values: policy(input), cause: OPERATOR };
}

it('changes the fields named, each of them, and no other', () => {
  const before = TaskWorld.admit({ priority: 1, description: 'before', timeoutMs: 1_000, labels: { a: '1' } }).record;
  const input: TaskPolicyInput = {
    priority: 7,
    labels: { b: '2' },
    description: 'after',
    timeoutMs: 2_000,
    startByMs: 3_000,
    notBeforeAtMs: T0 + 4_000,
    attemptTimeoutMs: 5_000,
    progressTimeoutMs: 6_000,
    retry: { maxAttempts: 9 },
    retentionMs: 8_000,
    cancellationPolicy: 'FENCED',
    concurrencyKey: 'never',
  };
  const all = Object.keys(CHANGEABLE_POLICY_FIELDS) as PolicyField[];
  for (const field of all) {
    const { record } = TaskWorld.of(before, T0).apply(update([field], input));
    const key = CHANGEABLE_POLICY_FIELDS[field];
    expect(record.policy).toEqual({ ...before.policy, [key]: policy(input)[key] });
    expect(record.policy).not.toEqual(before.policy);
    expect(record.admission).toBe(before.admission);
  }
  const { record } = TaskWorld.of(before, T0).apply(update(all, input));
  expect(record.policy).toEqual({ ...policy(input), cancellationPolicy: 'COOPERATIVE', concurrencyKey: null });
});

it('is a fact: a revision, an event, and the record is the fold of its history', () => {
  const world = TaskWorld.admit();
  const { revision, lastEvent, reason } = world.record;
  world.apply(update(['priority'], { priority: 3 }));
  expect(world.record).toMatchObject({ revision: revision + 1, lastEvent: lastEvent + 1, reason, status: 'queued' });
  expect(world.draft.events.at(-1)).toMatchObject({
    type: 'reeve.task.policy_updated',
    from: null,
    to: null,
    aep: null,
    data: { fields: ['priority'] },
  });
  expect(fold(world.admission, world.draft.events)).toEqual(world.record);
});

it('is refused once the generation is over, and outlives it: the next one has the policy as it is', () => {
  const world = TaskWorld.admit().apply(update(['priority'], { priority: 3 }));
  world.apply(settle('failed'));
  expect(decide(world.record, update(['priority'], { priority: 4 }), T0)).toMatchObject({
    kind: 'refused',
    refusal: { reason: 'TERMINAL_GENERATION' },
  });
  world.apply({
    kind: 'resume',
    newGenerationId: null,
    spareGenerationId: 'generation-2',
    inputJson: null,
    cause: OPERATOR,
  });
  expect(world.record.policy.priority).toBe(3);
});

it('obeys its guards', () => {
  const { record } = TaskWorld.admit();
  const guards = { generationId: null, fromStatus: null, expectedRevision: record.revision + 1 };
  const verdict = decide(record, update(['priority'], { priority: 4 }), T0, guards);
  expect(verdict).toEqual({ kind: 'conflict', guard: 'REVISION', observed: String(record.revision) });
});

describe('what follows from the policy', () => {
  it('a priority moves a queued task in its queue', () => {
    const world = TaskWorld.admit();
    expect(readyOrder(world.record)).toBe(T0);
    expect(readyOrder(world.apply(update(['priority'], { priority: 10 })).record)).toBe(T0 - 600_000);
    expect(readyOrder(world.apply(update(['priority'], { priority: -1 })).record)).toBe(T0 + 60_000);
  });

  it('time-outs set or cleared while it waits and while it runs are its timers', () => {
    const world = TaskWorld.admit({ timeoutMs: 50_000 });
    expect(nextDueAt(world.record)).toBe(T0 + 50_000);
    world.apply(update(['timeout', 'start_by'], { startByMs: 9_000 }));
    expect(timersOf(world.record)).toEqual([{ kind: 'start_by', dueAt: T0 + 9_000, excusable: false }]);
    world
      .claim()
      .say('accepted', 'started')
      .at(T0 + 1_000);
    world.apply(update(['attempt_timeout', 'progress_timeout'], { attemptTimeoutMs: 2_000, progressTimeoutMs: 1_500 }));
    expect(timersOf(world.record).map(({ kind, dueAt }) => [kind, dueAt])).toEqual([
      ['attempt_time_out', T0 + 2_000],
      ['no_progress', T0 + 1_500],
    ]);
  });

  it('a time-out that has passed already ends it with the next tick', () => {
    const world = TaskWorld.admit().at(T0 + 10_000);
    world.apply(update(['timeout'], { timeoutMs: 5_000 })).tick();
    expect(world.record).toMatchObject({ status: 'timed_out', reason: { code: 'run.timed_out.deadline' } });
  });

  it('fewer attempts than were spent leave the next failure final', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 5 } })
      .claim()
      .say('accepted', 'started');
    world.apply(update(['retry'], { retry: { maxAttempts: 1 } })).say('failed');
    expect(world.record.status).toBe('failed');
  });

  it('a delayed start takes it out of the ready index until then', () => {
    const world = TaskWorld.admit().apply(update(['not_before'], { notBeforeAtMs: T0 + 5_000 }));
    expect(readyOrder(world.record)).toBeNull();
    expect(nextDueAt(world.record)).toBe(T0 + 5_000);
    world.at(T0 + 5_000).tick();
    expect(readyOrder(world.record)).toBe(T0 + 5_000);
  });

  it('a delay that is ended makes it claimable from that moment; a start in the past is no delay', () => {
    for (const notBeforeAtMs of [null, T0 + 900]) {
      const world = TaskWorld.admit({ notBeforeAtMs: T0 + 5_000 }).at(T0 + 1_000);
      world.apply(update(['not_before'], { notBeforeAtMs }));
      expect(world.record.notBeforeAt).toBeNull();
      expect(readyOrder(world.record)).toBe(T0 + 1_000);
    }
  });

  it('a start in the past leaves the place of a task that waits already', () => {
    const world = TaskWorld.admit().at(T0 + 1_000);
    world.apply(update(['not_before'], { notBeforeAtMs: T0 + 500 }));
    expect(readyOrder(world.record)).toBe(T0);
  });

  it('a delay set while it runs holds the next claim, however it comes back', () => {
    const world = TaskWorld.admit().claim().say('accepted', 'started');
    world.apply(update(['not_before'], { notBeforeAtMs: T0 + 60_000 }));
    expect(world.record.status).toBe('running');
    world
      .say('failed')
      .at(T0 + 1_000)
      .tick();
    expect(world.record).toMatchObject({ status: 'queued', notBeforeAt: T0 + 60_000 });
    expect(readyOrder(world.record)).toBeNull();
    world.at(T0 + 60_000).tick();
    expect(readyOrder(world.record)).toBe(T0 + 60_000);
  });
});
