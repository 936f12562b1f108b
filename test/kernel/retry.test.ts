// Retry and hand-back arithmetic, and who is retried at all (lifecycle.md section 7).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DURATION_MS } from '../../src/kernel/admission/policy-bounds.js';
import { DEFAULT_RETRY_POLICY, MAX_ATTEMPTS_LIMIT } from '../../src/kernel/admission/retry-policy.js';
import { MAX_HAND_BACKS, handBackDelayMs, isRetryable, retryDelayMs } from '../../src/kernel/retry.js';
import { SAYINGS, T0, TaskWorld, failure, policy, settle } from './task-world.js';

const EVEN = { ...DEFAULT_RETRY_POLICY, jitter: 0 };

describe('the delay after a failure', () => {
  it.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [9, 256_000],
    [10, 300_000],
    [11, 300_000],
    [1_000, 300_000],
  ])('of attempt %i is %i ms by default', (attempt, delay) => {
    expect(retryDelayMs(EVEN, attempt, 0.5)).toBe(delay);
  });

  it('is spread by the jitter around its middle', () => {
    const spread = { ...EVEN, jitter: 0.2 };
    expect(retryDelayMs(spread, 1, 0)).toBe(800);
    expect(retryDelayMs(spread, 1, 0.5)).toBe(1_000);
    expect(retryDelayMs(spread, 1, 1)).toBe(1_200);
  });

  it('of a constant policy stays what it is', () => {
    expect(retryDelayMs({ ...EVEN, multiplier: 1, initialMs: 700 }, 50, 0.5)).toBe(700);
  });

  it('of no delay is no delay, however often and however fast it would grow', () => {
    for (const attempt of [1, 2, 310, MAX_ATTEMPTS_LIMIT]) {
      expect(retryDelayMs({ ...EVEN, initialMs: 0, multiplier: 10 }, attempt, 0.5), `attempt ${attempt}`).toBe(0);
    }
  });

  it('is a whole number of ms within its bounds for every policy that is admitted', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: MAX_DURATION_MS }),
        fc.integer({ min: 0, max: MAX_DURATION_MS }),
        fc.double({ min: 1, max: 10, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: MAX_ATTEMPTS_LIMIT }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (one, other, multiplier, jitter, attempt, chance) => {
          const initialMs = Math.min(one, other);
          const maximumMs = Math.max(one, other);
          const { retry } = policy({ retry: { initialMs, maximumMs, multiplier, jitter } });
          const delay = retryDelayMs(retry, attempt, chance);
          expect(Number.isSafeInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(Math.floor(initialMs * (1 - jitter)));
          expect(delay).toBeLessThanOrEqual(Math.ceil(maximumMs * (1 + jitter)));
        },
      ),
    );
  });
});

describe('a failure', () => {
  it('is retryable when it says so and its code is not listed', () => {
    const listed = { ...EVEN, nonRetryableCodes: ['broken_input'] };
    expect(isRetryable(listed, { code: 'tool_error', retryable: true })).toBe(true);
    expect(isRetryable(listed, { code: 'tool_error', retryable: false })).toBe(false);
    expect(isRetryable(listed, { code: 'broken_input', retryable: true })).toBe(false);
  });

  it('is retried after its delay until max_attempts, and then fails with its last error', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 3, initialMs: 1_000 } });
    for (const [attempt, delay] of [
      [1, 1_000],
      [2, 2_000],
    ] as const) {
      world.claim().say('accepted', 'started', 'failed');
      expect(world.record).toMatchObject({ status: 'retry_wait', attempt, ownerStopped: true });
      expect(world.record.retryAt).toBe(world.draft.now + delay);
      world.at(world.draft.now + delay).tick();
    }
    world.claim().say('accepted', 'started', { kind: 'failed', ending: failure('third'), retryAfterMs: null });
    expect(world.record).toMatchObject({
      status: 'failed',
      attempt: 3,
      ending: { error: { code: 'third' } },
      reason: { code: 'run.failed.attempts_exhausted' },
    });
  });

  it('with one permitted attempt is final', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 1 } })
      .claim()
      .say('failed');
    expect(world.record.status).toBe('failed');
  });

  it('carries its ending through the wait and goes back to the end of the queue', () => {
    const world = TaskWorld.admit().claim().say('accepted', 'failed');
    expect(world.record.ending?.error?.code).toBe('tool_error');
    world.at(T0 + 1_000).tick();
    expect(world.record).toMatchObject({ status: 'queued', queuedAt: T0 + 1_000, retryAt: null });
  });

  it('through Transition without an error counts as retryable', () => {
    const world = TaskWorld.admit().claim();
    world.apply(settle('failed', { lease: world.proof(), ending: null }));
    expect(world.record.status).toBe('retry_wait');
  });

  it('takes its spread from the chance it is given', () => {
    const at = (chance: number): number | null => {
      const world = TaskWorld.admit({ retry: { jitter: 0.5 } }).claim();
      return world.apply(settle('failed', { lease: world.proof(), chance })).record.retryAt;
    };
    expect([at(0), at(0.5), at(1)]).toEqual([T0 + 500, T0 + 1_000, T0 + 1_500]);
  });
});

