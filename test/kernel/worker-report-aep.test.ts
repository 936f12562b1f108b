// A worker's own words against the AEP table, per attempt (lifecycle.md section 2): every attempt state × every
// saying, with what it leaves, and the same again under a pending cancellation.

import { describe, expect, it } from 'vitest';
import type { WorkerSaying } from '../../src/kernel/intent.js';
import type { CancellationPolicy } from '../../src/kernel/admission/policy.js';
import { SAYINGS, T0, TaskWorld, failure } from './task-world.js';

type Saying = WorkerSaying['kind'];

const SAYING_KINDS = Object.keys(SAYINGS) as Saying[];

const ATTEMPT_STATES = ['submitted', 'accepted', 'started', 'progress', 'output', 'blocked'] as const;
type AttemptState = (typeof ATTEMPT_STATES)[number];

const PATHS: Readonly<Record<AttemptState, readonly Saying[]>> = {
  submitted: [],
  accepted: ['accepted'],
  started: ['accepted', 'started'],
  progress: ['accepted', 'started', 'progress'],
  output: ['accepted', 'started', 'output'],
  blocked: ['accepted', 'started', 'blocked'],
};

const ILLEGAL = 'ILLEGAL_EVENT';
const MALFORMED = 'MALFORMED';

// What is left: the attempt's state while it runs, else the status; ILLEGAL for what the table forbids.
type Outcome = string;

const NOT_STARTED = {
  progress: ILLEGAL,
  output: ILLEGAL,
  blocked: ILLEGAL,
  completed: ILLEGAL,
  failed: 'retry_wait',
  cancelled: 'cancelled',
  timed_out: 'timed_out',
  suspended: 'suspended',
  malformed: MALFORMED,
} as const;

const WORKING = {
  accepted: ILLEGAL,
  started: ILLEGAL,
  progress: 'progress',
  output: 'output',
  blocked: 'blocked',
  completed: 'completed',
  failed: 'retry_wait',
  cancelled: 'cancelled',
  timed_out: 'timed_out',
  suspended: 'suspended',
  malformed: MALFORMED,
} as const;

const TABLE: Readonly<Record<AttemptState, Readonly<Record<Saying, Outcome>>>> = {
  submitted: { accepted: 'accepted', started: ILLEGAL, checkpoint: 'submitted', ...NOT_STARTED },
  accepted: { accepted: ILLEGAL, started: 'started', checkpoint: 'accepted', ...NOT_STARTED },
  started: { ...WORKING, checkpoint: 'started' },
  progress: { ...WORKING, checkpoint: 'progress' },
  output: { ...WORKING, checkpoint: 'output' },
  blocked: {
    ...WORKING,
    started: 'started',
    output: ILLEGAL,
    blocked: ILLEGAL,
    completed: ILLEGAL,
    checkpoint: 'blocked',
  },
};

function attempt(state: AttemptState, cancellationPolicy: CancellationPolicy = 'COOPERATIVE'): TaskWorld {
  const world = TaskWorld.admit({ cancellationPolicy }).claim();
  return world.say(...PATHS[state]).at(T0 + 1_000);
}

function hear(world: TaskWorld, saying: WorkerSaying | Saying): Outcome {
  const before = structuredClone(world.record);
  const { answer } = world.hear(saying);
  expect(answer.judgedThrough).toBe((before.lease?.eventSeq ?? 0) + 1);
  const refusal = answer.refused[0]?.refusal;
  if (refusal !== undefined) {
    expect(world.record).toEqual(before);
    expect(world.draft.events).toEqual([]);
    return refusal.reason;
  }
  return world.record.lease?.attemptState ?? world.record.status;
}

describe.each(ATTEMPT_STATES)('an attempt that is %s', (state) => {
  it.each(SAYING_KINDS)('says %s', (saying) => {
    expect(hear(attempt(state), saying)).toBe(TABLE[state][saying]);
  });

  it('leaves the event with its worker number, and the mark on it', () => {
    const world = attempt(state);
    const seq = (world.record.lease?.eventSeq ?? 0) + 1;
    world.say('checkpoint');
    expect(world.draft.events.map((event) => event.workerSeq)).toEqual([seq]);
    expect(world.record.lease?.eventSeq).toBe(seq);
  });

  it('leaves its last mark with the lease that ended', () => {
    for (const saying of ['failed', 'cancelled', 'timed_out', 'suspended'] as const) {
      const world = attempt(state);
      const seq = (world.record.lease?.eventSeq ?? 0) + 1;
      world.say(saying);
      expect(world.record.lease).toBeNull();
      expect(world.record.endedLease).toEqual({ epoch: 1, sessionId: 'session-a', eventSeq: seq });
    }
  });
});

