// The one scan over due tasks (lifecycle.md section 7): every kind of timer fires through it, what cannot be processed
// blocks nothing else, an earlier timer moves the wake-up, and spans longer than a process timer can hold work.

import { describe, expect, it, vi } from 'vitest';
import type { TaskPolicyInput } from '../../src/kernel/admission/policy.js';
import type { TimerKind } from '../../src/kernel/timers.js';
import { timersOf } from '../../src/kernel/timers.js';
import type { DueTask } from '../../src/store/task-store.js';
import { TaskTimers } from '../../src/timers/task-timers.js';
import { failure, openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const DAY_MS = 86_400_000;

interface Case {
  readonly kind: TimerKind;
  readonly policy: TaskPolicyInput;
  /** How far the worker gets, if there is one. */
  readonly worker?: 'idle' | 'accepts' | 'fails' | 'cancelled';
  readonly dueAfterMs: number;
  readonly becomes: Readonly<Record<string, unknown>>;
}

const CASES: readonly Case[] = [
  {
    kind: 'total_deadline',
    policy: { timeoutMs: 40_000 },
    dueAfterMs: 40_000,
    becomes: { status: 'timed_out', reason: { code: 'run.timed_out.deadline' } },
  },
  {
    kind: 'start_by',
    policy: { startByMs: 40_000 },
    dueAfterMs: 40_000,
    becomes: { status: 'timed_out', reason: { code: 'run.timed_out.start_by' } },
  },
  {
    kind: 'not_before',
    policy: { notBeforeAtMs: -1 },
    dueAfterMs: 40_000,
    becomes: { status: 'queued', notBeforeAt: null },
  },
  {
    kind: 'retry',
    policy: { retry: { initialMs: 40_000 } },
    worker: 'fails',
    dueAfterMs: 40_000,
    becomes: { status: 'running', attempt: 2 },
  },
  {
    kind: 'attempt_time_out',
    policy: { attemptTimeoutMs: 40_000, retry: { maxAttempts: 1 } },
    worker: 'accepts',
    dueAfterMs: 40_000,
    becomes: { status: 'failed', reason: { code: 'run.failed.attempt_timed_out' } },
  },
  {
    kind: 'no_progress',
    policy: { progressTimeoutMs: 40_000, retry: { maxAttempts: 1 } },
    worker: 'accepts',
    dueAfterMs: 40_000,
    becomes: { status: 'failed', reason: { code: 'run.failed.no_progress' } },
  },
  {
    kind: 'cancel_grace',
    policy: {},
    worker: 'cancelled',
    dueAfterMs: 40_000,
    becomes: { status: 'cancelled', reason: { code: 'run.cancelled.grace_expired' } },
  },
  {
    // The quiet period after the start excuses its 5 s for one TTL of the session.
    kind: 'accept',
    policy: {},
    worker: 'idle',
    dueAfterMs: 30_000,
    becomes: { status: 'running', epoch: 2, handBacks: 1 },
  },
];

describe('a timer of each kind fires through the scan, at its time and not before:', () => {
  it.each(CASES)('$kind', async ({ kind, policy, worker, dueAfterMs, becomes }) => {
    const world = await World.open();
    const notBeforeAtMs = policy.notBeforeAtMs === -1 ? world.clock.nowMs() + dueAfterMs : null;
    const present = worker === undefined ? null : await openWorker(world, { ttlMs: 30_000 });
    const { admission } = await world.admit('k', { policy: { ...policy, notBeforeAtMs } });
    const { taskId } = admission;
    await world.settle();
    if (worker === 'accepts' || worker === 'cancelled') await present?.say(taskId, 'accepted', 'started');
    if (worker === 'fails')
      await present?.say(taskId, 'accepted', 'started', { kind: 'failed', ending: failure(), retryAfterMs: null });
    if (worker === 'cancelled') await world.cancel(taskId, dueAfterMs);
    const before = await world.stored(taskId);
    expect(timersOf(before).map((timer) => timer.kind)).toContain(kind);

    await world.clock.advance(dueAfterMs - 20_100);
    await present?.heartbeat();
    await world.clock.advance(19_800);
    expect((await world.stored(taskId)).revision).toBe(before.revision);
    await present?.heartbeat();
    await world.clock.advance(1_300);
    expect(await world.stored(taskId)).toMatchObject(becomes);
    await world.assertHistories([taskId]);
  });
});

describe('precision', () => {
  it('is that of the timer, not of the longest sleep: an earlier one moves the wake-up', async () => {
    const world = await World.open({ dispatcher: null });
    await world.admit('later', { policy: { timeoutMs: 900 } });
    const { admission } = await world.admit('sooner', { policy: { timeoutMs: 130 } });
    await world.clock.advance(129);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued' });
    await world.clock.advance(25);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'timed_out' });
  });

  it('holds for an earlier timer that is committed while a scan is under way', async () => {
    const world = await World.open({ dispatcher: null });
    const real = world.real.earliestTimer.bind(world.real);
    let sooner = '';
    world.real.earliestTimer = async () => {
      const earliest = await real();
      world.real.earliestTimer = real;
      sooner = (await world.admit('sooner', { policy: { timeoutMs: 100 } })).admission.taskId;
      return earliest;
    };
    await world.clock.advance(1_000);
    const { createdAt } = (await world.stored(sooner)).admission;
    await world.clock.advance(createdAt + 125 - world.clock.nowMs());
    expect(await world.stored(sooner)).toMatchObject({ status: 'timed_out' });
  });

  it('does not need the wake-up: what another process made due is found within a second', async () => {
    const world = await World.open({ dispatcher: null });
    const other = await world.replica({ dispatcher: null, timers: 'stopped' });
    const { admission } = await other.admit('k', { policy: { timeoutMs: 200 } });
    await world.clock.advance(1_250);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'timed_out' });
  });
});

