// Explaining in the kernel: a record and what is around it make blockers and the next timer, nothing else.

import { describe, expect, it } from 'vitest';
import { type Candidate, type ExplainContext, explain } from '../../src/kernel/explain.js';
import type { Subscription } from '../../src/kernel/placement.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { STATE_NAMES, recordIn } from './decide-states.js';
import { OPERATOR, OWNER, SESSION_TTL_MS, T0, TaskWorld, admission } from './task-world.js';

const QUIET_LONG_AGO = T0 - 1_000_000;
const HOLDER = { workerName: 'worker-1', sessionId: OWNER };

function around(more: Partial<ExplainContext> = {}): ExplainContext {
  return { now: T0, quietSince: QUIET_LONG_AGO, candidates: [], permitWait: null, session: null, ...more };
}

function candidate(more: Partial<Subscription> = {}, freeSlots = 1, workerName = 'w'): Candidate {
  const subscription: Subscription = {
    namespaces: new Set(['default']),
    queues: null,
    actionKinds: null,
    executionTargets: null,
    capabilities: new Set(),
    ...more,
  };
  return { workerName, sessionId: `session-of-${workerName}`, subscription, freeSlots };
}

function kinds(record: TaskRecord, context: ExplainContext): readonly string[] {
  return explain(record, context).blockers.map(({ kind }) => kind);
}

it('has something to say of every state, and of those that are over only that', () => {
  for (const state of STATE_NAMES) {
    const record = recordIn(state);
    const { blockers, nextTimer } = explain(record, around({ now: record.updatedAt }));
    expect(blockers.length).toBeGreaterThan(0);
    for (const { detail } of blockers) expect(detail).not.toBe('');
    if (record.finishedAt === null) continue;
    expect(blockers.map(({ kind }) => kind)).toEqual(['terminal']);
    expect(nextTimer).toBeNull();
  }
});

