// Timers: all kinds, through one next_due_at (lifecycle.md section 7); what a tick makes of them; spans beyond 24.8
// days; the quiet period after a pause of the service.

import { describe, expect, it } from 'vitest';
import { MAX_DURATION_MS } from '../../src/kernel/admission/policy-bounds.js';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import { judge } from '../../src/kernel/decide.js';
import { nextDueAt, timersOf, workerDeadline } from '../../src/kernel/timers.js';
import { STATE_NAMES, recordIn } from './decide-states.js';
import { OPERATOR, T0, TaskWorld, WORKER } from './task-world.js';

const ALL_SPANS: TaskPolicyInput = {
  timeoutMs: 1_000_000,
  startByMs: 500_000,
  attemptTimeoutMs: 200_000,
  progressTimeoutMs: 100_000,
  retry: { initialMs: 10_000 },
};

function kinds(world: TaskWorld): (readonly [string, number])[] {
  return timersOf(world.record).map(({ kind, dueAt }) => [kind, dueAt - T0] as const);
}

const QUEUED = [
  ['total_deadline', 1_000_000],
  ['start_by', 500_000],
];

describe('the timers of a record', () => {
  it('queued: total and start-by', () => {
    expect(kinds(TaskWorld.admit(ALL_SPANS))).toEqual(QUEUED);
  });

  it('delayed: also not-before, until it passed', () => {
    const world = TaskWorld.admit({ ...ALL_SPANS, notBeforeAtMs: T0 + 90_000 });
    expect(kinds(world)).toEqual([...QUEUED, ['not_before', 90_000]]);
    world.at(T0 + 90_000).tick();
    expect(kinds(world)).toEqual(QUEUED);
  });

  it('a claim not yet accepted: accept alone beside the total; start-by rests, and no attempt has begun', () => {
    const world = TaskWorld.admit(ALL_SPANS)
      .at(T0 + 1_000)
      .claim();
    expect(kinds(world)).toEqual([
      ['total_deadline', 1_000_000],
      ['accept', 6_000],
    ]);
  });

  it('a claim that nobody accepted is handed back, however short an attempt may be, and spends none', () => {
    const world = TaskWorld.admit({ attemptTimeoutMs: 1_000, retry: { maxAttempts: 1 } }).claim();
    expect(nextDueAt(world.record)).toBe(T0 + 5_000);
    world.at(T0 + 5_000).tick();
    expect(world.record).toMatchObject({ status: 'queued', attempt: 0, handBacks: 1, epoch: 1 });
    world.claim().say('accepted');
    world.at(T0 + 6_000).tick();
    expect(world.record).toMatchObject({ status: 'failed', attempt: 1 });
  });

  it('accepted: no-progress from the latest word, of whatever kind', () => {
    const world = TaskWorld.admit(ALL_SPANS)
      .at(T0 + 1_000)
      .claim()
      .at(T0 + 2_000)
      .say('accepted');
    expect(kinds(world)).toEqual([
      ['total_deadline', 1_000_000],
      ['attempt_time_out', 201_000],
      ['no_progress', 102_000],
    ]);
    for (const saying of ['started', 'progress', 'output', 'checkpoint', 'blocked', 'started'] as const) {
      const now = world.draft.now + 1_000;
      world.at(now).say(saying);
      expect(kinds(world).at(-1), saying).toEqual(['no_progress', now - T0 + 100_000]);
    }
  });

  it('a refused word and a cancel receipt are no progress', () => {
    const world = TaskWorld.admit(ALL_SPANS)
      .claim()
      .say('accepted')
      .requestCancel()
      .at(T0 + 9_000);
    world.hear('blocked');
    world.apply({ kind: 'receipt', lease: world.proof(), acknowledged: true, cause: WORKER });
    expect(kinds(world).at(-1)).toEqual(['no_progress', 100_000]);
  });

  it('a pending cancel with grace: also the grace', () => {
    const world = TaskWorld.admit(ALL_SPANS)
      .claim()
      .say('accepted')
      .at(T0 + 500)
      .requestCancel(30_000);
    expect(kinds(world)).toEqual([
      ['total_deadline', 1_000_000],
      ['cancel_grace', 30_500],
      ['attempt_time_out', 200_000],
      ['no_progress', 100_000],
    ]);
  });

  it('retry_wait: total and retry; start-by only if no attempt ever started', () => {
    const neverStarted = TaskWorld.admit(ALL_SPANS).claim().say('failed');
    expect(kinds(neverStarted)).toEqual([...QUEUED, ['retry', 10_000]]);
    const started = TaskWorld.admit(ALL_SPANS).claim().say('accepted', 'started', 'failed');
    expect(kinds(started)).toEqual([
      ['total_deadline', 1_000_000],
      ['retry', 10_000],
    ]);
  });

  it('suspended: total, and start-by if it never started', () => {
    const suspend = { kind: 'suspend', lease: null, cause: OPERATOR } as const;
    expect(kinds(TaskWorld.admit(ALL_SPANS).apply(suspend))).toEqual(QUEUED);
    expect(kinds(TaskWorld.admit(ALL_SPANS).claim().say('accepted', 'started').apply(suspend))).toEqual([
      ['total_deadline', 1_000_000],
    ]);
  });

  it('a new generation starts them afresh', () => {
    const world = TaskWorld.admit(ALL_SPANS)
      .requestCancel()
      .at(T0 + 7_000);
    world.apply({ kind: 'resume', newGenerationId: null, spareGenerationId: 'g2', inputJson: null, cause: OPERATOR });
    expect(kinds(world)).toEqual([
      ['total_deadline', 1_007_000],
      ['start_by', 507_000],
    ]);
  });

  it('without spans: none but accept and retry', () => {
    const world = TaskWorld.admit();
    expect(kinds(world)).toEqual([]);
    expect(nextDueAt(world.record)).toBeNull();
    expect(kinds(world.claim())).toEqual([['accept', 5_000]]);
    expect(kinds(world.say('accepted'))).toEqual([]);
  });

  it('terminal: none', () => {
    for (const state of ['completed', 'failed', 'timed_out', 'cancelled', 'skipped'] as const) {
      expect(timersOf(recordIn(state))).toEqual([]);
      expect(nextDueAt(recordIn(state))).toBeNull();
    }
  });

  it.each(STATE_NAMES)('%s: next_due_at is the earliest', (state) => {
    const due = timersOf(recordIn(state)).map((timer) => timer.dueAt);
    expect(nextDueAt(recordIn(state))).toBe(due.length === 0 ? null : Math.min(...due));
  });

  it('excuse a silence for accept and no-progress only', () => {
    const excusable = STATE_NAMES.flatMap((state) => timersOf(recordIn(state))).filter((timer) => timer.excusable);
    expect([...new Set(excusable.map((timer) => timer.kind))].sort()).toEqual(['accept', 'no_progress']);
  });
});

