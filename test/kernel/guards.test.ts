// What a caller pins (lifecycle.md section 4, steps 3 and 4): a stale generation is refused, a guard that does not
// hold is a conflict with what was observed, and neither changes anything.

import { describe, expect, it } from 'vitest';
import { decide, judge } from '../../src/kernel/decide.js';
import { NO_GUARDS, type Guards, type LeaseProof } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { TASK_STATUSES } from '../../src/kernel/status.js';
import { STATE_NAMES, draftIn, recordIn } from './decide-states.js';
import { OPERATOR, OWNER, STRANGER, T0, TaskWorld, WORKER, claim, settle } from './task-world.js';

const CANCEL = { kind: 'request_cancellation', graceMs: null, cause: OPERATOR } as const;

function judged(record: TaskRecord, guards: Partial<Guards>) {
  return decide(record, CANCEL, record.updatedAt, { ...NO_GUARDS, ...guards });
}

describe.each(STATE_NAMES)('%s', (state) => {
  const record = recordIn(state);

  it('every other from_status is a conflict, its own is not', () => {
    for (const fromStatus of TASK_STATUSES) {
      const decision = judged(record, { fromStatus });
      if (fromStatus === record.status) expect(decision.kind).not.toBe('conflict');
      else expect(decision).toEqual({ kind: 'conflict', guard: 'FROM_STATUS', observed: record.status });
    }
  });

  it('every other revision is a conflict, its own is not', () => {
    for (const expectedRevision of [0, record.revision - 1, record.revision + 1]) {
      expect(judged(record, { expectedRevision })).toEqual({
        kind: 'conflict',
        guard: 'REVISION',
        observed: String(record.revision),
      });
    }
    expect(judged(record, { expectedRevision: record.revision }).kind).not.toBe('conflict');
  });

  it('another generation is stale, its own is not', () => {
    expect(judged(record, { generationId: 'generation-0' })).toMatchObject({
      kind: 'refused',
      refusal: {
        reason: 'STALE_GENERATION',
        metadata: { current_generation_id: record.generationId, current_generation: String(record.generation) },
      },
    });
    const own = judged(record, { generationId: record.generationId });
    expect(own.kind === 'refused' && own.refusal.reason === 'STALE_GENERATION').toBe(false);
  });

  it('guards that hold change no verdict', () => {
    const own: Guards = {
      generationId: record.generationId,
      fromStatus: record.status,
      expectedRevision: record.revision,
    };
    expect(decide(record, CANCEL, record.updatedAt, own)).toEqual(decide(record, CANCEL, record.updatedAt));
  });
});

describe('the revision guard', () => {
  it('counts facts, not stream events', () => {
    const world = TaskWorld.admit().claim();
    const { revision } = world.record;
    world.say('accepted', 'started', 'progress');
    expect(judged(world.record, { expectedRevision: revision }).kind).toBe('applied');
  });
});

describe('a generation', () => {
  it('is stale from the commit of the next one on', () => {
    const world = TaskWorld.admit().apply(settle('failed'));
    world.apply({ kind: 'resume', newGenerationId: 'g2', spareGenerationId: 's', inputJson: null, cause: OPERATOR });
    const guards = { ...NO_GUARDS, generationId: 'generation-1' };
    for (const intent of [claim(), CANCEL, settle('failed')]) {
      expect(judge(world.draft, intent, guards)).toMatchObject({ refusal: { reason: 'STALE_GENERATION' } });
    }
  });
});

describe('a lease named in a Transition', () => {
  const second = (): TaskWorld => {
    const world = TaskWorld.admit({ retry: { initialMs: 0 } })
      .claim()
      .say('accepted', 'failed')
      .tick();
    return world
      .claim({ sessionId: STRANGER })
      .say('accepted', 'started')
      .at(T0 + 1);
  };

  it.each<[string, LeaseProof]>([
    ['of the epoch before', { epoch: 1, sessionId: OWNER }],
    ['of the epoch before, proved by its token', { epoch: 1, sessionId: null }],
    ['of a later epoch', { epoch: 3, sessionId: STRANGER }],
    ['of another session', { epoch: 2, sessionId: OWNER }],
  ])('%s is a conflict with the epoch observed', (_name, lease) => {
    for (const intent of [settle('completed', { lease }), { kind: 'suspend', lease, cause: WORKER } as const]) {
      expect(decide(second().record, intent, T0 + 1)).toEqual({ kind: 'conflict', guard: 'LEASE', observed: '2' });
    }
  });

  it('that nobody holds is a conflict with none observed', () => {
    const record = recordIn('retry_wait');
    const intent = settle('completed', { lease: { epoch: 1, sessionId: OWNER } });
    expect(decide(record, intent, T0 + 1)).toEqual({ kind: 'conflict', guard: 'LEASE', observed: 'none' });
  });

  it.each([OWNER, null])('that is in force, proved by %s, is taken', (sessionId) => {
    const { draft } = TaskWorld.admit()
      .claim()
      .say('accepted', 'started')
      .at(T0 + 1);
    const verdict = judge(draft, settle('completed', { lease: { epoch: 1, sessionId } }));
    expect(verdict.kind).toBe('applied');
    expect(draft.record.status).toBe('completed');
  });
});

describe('a decision as values', () => {
  it('gives the record and its events when applied, and leaves the record it was given alone', () => {
    const record = recordIn('queued');
    const before = structuredClone(record);
    const decision = decide(record, claim(), T0 + 5);
    expect(decision.kind).toBe('applied');
    if (decision.kind !== 'applied') return;
    expect(decision.events.map((event) => event.type)).toEqual(['reeve.task.claimed']);
    expect(decision.record.status).toBe('running');
    expect(record).toEqual(before);
  });

  it('builds on what the draft already carries', () => {
    const draft = draftIn('queued');
    expect(judge(draft, claim()).kind).toBe('applied');
    expect(judge(draft, claim())).toMatchObject({ refusal: { reason: 'INVALID_TRANSITION' } });
    expect(judge(draft, CANCEL).kind).toBe('applied');
    expect(judge(draft, CANCEL).kind).toBe('unchanged');
    expect(draft.events.map((event) => event.number)).toEqual([2, 3]);
  });
});