describe('a queued task', () => {
  const needy = (): TaskRecord => {
    const { record } = TaskWorld.admit();
    const application = { ...admission().application, requiredCapabilities: ['disk', 'gpu'] };
    return { ...record, admission: { ...record.admission, application } };
  };

  it.each<[string, readonly Candidate[]]>([
    ['no_worker_for_queue', []],
    ['no_worker_for_queue', [candidate({ namespaces: new Set(['other']) }), candidate({ queues: new Set(['other']) })]],
    ['no_worker_for_kind', [candidate({ actionKinds: new Set(['flow']) })]],
    ['no_worker_for_target', [candidate({ executionTargets: new Set(['process']) })]],
    ['no_worker_with_capabilities', [candidate({ capabilities: new Set(['gpu']) })]],
    ['no_free_slot', [candidate({ capabilities: new Set(['gpu', 'disk']) }, 0)]],
    ['dispatching', [candidate({ capabilities: new Set(['gpu', 'disk', 'more']) })]],
  ])('%s (case %#)', (kind, candidates) => {
    expect(kinds(needy(), around({ candidates }))).toEqual([kind]);
  });

  it('is held by the first thing that is missing from all, not by what one worker lacks', () => {
    const candidates = [
      candidate({ actionKinds: new Set(['flow']), capabilities: new Set(['gpu', 'disk']) }),
      candidate({ capabilities: new Set(['disk']) }, 1, 'closest'),
      candidate({}, 1, 'further'),
    ];
    const [blocker] = explain(needy(), around({ candidates })).blockers;
    expect(blocker).toMatchObject({ kind: 'no_worker_with_capabilities' });
    expect(blocker?.detail).toMatch(/: gpu$/);
  });

  it('needs no label that is only preferred, and names none as missing', () => {
    const rules = { actionKinds: null, capabilityClasses: new Map([['disk', 'affinity' as const]]) };
    const none = explain(needy(), around({ candidates: [candidate()], rules })).blockers;
    expect(none).toMatchObject([{ kind: 'no_worker_with_capabilities' }]);
    expect(none[0]?.detail).toMatch(/: gpu$/);
    const cold = candidate({ capabilities: new Set(['gpu']) });
    expect(kinds(needy(), around({ candidates: [cold], rules }))).toEqual(['dispatching']);
  });

  it('of a kind that the deployment no longer registers waits for that, whoever is connected', () => {
    const rules = { actionKinds: new Set(['flow']), capabilityClasses: new Map() };
    const candidates = [candidate({ capabilities: new Set(['gpu', 'disk']) })];
    for (const known of [candidates, []]) {
      const { blockers } = explain(needy(), around({ candidates: known, rules }));
      expect(blockers).toMatchObject([{ kind: 'kind_unregistered' }]);
      expect(blockers[0]?.detail).toMatch(/kind agent is not registered/);
    }
  });

  it('names those that are full', () => {
    const candidates = [
      candidate({}, 0, 'a'),
      candidate({ queues: new Set(['other']) }, 3, 'b'),
      candidate({}, 0, 'c'),
    ];
    const [blocker] = explain(TaskWorld.admit().record, around({ candidates })).blockers;
    expect(blocker).toMatchObject({ holders: [{ workerName: 'a' }, { workerName: 'c' }], holderCount: 2 });
  });

  it('waits for its permits before it waits for a worker, and names who has them', () => {
    const { record } = TaskWorld.admit({ concurrencyKey: 'k' });
    const wait = { limit: 4, running: 30, holders: ['a', 'b'], ahead: 2, aheadIsAtLeast: false };
    const ofKey = around({ permitWait: { name: 'key\ndefault\nk', ...wait }, candidates: [candidate()] });
    expect(explain(record, ofKey).blockers).toEqual([
      {
        kind: 'concurrency_key',
        detail: 'it waits for concurrency key k: 30 of 4 running, 2 of its route before it',
        holders: [{ taskId: 'a' }, { taskId: 'b' }],
        holderCount: 30,
        until: null,
      },
    ]);
    const many = { name: 'serialized\ngpu', ...wait, ahead: 1_000, aheadIsAtLeast: true };
    const [blocker] = explain(record, around({ permitWait: many })).blockers;
    expect(blocker?.kind).toBe('serialized_capability');
    expect(blocker?.detail).toMatch(/gpu: .* at least 1000/);
    // Where there is room, it is those of its own route that are before it, and what keeps them keeps it too.
    const behind = around({ permitWait: { name: 'key\ndefault\nk', ...wait, running: 3 } });
    expect(kinds(record, behind)).toEqual(['no_worker_for_queue']);
    expect(kinds(record, { ...behind, candidates: [candidate({}, 0)] })).toEqual(['no_free_slot']);
    expect(kinds(record, { ...behind, candidates: [candidate()] })).toEqual(['concurrency_key']);
    const delayed = TaskWorld.admit({ concurrencyKey: 'k', notBeforeAtMs: T0 + 5_000 }).record;
    expect(kinds(delayed, ofKey)).toEqual(['not_before']);
  });

  it('waits for its time first, and then for a worker', () => {
    const { record } = TaskWorld.admit({ notBeforeAtMs: T0 + 5_000, timeoutMs: 60_000 });
    expect(explain(record, around())).toMatchObject({
      blockers: [{ kind: 'not_before', until: T0 + 5_000 }],
      nextTimer: { kind: 'not_before', dueAt: T0 + 5_000 },
    });
    expect(kinds(record, around({ now: T0 + 5_000 }))).toEqual(['no_worker_for_queue']);
  });

  it('has no next timer when it has none', () => {
    expect(explain(TaskWorld.admit().record, around()).nextTimer).toBeNull();
    const { record } = TaskWorld.admit({ timeoutMs: 70_000, startByMs: 60_000 });
    expect(explain(record, around()).nextTimer).toEqual({ kind: 'start_by', dueAt: T0 + 60_000 });
  });
});

it('a task between attempts waits for the next', () => {
  const { record } = TaskWorld.admit().claim().say('accepted', 'started', 'failed');
  expect(explain(record, around())).toMatchObject({
    blockers: [{ kind: 'retry_backoff', until: T0 + 1_000 }],
    nextTimer: { kind: 'retry', dueAt: T0 + 1_000 },
  });
});