describe('the deadline a worker is told', () => {
  it('is the earlier of total and attempt, or none', () => {
    const of = (input: TaskPolicyInput): number | null =>
      workerDeadline(
        TaskWorld.admit(input)
          .at(T0 + 1_000)
          .claim().record,
      );
    expect(of({})).toBeNull();
    expect(of({ timeoutMs: 9_000 })).toBe(T0 + 9_000);
    expect(of({ attemptTimeoutMs: 9_000 })).toBe(T0 + 10_000);
    expect(of({ timeoutMs: 9_000, attemptTimeoutMs: 9_000 })).toBe(T0 + 9_000);
    expect(of({ timeoutMs: 90_000, attemptTimeoutMs: 9_000 })).toBe(T0 + 10_000);
  });
});

describe('a tick', () => {
  it('a millisecond early changes nothing, on time it fires', () => {
    for (const state of STATE_NAMES) {
      const record = recordIn(state);
      const due = nextDueAt(record);
      if (due === null) continue;
      const at = (now: number): string => {
        const { draft } = TaskWorld.of(record, now);
        return judge(draft, { kind: 'tick', quietSince: 0, chance: 0.5 }).kind;
      };
      expect([state, at(due - 1), at(due)]).toEqual([state, 'unchanged', 'applied']);
    }
  });

  it('leaves nothing due behind, whatever one timer uncovers', () => {
    const world = TaskWorld.admit({ startByMs: 5_000 })
      .claim()
      .at(T0 + 5_000)
      .tick();
    expect(world.eventTypes).toEqual(['reeve.task.retry_scheduled', 'reeve.task.requeued', 'task.timed_out']);
    expect(world.record.reason?.code).toBe('run.timed_out.start_by');
  });

  it('judges the total deadline before what else is due', () => {
    const world = TaskWorld.admit({ ...ALL_SPANS, timeoutMs: 5_000 })
      .claim()
      .say('accepted')
      .requestCancel(1_000);
    world.at(T0 + 2_000_000).tick();
    expect(world.record).toMatchObject({ status: 'timed_out', ownerStopped: false });
    expect(world.record.ending?.error).toEqual({
      code: 'task_timeout',
      message: 'task order-17 timed out',
      retryable: true,
      detailsJson: null,
    });
  });

  it('an attempt that timed out is retried after its back-off, and the last one fails', () => {
    for (const [span, kind] of [
      ['attemptTimeoutMs', 'attempt_timed_out'],
      ['progressTimeoutMs', 'no_progress'],
    ] as const) {
      const world = TaskWorld.admit({ [span]: 60_000, retry: { maxAttempts: 2 } })
        .claim()
        .say('accepted', 'started');
      world.at(T0 + 60_000).tick();
      expect(world.record).toMatchObject({
        status: 'retry_wait',
        attempt: 1,
        retryAt: T0 + 61_000,
        ownerStopped: false,
        reason: { code: `run.retry.${kind}` },
      });
      world.at(T0 + 61_000).tick();
      world
        .claim()
        .say('accepted')
        .at(T0 + 121_000)
        .tick();
      expect(world.record).toMatchObject({
        status: 'failed',
        ownerStopped: false,
        reason: { code: `run.failed.${kind}` },
      });
    }
  });
});

