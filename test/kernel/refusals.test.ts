// What each refusal of the kernel says: one sentence for a person, and every value that a program would want by name.

import { describe, expect, it } from 'vitest';
import { judge } from '../../src/kernel/decide.js';
import { familyRefusal } from '../../src/kernel/family.js';
import { NO_GUARDS, type Guards, type Intent } from '../../src/kernel/intent.js';
import { reason } from '../../src/kernel/reason-codes.js';
import type { Refusal } from '../../src/kernel/refusal.js';
import { OPERATOR, OWNER, T0, TASK_ID, TaskWorld, WORKER, cause, claim, settle } from './task-world.js';

const queued = (): TaskWorld => TaskWorld.admit();
const running = (): TaskWorld => TaskWorld.admit().claim().say('accepted', 'started');
const asked = (): TaskWorld =>
  TaskWorld.admit({ cancellationPolicy: 'FENCED' }).claim().say('accepted').requestCancel();
const over = (): TaskWorld => running().say('completed');
const LEASE = { epoch: 1, sessionId: OWNER };
const STALE = { epoch: 7, sessionId: OWNER };
const CANCEL_PENDING = 'a cancellation is pending: ';

interface Row {
  readonly world: () => TaskWorld;
  readonly intent: Intent;
  readonly guards?: Guards;
  readonly refusal: Refusal;
}

const resume = (newGenerationId: string | null): Intent => {
  return { kind: 'resume', newGenerationId, spareGenerationId: 'generation-2', inputJson: null, cause: OPERATOR };
};
const invalid = (from_status: string, to_status: string): Refusal => ({
  reason: 'INVALID_TRANSITION',
  message: `a task that is ${from_status} cannot become ${to_status}`,
  metadata: { task_id: TASK_ID, from_status, to_status },
});
const suspended = (): TaskWorld => queued().apply({ kind: 'suspend', lease: null, cause: OPERATOR });

const ROWS: Readonly<Record<string, Row>> = {
  'a skip without a reason': {
    world: queued,
    intent: { kind: 'skip', cause: OPERATOR },
    refusal: {
      reason: 'MALFORMED',
      message: 'cause.reason: a skip needs a reason',
      metadata: { field: 'cause.reason' },
    },
  },
  'another generation': {
    world: queued,
    intent: claim(),
    guards: { ...NO_GUARDS, generationId: 'generation-0' },
    refusal: {
      reason: 'STALE_GENERATION',
      message: 'the generation named is not the current one',
      metadata: { task_id: TASK_ID, current_generation_id: 'generation-1', current_generation: '1' },
    },
  },
  'a settlement without a lease': {
    world: running,
    intent: settle('completed'),
    refusal: {
      reason: 'LEASE_REQUIRED',
      message: 'a running task is settled by its lease holder; to end it from outside, Cancel with a grace',
      metadata: { task_id: TASK_ID },
    },
  },
  'a receipt of an older claim': {
    world: running,
    intent: { kind: 'receipt', lease: STALE, acknowledged: false, cause: WORKER },
    refusal: {
      reason: 'LEASE_LOST',
      message: 'the lease named is not the one in force; stop this attempt',
      metadata: { task_id: TASK_ID, current_generation: '1', current_epoch: '1', status: 'running' },
    },
  },
  'what is over': {
    world: over,
    intent: claim(),
    refusal: {
      reason: 'TERMINAL_GENERATION',
      message: 'this generation ended as completed; Resume starts the next',
      metadata: { task_id: TASK_ID, status: 'completed', generation: '1' },
    },
  },
  'a claim of what is claimed': { world: running, intent: claim(), refusal: invalid('running', 'running') },
  'a claim before its time': {
    world: () => TaskWorld.admit({ notBeforeAtMs: T0 + 500 }),
    intent: claim(),
    refusal: {
      reason: 'INVALID_TRANSITION',
      message: 'the start of this task is delayed',
      metadata: { task_id: TASK_ID, not_before_ms: String(T0 + 500) },
    },
  },
  'a suspension of what is suspended': {
    world: suspended,
    intent: { kind: 'suspend', lease: null, cause: OPERATOR },
    refusal: invalid('suspended', 'suspended'),
  },
  'a resume of what is not held': { world: queued, intent: resume(null), refusal: invalid('queued', 'queued') },
  'a skip of what runs': {
    world: running,
    intent: { kind: 'skip', cause: cause('operator', reason('run.skipped.operator')) },
    refusal: invalid('running', 'skipped'),
  },
  'a completion from outside': { world: queued, intent: settle('completed'), refusal: invalid('queued', 'completed') },
  'a cancellation that nobody asked for': {
    world: queued,
    intent: settle('cancelled'),
    refusal: {
      reason: 'CANCELLATION_NOT_REQUESTED',
      message: 'nobody asked for a cancellation; use Cancel, which asks and settles',
      metadata: { task_id: TASK_ID },
    },
  },
  'a completion behind the fence': {
    world: asked,
    intent: settle('completed', { lease: LEASE, cause: WORKER }),
    refusal: {
      reason: 'CANCELLATION_FENCED',
      message: `${CANCEL_PENDING}completion needs proof that it happened before the cancel request`,
      metadata: { task_id: TASK_ID, requested_event: `${TASK_ID}~e4` },
    },
  },
  'a suspension behind the fence': {
    world: asked,
    intent: { kind: 'suspend', lease: null, cause: OPERATOR },
    refusal: {
      reason: 'CANCELLATION_FENCED',
      message: `${CANCEL_PENDING}it can no longer be suspended`,
      metadata: { task_id: TASK_ID, requested_event: `${TASK_ID}~e4` },
    },
  },
  'a generation that is the current one': {
    world: over,
    intent: resume('generation-1'),
    refusal: {
      reason: 'MALFORMED',
      message: 'new_generation_id: names the current generation; a new one needs an id of its own',
      metadata: { field: 'new_generation_id' },
    },
  },
};