describe('a claim that is handed back', () => {
  it('waits nothing twice, then 1, 2, 4 … and at most 60 s', () => {
    const delays = Array.from({ length: 12 }, (_, index) => handBackDelayMs(index + 1));
    expect(delays).toEqual([0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000]);
    expect(handBackDelayMs(10_000)).toBe(60_000);
  });

  it('nine times in a row comes back, the tenth time it fails as undeliverable', () => {
    expect(MAX_HAND_BACKS).toBe(10);
    const world = TaskWorld.admit({ retry: { maxAttempts: 1 } });
    const waits: number[] = [];
    for (let delivery = 1; delivery <= 9; delivery += 1) {
      world.claim().at(world.draft.now);
      world.handBack();
      expect(world.record).toMatchObject({ attempt: 0, epoch: delivery, handBacks: delivery, ownerStopped: false });
      const waited = world.record.retryAt === null ? 0 : world.record.retryAt - world.draft.now;
      waits.push(waited);
      expect(world.eventTypes).toEqual(
        waited === 0 ? ['reeve.task.retry_scheduled', 'reeve.task.requeued'] : ['reeve.task.retry_scheduled'],
      );
      if (waited > 0) world.at(world.draft.now + waited).tick();
      expect(world.record).toMatchObject({ status: 'queued', queuedAt: T0 });
    }
    expect(waits).toEqual([0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
    world.claim().handBack();
    expect(world.record).toMatchObject({
      status: 'failed',
      reason: { code: 'run.failed.undeliverable' },
      ownerStopped: false,
      epoch: 10,
    });
  });

  it('by its accept time-out or with its session counts in the same row', () => {
    const world = TaskWorld.admit()
      .claim()
      .at(T0 + 5_000)
      .tick();
    expect(world.record).toMatchObject({
      handBacks: 1,
      attempt: 0,
      reason: { code: 'run.requeued.claim_undelivered' },
    });
    world.claim().apply({ kind: 'session_lost', sessionId: 'session-a', cause: settle('failed').cause });
    expect(world.record).toMatchObject({ handBacks: 2, attempt: 0, reason: { code: 'run.requeued.lease_lost' } });
    world.claim().handBack('forgotten');
    expect(world.record).toMatchObject({ handBacks: 3, attempt: 0, reason: { code: 'run.requeued.claim_forgotten' } });
  });

  it.each([
    ['an acceptance', (world: TaskWorld) => world.say('accepted', 'failed')],
    ['any other end of an attempt', (world: TaskWorld) => world.say('failed')],
    [
      'a release',
      (world: TaskWorld) =>
        world.apply({ kind: 'release', lease: world.proof(), checkpointJson: null, cause: settle('failed').cause }),
    ],
  ])('%s ends the row', (_name, end) => {
    const world = end(TaskWorld.admit().claim().handBack().claim().handBack().claim());
    expect(world.record.handBacks).toBe(0);
  });

  it('keeps its place, and after a failure that follows it does not', () => {
    const world = TaskWorld.admit()
      .claim()
      .at(T0 + 10)
      .handBack();
    expect(world.record.queuedAt).toBe(T0);
    world
      .claim()
      .say('failed')
      .at(T0 + 5_000)
      .tick();
    expect(world.record.queuedAt).toBe(T0 + 5_000);
  });

  it('but was accepted is not handed back as undelivered: it was delivered', () => {
    const world = TaskWorld.admit().claim().say('accepted');
    expect(() => world.handBack()).toThrow('unchanged');
    expect(world.record).toMatchObject({ status: 'running', attempt: 1 });
  });
});

describe('a lost lease', () => {
  const lost = { kind: 'session_lost', sessionId: 'session-a', cause: settle('failed').cause } as const;

  it('spends its attempt, comes back at once in its place, and the last one fails', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 2 } })
      .claim()
      .say('accepted', 'started')
      .at(T0 + 50)
      .apply(lost);
    expect(world.eventTypes).toEqual(['reeve.task.retry_scheduled', 'reeve.task.requeued']);
    expect(world.record).toMatchObject({
      status: 'queued',
      attempt: 1,
      queuedAt: T0,
      ownerStopped: false,
      handBacks: 0,
    });
    world.claim().say('accepted').apply(lost);
    expect(world.record).toMatchObject({
      status: 'failed',
      attempt: 2,
      reason: { code: 'run.failed.lease_attempts_exhausted' },
      ownerStopped: false,
    });
  });

  it('carries the operation that took the session as causation when it ends the task', () => {
    const world = TaskWorld.admit({ retry: { maxAttempts: 1 } })
      .claim()
      .say(SAYINGS.accepted)
      .at(T0 + 1);
    world.apply({ ...lost, cause: { ...lost.cause, causation: 'reap-4' } });
    expect(world.draft.events.at(-1)?.cause).toMatchObject({ actor: { type: 'reaper' }, causation: 'reap-4' });
  });
});