it('a suspended task waits for somebody', () => {
  const { record } = TaskWorld.admit().apply({ kind: 'suspend', lease: null, cause: OPERATOR });
  expect(explain(record, around())).toMatchObject({ blockers: [{ kind: 'suspended', holders: [] }], nextTimer: null });
});

describe('a running task', () => {
  const session = { expiresAt: T0 + SESSION_TTL_MS, ttlMs: SESSION_TTL_MS, attached: true };

  it('waits for its acceptance, then for its end, and says who has it', () => {
    const world = TaskWorld.admit().claim();
    expect(explain(world.record, around({ session }))).toEqual({
      blockers: [expect.objectContaining({ kind: 'awaiting_accept', holders: [HOLDER], until: T0 + 5_000 })],
      nextTimer: { kind: 'accept', dueAt: T0 + 5_000 },
    });
    world.say('accepted', 'started');
    expect(explain(world.record, around({ session }))).toMatchObject({
      blockers: [{ kind: 'running', holders: [HOLDER], until: null }],
      nextTimer: { kind: 'session', dueAt: T0 + SESSION_TTL_MS },
    });
    world.say('blocked');
    expect(explain(world.record, around({ session })).blockers).toMatchObject([
      { kind: 'worker_blocked', detail: 'waiting for an index', holders: [HOLDER] },
    ]);
  });

  it('says that its worker is away', () => {
    const { record } = TaskWorld.admit().claim().say('accepted');
    const [blocker] = explain(record, around({ session: { ...session, attached: false } })).blockers;
    expect(blocker?.detail).toMatch(/not attached/);
    expect(explain(record, around({ session })).blockers[0]?.detail).not.toMatch(/attached/);
  });

  it('under a cancel tells how far that has come', () => {
    const world = TaskWorld.admit().claim().say('accepted', 'started').requestCancel(20_000);
    const receipt = (acknowledged: boolean) =>
      world.apply({ kind: 'receipt', lease: world.proof(), acknowledged, cause: OPERATOR });
    expect(explain(world.record, around({ session }))).toMatchObject({
      blockers: [{ kind: 'cancel_undelivered', until: T0 + 20_000, holders: [HOLDER] }, { kind: 'running' }],
      nextTimer: { kind: 'cancel_grace', dueAt: T0 + 20_000 },
    });
    receipt(false);
    expect(kinds(world.record, around({ session }))).toEqual(['cancel_unacknowledged', 'running']);
    receipt(true);
    expect(kinds(world.record, around({ session }))).toEqual(['cancel_unsettled', 'running']);
  });

  it('is left alone for one TTL after the service was away, and says so once it would be judged', () => {
    const { record } = TaskWorld.admit().claim().say('accepted', 'started');
    const late = T0 + SESSION_TTL_MS + 1;
    const excused = around({ now: late, quietSince: late - 1_000, session });
    expect(explain(record, excused)).toMatchObject({
      blockers: [{ kind: 'recovery_hold', until: late - 1_000 + SESSION_TTL_MS }, { kind: 'running' }],
      nextTimer: { kind: 'session', dueAt: late - 1_000 + SESSION_TTL_MS },
    });
    expect(kinds(record, { ...excused, now: T0 + 1_000, quietSince: T0 })).toEqual(['running']);
    expect(kinds(record, around({ now: late, session }))).toEqual(['running']);
  });

  it('a claim that is not accepted in time is excused as well', () => {
    const { record } = TaskWorld.admit().claim();
    const context = around({ now: T0 + 5_000, quietSince: T0 + 4_000, session });
    expect(explain(record, context)).toMatchObject({
      blockers: [{ kind: 'recovery_hold' }, { kind: 'awaiting_accept' }],
      nextTimer: { kind: 'accept', dueAt: T0 + 4_000 + SESSION_TTL_MS },
    });
  });
});