describe('spans beyond 24.8 days', () => {
  it('fire at their time and not at once', async () => {
    const world = await World.open({ dispatcher: null });
    const tasks = [30, 400, 3_650].map((days) => ({ days, key: `k${String(days)}` }));
    for (const { key, days } of tasks) await world.admit(key, { policy: { timeoutMs: days * DAY_MS } });
    await world.clock.advance(5_000);
    let passed = 0;
    for (const { key, days } of tasks) {
      const taskId = (await world.real.findTaskId('default', key)) ?? '';
      await world.clock.stall((days - passed) * DAY_MS - 60_000);
      await world.clock.advance(5_000);
      expect(await world.stored(taskId)).toMatchObject({ status: 'queued' });
      await world.clock.advance(61_000);
      expect(await world.stored(taskId)).toMatchObject({ status: 'timed_out' });
      passed = days;
    }
  });
});

describe('what cannot be processed', () => {
  it('blocks no other: a damaged record among hundreds that are due', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped', cacheBytes: 0 });
    const keys = Array.from({ length: 700 }, (_, n) => `k${String(n)}`);
    const records = await Promise.all(keys.map((key) => world.admit(key, { policy: { timeoutMs: 1_000 } })));
    const damaged = [0, 255, 256, 511].map((at) => records[at]?.admission.taskId ?? '');
    for (const taskId of damaged) world.probe.damaged.add(taskId);
    world.timers.start();
    await world.clock.advance(2_100);
    for (const { admission } of records) {
      const status = damaged.includes(admission.taskId) ? 'queued' : 'timed_out';
      expect(await world.stored(admission.taskId)).toMatchObject({ status });
    }
    for (const taskId of damaged) world.probe.damaged.delete(taskId);
    await world.clock.advance(1_000);
    for (const taskId of damaged) expect(await world.stored(taskId)).toMatchObject({ status: 'timed_out' });
  });

  it('is tried again now and then, and not as fast as the clock allows', async () => {
    const world = await World.open({ dispatcher: null, cacheBytes: 0 });
    const { admission } = await world.admit('k', { policy: { timeoutMs: 100 } });
    world.probe.damaged.add(admission.taskId);
    await world.clock.advance(1_000);
    const scans = world.probe.calls.get('dueTasks') ?? 0;
    await world.clock.advance(10_000);
    const more = (world.probe.calls.get('dueTasks') ?? 0) - scans;
    expect(more).toBeGreaterThanOrEqual(10);
    expect(more).toBeLessThanOrEqual(45);
  });

  it('a scan that fails is reported, and the next one does its work', async () => {
    const world = await World.open({ dispatcher: null });
    const { admission } = await world.admit('k', { policy: { timeoutMs: 500 } });
    world.probe.down = true;
    await world.clock.advance(3_000);
    expect(world.errors.length).toBeGreaterThan(0);
    world.probe.down = false;
    await world.clock.advance(1_100);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'timed_out' });
  });
});