describe('the second attempt', () => {
  it.each(ATTEMPT_STATES)('begins at submitted after one that was %s', (state) => {
    const world = attempt(state).say('failed');
    world.at(world.record.retryAt ?? 0).tick();
    world.claim();
    for (const saying of SAYING_KINDS) {
      expect(hear(world.fork(T0 + 10_000), saying), saying).toBe(TABLE.submitted[saying]);
    }
  });
});

// Under a pending request the AEP table is the same; what differs is how an ending is settled.
const ENDINGS: readonly (readonly [string, WorkerSaying, Record<CancellationPolicy, string>])[] = [
  ['completed', SAYINGS.completed, { COOPERATIVE: 'completed', FENCED: 'CANCELLATION_FENCED' }],
  ['a retryable failure', SAYINGS.failed, { COOPERATIVE: 'cancelled', FENCED: 'cancelled' }],
  [
    'a failure for good',
    { kind: 'failed', ending: failure('tool_error', false), retryAfterMs: null },
    { COOPERATIVE: 'failed', FENCED: 'cancelled' },
  ],
  ['cancelled', SAYINGS.cancelled, { COOPERATIVE: 'cancelled', FENCED: 'cancelled' }],
  ['timed_out', SAYINGS.timed_out, { COOPERATIVE: 'timed_out', FENCED: 'cancelled' }],
  ['suspended', SAYINGS.suspended, { COOPERATIVE: 'CANCELLATION_FENCED', FENCED: 'CANCELLATION_FENCED' }],
];

describe.each(['COOPERATIVE', 'FENCED'] as const)('with a cancellation pending, %s', (cancellationPolicy) => {
  it.each(ENDINGS)('%s', (_name, saying, expected) => {
    const world = attempt('started', cancellationPolicy)
      .requestCancel()
      .at(T0 + 2_000);
    expect(hear(world, saying)).toBe(expected[cancellationPolicy]);
  });

  it.each(ATTEMPT_STATES)('an attempt that is %s may go on saying what the table allows', (state) => {
    for (const saying of ['accepted', 'started', 'progress', 'output', 'blocked', 'checkpoint'] as const) {
      const world = attempt(state, cancellationPolicy)
        .requestCancel()
        .at(T0 + 2_000);
      expect(hear(world, saying), saying).toBe(TABLE[state][saying]);
    }
  });
});

describe('what a worker says along with its event', () => {
  it('is kept: progress, message, the blocked reason, the checkpoint', () => {
    const world = attempt('started');
    world.say({ kind: 'progress', progress: 0.25, message: 'a quarter' });
    expect(world.record).toMatchObject({ progress: 0.25, message: 'a quarter' });
    world.say({ kind: 'progress', progress: null, message: null });
    expect(world.record).toMatchObject({ progress: 0.25, message: 'a quarter' });
    world.say({ kind: 'blocked', reason: 'an index' });
    expect(world.record.blockedReason).toBe('an index');
    world.say('started');
    expect(world.record.blockedReason).toBeNull();
    world.say('checkpoint');
    expect(world.record.checkpointEvent).toBe(world.record.lastEvent);
  });

  it('is kept: its reason for cancelling or suspending, in its own words', () => {
    const cancelled = attempt('started').say({ kind: 'cancelled', ending: null, reason: 'the user left' });
    expect(cancelled.record.reason).toMatchObject({ code: 'run.cancelled.unasked', summary: 'the user left' });
    const suspended = attempt('started').say({ kind: 'suspended', reason: 'needs an answer' });
    expect(suspended.record.reason).toMatchObject({ code: 'run.suspended.worker', summary: 'needs an answer' });
    const silent = attempt('started').say('suspended');
    expect(silent.record.reason).toMatchObject({
      code: 'run.suspended.worker',
      summary: 'suspended by the lease holder',
    });
  });

  it('is kept: the result in the history, the ending in the record', () => {
    const ending = { ...failure(), exitCode: 3, invocationId: 'run-9', evidenceRefs: ['log://9'] };
    const world = attempt('started').say({ kind: 'completed', resultJson: '{"n":1}', ending });
    expect(world.record).toMatchObject({ status: 'completed', ending, resultEvent: world.record.lastEvent });
    expect(world.draft.events.at(-1)).toMatchObject({ data: { resultJson: '{"n":1}', ending } });
  });

  it('is the wish for a retry delay, which the arithmetic gives way to', () => {
    const world = attempt('started').say({ ...SAYINGS.failed, retryAfterMs: 77_000 });
    expect(world.record.retryAt).toBe(T0 + 1_000 + 77_000);
  });
});
