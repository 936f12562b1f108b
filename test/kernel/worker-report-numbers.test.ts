// The worker's own numbers (lifecycle.md section 7): at or below the mark judged already, the next judged, beyond it a
// gap; a refused event uses up its number; without the lease nothing is applied.

import { describe, expect, it } from 'vitest';
import type { WorkerEvent, WorkerReport } from '../../src/kernel/intent.js';
import { judgeReport } from '../../src/kernel/worker-report.js';
import { OPERATOR, OWNER, SAYINGS, STRANGER, T0, TaskWorld, cause } from './task-world.js';

type Said = readonly [seq: number, kind: keyof typeof SAYINGS];

function events(...said: Said[]): WorkerEvent[] {
  return said.map(([seq, kind]) => ({ seq, saying: SAYINGS[kind] }));
}

function report(world: TaskWorld, said: readonly Said[], overrides: Partial<WorkerReport> = {}) {
  const { judgedThrough, refused } = judgeReport(world.draft, world.report(events(...said), overrides));
  return { judgedThrough, refused: refused.map(({ seq, refusal }) => [seq, refusal.reason]) };
}

/** Accepted and started as 1 and 2, in a commit of their own. */
function startedWorld(): TaskWorld {
  return TaskWorld.admit({ retry: { initialMs: 0 } })
    .claim()
    .say('accepted', 'started')
    .at(T0 + 1);
}

describe('numbers of the epoch in force', () => {
  it('are judged one after the other, from 1', () => {
    const world = TaskWorld.admit()
      .claim()
      .at(T0 + 1);
    expect(
      report(world, [
        [1, 'accepted'],
        [2, 'started'],
        [3, 'progress'],
      ]),
    ).toEqual({ judgedThrough: 3, refused: [] });
    expect(world.eventTypes).toEqual(['task.accepted', 'task.started', 'task.progress']);
    expect(world.record.lease?.eventSeq).toBe(3);
  });

  it('at or below the mark are answered as judged and not applied again', () => {
    const world = startedWorld();
    expect(
      report(world, [
        [1, 'accepted'],
        [2, 'started'],
      ]),
    ).toEqual({ judgedThrough: 2, refused: [] });
    expect(report(world, [[1, 'completed']])).toEqual({ judgedThrough: 2, refused: [] });
    expect(world.draft.events).toEqual([]);
  });

  it('twice in one report are judged once', () => {
    const world = startedWorld();
    expect(
      report(world, [
        [3, 'output'],
        [3, 'output'],
        [4, 'output'],
      ]),
    ).toEqual({ judgedThrough: 4, refused: [] });
    expect(world.eventTypes).toEqual(['task.output', 'task.output']);
  });

  it('beyond the next are a gap that names the next, and end the report', () => {
    const world = startedWorld();
    const { draft } = world;
    const answer = judgeReport(draft, world.report(events([3, 'progress'], [5, 'output'], [6, 'completed'])));
    expect(answer.judgedThrough).toBe(3);
    expect(answer.refused).toHaveLength(1);
    expect(answer.refused[0]).toMatchObject({
      seq: 5,
      refusal: { reason: 'EVENT_GAP', metadata: { expected_event_seq: '4' } },
    });
    expect(world.eventTypes).toEqual(['task.progress']);
    expect(
      report(world, [
        [4, 'output'],
        [5, 'output'],
        [6, 'completed'],
      ]),
    ).toEqual({ judgedThrough: 6, refused: [] });
  });

  it('begin again at 1 with every claim', () => {
    const world = startedWorld().say('failed').tick();
    world.claim().at(T0 + 2);
    expect(report(world, [[2, 'started']])).toEqual({ judgedThrough: 0, refused: [[2, 'EVENT_GAP']] });
    expect(
      report(world, [
        [1, 'accepted'],
        [2, 'started'],
      ]),
    ).toEqual({ judgedThrough: 2, refused: [] });
  });
});

describe('a refused event', () => {
  it('uses up its number, without a write', () => {
    const world = startedWorld();
    expect(
      report(world, [
        [3, 'accepted'],
        [4, 'progress'],
      ]),
    ).toEqual({ judgedThrough: 4, refused: [[3, 'ILLEGAL_EVENT']] });
    expect(world.eventTypes).toEqual(['task.progress']);
    expect(world.draft.events[0]?.workerSeq).toBe(4);
    expect(report(world, [[3, 'progress']])).toEqual({ judgedThrough: 4, refused: [] });
  });

  it('at the end of a report is known to the next one by answered_through', () => {
    const world = startedWorld();
    expect(report(world, [[3, 'accepted']])).toEqual({ judgedThrough: 3, refused: [[3, 'ILLEGAL_EVENT']] });
    expect(world.draft.events).toEqual([]);
    expect(report(world, [[4, 'progress']])).toEqual({ judgedThrough: 2, refused: [[4, 'EVENT_GAP']] });
    expect(report(world, [[4, 'progress']], { answeredThrough: 3 })).toEqual({ judgedThrough: 4, refused: [] });
  });

  it('sent again is judged again while nothing after it was, and refused again', () => {
    const world = startedWorld();
    for (let time = 0; time < 3; time += 1) {
      expect(report(world, [[3, 'accepted']])).toEqual({ judgedThrough: 3, refused: [[3, 'ILLEGAL_EVENT']] });
    }
  });

  it('names the attempt state and the event', () => {
    const world = startedWorld();
    const { refused } = judgeReport(world.draft, world.report(events([3, 'started'])));
    expect(refused[0]?.refusal.metadata).toEqual({ task_id: 'order-17', attempt_state: 'started', event: 'started' });
  });
});