describe('in a quiet period', () => {
  it('excused timers wait and block no others', async () => {
    const world = await World.open({ timers: 'stopped' });
    const worker = await openWorker(world, { slots: 300 });
    const excused = await Promise.all(Array.from({ length: 300 }, (_, n) => world.admit(`excused-${String(n)}`)));
    await world.settle();
    expect(worker.sink.claimed).toHaveLength(300);
    const due = await world.admit('due', { queue: 'other', policy: { startByMs: 10_000 } });
    const scan = new TaskTimers(
      world.authority,
      () => world.quiet.quietSince(),
      () => undefined,
    );
    scan.start();
    await world.clock.advance(11_000);
    expect(await world.stored(due.admission.taskId)).toMatchObject({ status: 'timed_out' });
    for (const { admission } of excused)
      expect(await world.stored(admission.taskId)).toMatchObject({ epoch: 1, handBacks: 0 });
    await worker.heartbeat();
    await world.clock.advance(19_500);
    for (const { admission } of excused) expect(await world.stored(admission.taskId)).toMatchObject({ handBacks: 1 });
  });
});

describe('what is excused', () => {
  it('is judged once, not at every scan, until it can fire; what can fire meanwhile does so in time', async () => {
    const world = await World.open();
    const worker = await openWorker(world, { slots: 100, ttlMs: 30_000 });
    const accepts = Array.from({ length: 99 }, (_, n) => world.admit(`k${String(n)}`));
    // Its accept timer is excused like the others'; the deadline behind it is not.
    const deadline = await world.admit('deadline', { policy: { timeoutMs: 20_000 } });
    const excused = await Promise.all(accepts);
    await world.settle();
    expect(worker.sink.claimed).toHaveLength(100);
    const apply = vi.spyOn(world.authority, 'apply');
    await world.clock.advance(5_500);
    expect(apply.mock.calls.length).toBeGreaterThanOrEqual(100);
    const scans = world.probe.calls.get('dueTasks') ?? 0;
    apply.mockClear();
    await world.clock.advance(10_000);
    expect(apply.mock.calls.length).toBe(0);
    expect((world.probe.calls.get('dueTasks') ?? 0) - scans).toBeLessThanOrEqual(24);
    const other = await world.admit('other', { queue: 'nobody', policy: { startByMs: 730 }, capabilities: ['none'] });
    await world.clock.advance(760);
    expect(await world.stored(other.admission.taskId)).toMatchObject({ status: 'timed_out' });
    await worker.heartbeat();
    await world.clock.advance(3_600);
    expect(await world.stored(deadline.admission.taskId)).toMatchObject({ status: 'timed_out' });
    const [first] = excused;
    const { taskId = '' } = first?.admission ?? {};
    // A grace that ends before its excuse does: what was known of the task no longer holds.
    await world.cancel(taskId, 300);
    await world.clock.advance(340);
    expect(await world.stored(taskId)).toMatchObject({ status: 'cancelled' });
    for (const { admission } of excused.slice(1))
      expect(await world.stored(admission.taskId)).toMatchObject({ epoch: 1, handBacks: 0 });
    await world.clock.advance(10_300);
    for (const { admission } of excused.slice(1))
      expect((await world.stored(admission.taskId)).handBacks).toBeGreaterThan(0);
  });
});

describe('stop', () => {
  it('ends the scans, one under way too', async () => {
    const world = await World.open({ dispatcher: null });
    await world.timers.stop();
    const { admission } = await world.admit('k', { policy: { timeoutMs: 100 } });
    await world.clock.advance(5_000);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'queued' });
    const pages: (DueTask | null)[] = [];
    const real = world.real.dueTasks.bind(world.real);
    const again = new TaskTimers(
      world.authority,
      () => 0,
      () => undefined,
    );
    world.real.dueTasks = async (now, after, limit) => {
      pages.push(after);
      await again.stop();
      return real(now, after, limit);
    };
    again.start();
    await world.clock.advance(5_000);
    expect(pages).toHaveLength(1);
  });
});