describe('the refusal of', () => {
  it.each(Object.entries(ROWS))('%s', (_, { world, intent, guards, refusal }) => {
    const { draft } = world();
    const before = draft.record;
    expect(judge(draft, intent, guards)).toEqual({ kind: 'refused', refusal });
    expect(draft.record).toBe(before);
  });

  it('words that the table does not have, and of numbers that come too early', () => {
    expect(running().hear('accepted').answer.refused).toEqual([
      {
        seq: 3,
        refusal: {
          reason: 'ILLEGAL_EVENT',
          message: 'the AEP table has no accepted after started',
          metadata: { task_id: TASK_ID, attempt_state: 'started', event: 'accepted' },
        },
      },
    ]);
    const world = running();
    const early = world.hearReport(world.report([{ seq: 9, saying: { kind: 'started' } }]));
    expect(early.refused).toEqual([
      {
        seq: 9,
        refusal: {
          reason: 'EVENT_GAP',
          message: 'event 3 of this claim is expected next',
          metadata: { task_id: TASK_ID, expected_event_seq: '3' },
        },
      },
    ]);
  });

  it('a child whose parent is not the one named, or is not known', () => {
    const link = { taskId: 'parent', generationId: 'other', attached: true };
    const message = 'the parent is not the live, unfenced generation that was named';
    expect(familyRefusal(link, queued().record)).toEqual({
      reason: 'PARENT_CONSTRAINT',
      message,
      metadata: { parent_task_id: 'parent', parent_status: 'queued', parent_generation_id: 'generation-1' },
    });
    expect(familyRefusal(link, null)).toEqual({
      reason: 'PARENT_CONSTRAINT',
      message,
      metadata: { parent_task_id: 'parent', parent_status: 'unknown', parent_generation_id: '' },
    });
  });

  it('a parent that would complete before its children', () => {
    const { draft } = running();
    draft.liveChildren = 2;
    expect(judge(draft, settle('completed', { lease: LEASE, cause: WORKER }))).toEqual({
      kind: 'refused',
      refusal: {
        reason: 'CHILDREN_ACTIVE',
        message: 'attached children of this task are still live',
        metadata: { task_id: TASK_ID, children: '2' },
      },
    });
  });
});