describe('answered_through', () => {
  it('below the mark changes nothing', () => {
    expect(
      report(
        startedWorld(),
        [
          [1, 'completed'],
          [3, 'progress'],
        ],
        { answeredThrough: 1 },
      ),
    ).toEqual({
      judgedThrough: 3,
      refused: [],
    });
  });

  it('is what an empty report is answered with', () => {
    expect(report(startedWorld(), [])).toEqual({ judgedThrough: 2, refused: [] });
    expect(report(startedWorld(), [], { answeredThrough: 7 })).toEqual({ judgedThrough: 7, refused: [] });
  });
});

const STALE: readonly (readonly [string, Partial<WorkerReport>])[] = [
  ['another session', { sessionId: STRANGER }],
  ['an older epoch', { epoch: 0 }],
  ['a later epoch', { epoch: 2 }],
  ['another generation', { generation: 2 }],
];

describe.each(STALE)('a report of %s', (_name, overrides) => {
  it('is LEASE_LOST for every event and applies none', () => {
    const world = startedWorld();
    const before = structuredClone(world.record);
    const answer = report(
      world,
      [
        [3, 'progress'],
        [4, 'completed'],
        [9, 'failed'],
      ],
      overrides,
    );
    expect(answer.refused).toEqual([
      [3, 'LEASE_LOST'],
      [4, 'LEASE_LOST'],
      [9, 'LEASE_LOST'],
    ]);
    expect(world.draft.events).toEqual([]);
    expect(world.record).toEqual(before);
  });
});

describe('after a settlement', () => {
  it('later events of the same report are LEASE_LOST, also an unasked suspend or failure', () => {
    for (const ending of ['completed', 'failed', 'cancelled', 'timed_out', 'suspended'] as const) {
      const world = startedWorld();
      expect(
        report(world, [
          [3, ending],
          [4, 'progress'],
          [5, 'completed'],
        ]),
      ).toEqual({
        judgedThrough: 3,
        refused: [
          [4, 'LEASE_LOST'],
          [5, 'LEASE_LOST'],
        ],
      });
    }
  });

  it('a worker whose answer was lost asks again and learns that it was judged', () => {
    const world = startedWorld();
    report(world, [[3, 'completed']]);
    world.at(T0 + 2);
    expect(report(world, [[3, 'completed']])).toEqual({ judgedThrough: 3, refused: [] });
    expect(
      report(world, [
        [3, 'completed'],
        [4, 'progress'],
      ]),
    ).toEqual({ judgedThrough: 3, refused: [[4, 'LEASE_LOST']] });
    expect(world.draft.events).toEqual([]);
  });

  it('nobody else learns it from the ended lease', () => {
    const world = startedWorld();
    report(world, [[3, 'completed']]);
    expect(report(world, [[3, 'completed']], { sessionId: STRANGER })).toEqual({
      judgedThrough: 0,
      refused: [[3, 'LEASE_LOST']],
    });
  });

  it('the mark of the ended lease outlives the claim of the next owner', () => {
    const world = startedWorld();
    report(world, [[3, 'failed']]);
    world.tick();
    world.claim({ sessionId: STRANGER }).at(T0 + 2);
    const late = { epoch: 1, sessionId: OWNER } as const;
    expect(report(world, [[3, 'failed']], late)).toEqual({ judgedThrough: 3, refused: [] });
    expect(report(world, [[4, 'progress']], late)).toEqual({ judgedThrough: 3, refused: [[4, 'LEASE_LOST']] });
  });
});

describe('a lease that was taken away', () => {
  it.each([
    ['by an operator', { kind: 'suspend', lease: null, cause: OPERATOR }],
    ['with its session', { kind: 'session_lost', sessionId: OWNER, cause: cause('reaper') }],
  ] as const)('%s leaves the mark, and what comes after it is LEASE_LOST', (_name, intent) => {
    const world = startedWorld().apply(intent);
    world.at(T0 + 2);
    expect(report(world, [[2, 'started']])).toEqual({ judgedThrough: 2, refused: [] });
    expect(report(world, [[3, 'completed']])).toEqual({ judgedThrough: 2, refused: [[3, 'LEASE_LOST']] });
    expect(world.draft.events).toEqual([]);
  });
});