describe('a span longer than 24.8 days', () => {
  const LONG: readonly number[] = [2 ** 31 - 1, 2 ** 31, 90 * 86_400_000, MAX_DURATION_MS];

  it.each(LONG)('of %i ms fires when it has passed and not before', (span) => {
    const fires = (world: TaskWorld, from: number): void => {
      expect(nextDueAt(world.record)).toBe(from + span);
      expect(judge(world.fork(from + span - 1).draft, { kind: 'tick', quietSince: 0, chance: 0.5 }).kind).toBe(
        'unchanged',
      );
      expect(judge(world.fork(from + span).draft, { kind: 'tick', quietSince: 0, chance: 0.5 }).kind).toBe('applied');
    };
    fires(TaskWorld.admit({ timeoutMs: span }), T0);
    fires(TaskWorld.admit({ startByMs: span }), T0);
    fires(TaskWorld.admit({ notBeforeAtMs: T0 + span }), T0);
    fires(TaskWorld.admit({ attemptTimeoutMs: span }).claim().say('accepted'), T0);
    fires(
      TaskWorld.admit({ progressTimeoutMs: span })
        .claim()
        .at(T0 + 3)
        .say('accepted'),
      T0 + 3,
    );
    fires(TaskWorld.admit().claim().say('accepted').requestCancel(span), T0);
    fires(
      TaskWorld.admit({ retry: { initialMs: span } })
        .claim()
        .say('failed'),
      T0,
    );
  });
});

describe('the quiet period after a pause of the service', () => {
  const TTL = 12_000;

  it.each([
    ['accept', TaskWorld.admit().claim({ sessionTtlMs: TTL }), T0 + 5_000],
    [
      'no_progress',
      TaskWorld.admit({ progressTimeoutMs: 5_000 }).claim({ sessionTtlMs: TTL }).say('accepted'),
      T0 + 5_000,
    ],
  ])('excuses %s for one TTL of the session, no longer', (_kind, world, due) => {
    const quietSince = due + 100_000;
    const at = (now: number): string => judge(world.fork(now).draft, { kind: 'tick', quietSince, chance: 0.5 }).kind;
    expect(at(quietSince)).toBe('unchanged');
    expect(at(quietSince + TTL - 1)).toBe('unchanged');
    expect(at(quietSince + TTL)).toBe('applied');
  });

  it.each([
    ['total_deadline', TaskWorld.admit({ timeoutMs: 5_000 }).claim().say('accepted')],
    ['attempt_time_out', TaskWorld.admit({ attemptTimeoutMs: 5_000 }).claim().say('accepted')],
    ['cancel_grace', TaskWorld.admit().claim().say('accepted').requestCancel(5_000)],
    ['start_by', TaskWorld.admit({ startByMs: 5_000 })],
    [
      'retry',
      TaskWorld.admit({ retry: { initialMs: 5_000 } })
        .claim()
        .say('failed'),
    ],
    ['not_before', TaskWorld.admit({ notBeforeAtMs: T0 + 5_000 })],
  ])('does not excuse %s', (_kind, world) => {
    const verdict = judge(world.fork(T0 + 5_000).draft, { kind: 'tick', quietSince: T0 + 5_000, chance: 0.5 });
    expect(verdict.kind).toBe('applied');
  });

  it('an excused timer does not hide another that is due', () => {
    const world = TaskWorld.admit({ progressTimeoutMs: 1_000 }).claim().say('accepted').requestCancel(5_000);
    world.at(T0 + 5_000).tick(T0 + 5_000);
    expect(world.record.reason?.code).toBe('run.cancelled.grace_expired');
  });
});

describe('a delayed start', () => {
  it('is not claimable before its time, and is from then on, also before its timer fired', () => {
    const world = TaskWorld.admit({ notBeforeAtMs: T0 + 90_000 });
    expect(() => world.at(T0 + 89_999).claim()).toThrow('INVALID_TRANSITION');
    world.at(T0 + 90_000).claim();
    expect(world.record).toMatchObject({ status: 'running', notBeforeAt: null });
  });

  it('waits in its queue from that time', () => {
    const world = TaskWorld.admit({ notBeforeAtMs: T0 + 90_000 });
    expect(world.record.queuedAt).toBe(T0 + 90_000);
    world.apply({ kind: 'suspend', lease: null, cause: OPERATOR }).at(T0 + 10);
    world.apply({ kind: 'resume', newGenerationId: null, spareGenerationId: 's', inputJson: null, cause: OPERATOR });
    expect(world.record).toMatchObject({ status: 'queued', queuedAt: T0 + 90_000, notBeforeAt: T0 + 90_000 });
  });

  it('is over with its generation', () => {
    const world = TaskWorld.admit({ notBeforeAtMs: T0 + 90_000 })
      .requestCancel()
      .at(T0 + 10);
    expect(world.record.notBeforeAt).toBeNull();
    world.apply({ kind: 'resume', newGenerationId: null, spareGenerationId: 's', inputJson: null, cause: OPERATOR });
    expect(world.record).toMatchObject({ status: 'queued', queuedAt: T0 + 10, notBeforeAt: null });
  });
});
