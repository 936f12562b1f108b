// The AEP table, and the projection of whole generations onto it (lifecycle.md section 2).

import { describe, expect, it } from 'vitest';
import { AEP_STATES, isLegalAep, project, statesMissingBeforeCompletion } from '../../src/kernel/aep.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import { AEP_ROWS, aepAllows } from './aep-table.js';
import { OPERATOR, T0, TaskWorld, cause, settle } from './task-world.js';

describe('the AEP table', () => {
  it('has ten states', () => {
    expect([...AEP_STATES].sort()).toEqual([...AEP_ROWS.keys()].sort());
    expect(AEP_STATES).toHaveLength(10);
  });

  it('allows exactly the rows of the document', () => {
    for (const from of AEP_STATES) {
      for (const to of AEP_STATES) {
        expect(isLegalAep(from, to), `${from} to ${to}`).toBe(aepAllows(from, to));
        expect(project(from, to), `${from} to ${to}`).toBe(aepAllows(from, to) ? to : null);
      }
    }
  });

  it('names the states missing before a completion, and with them the path is legal', () => {
    expect(statesMissingBeforeCompletion('submitted')).toEqual(['accepted', 'started']);
    expect(statesMissingBeforeCompletion('accepted')).toEqual(['started']);
    expect(statesMissingBeforeCompletion('blocked')).toEqual(['started']);
    for (const from of ['submitted', 'accepted', 'started', 'progress', 'output', 'blocked'] as const) {
      const path = [from, ...statesMissingBeforeCompletion(from), 'completed'];
      path.slice(1).forEach((to, index) => expect(aepAllows(path[index] ?? '', to), `${path.join(' ')}`).toBe(true));
    }
    for (const from of ['completed', 'failed', 'cancelled', 'timed_out'] as const) {
      expect(statesMissingBeforeCompletion(from)).toEqual([]);
    }
  });
});

/** The whole history read as the projection alone. */
function projection(events: readonly TaskEvent[]): string[] {
  return events.flatMap((event) => (event.aep === null ? [] : [event.aep]));
}

/** Steps on one draft, all at one time, so that its events are the whole history. */
function walk(steps: (world: TaskWorld) => void): { readonly path: string[]; readonly world: TaskWorld } {
  const world = TaskWorld.admit({ retry: { initialMs: 0 } });
  steps(world);
  return { path: projection(world.draft.events), world };
}

describe('the projection', () => {
  it('of a plain life is what the worker said', () => {
    const { path } = walk((world) =>
      world.claim().say('accepted', 'started', 'progress', 'output', 'blocked', 'started', 'completed'),
    );
    expect(path).toEqual(['submitted', 'accepted', 'started', 'progress', 'output', 'blocked', 'started', 'completed']);
  });

  it('shows a retry as started, blocked, started and projects no second accepted', () => {
    const { path, world } = walk((world) =>
      world.claim().say('accepted', 'started', 'failed').tick().claim().say('accepted', 'started', 'completed'),
    );
    expect(path).toEqual(['submitted', 'accepted', 'started', 'blocked', 'started', 'completed']);
    const accepted = world.draft.events.filter((event) => event.type === 'task.accepted');
    expect(accepted.map((event) => event.aep)).toEqual(['accepted', null]);
  });

  it('of a retry before any start stays where it was', () => {
    const { path } = walk((world) =>
      world.claim().say('failed').tick().claim().say('accepted', 'failed').tick().claim().say('accepted', 'started'),
    );
    expect(path).toEqual(['submitted', 'accepted', 'started']);
  });

  it('of what was blocked already says so once', () => {
    const { path } = walk((world) => world.claim().say('accepted', 'started', 'blocked', 'failed').tick().claim());
    expect(path).toEqual(['submitted', 'accepted', 'started', 'blocked']);
  });

  it('of a suspension is blocked when it had started and unchanged when it had not', () => {
    const suspend = { kind: 'suspend', lease: null, cause: OPERATOR } as const;
    expect(walk((world) => world.apply(suspend)).path).toEqual(['submitted']);
    expect(walk((world) => world.claim().say('accepted').apply(suspend)).path).toEqual(['submitted', 'accepted']);
    expect(walk((world) => world.claim().say('accepted', 'started').apply(suspend)).path).toEqual([
      'submitted',
      'accepted',
      'started',
      'blocked',
    ]);
  });

  it('of a lost owner goes on with the next', () => {
    const lost = { kind: 'session_lost', sessionId: 'session-a', cause: cause('reaper') } as const;
    const { path } = walk((world) =>
      world.claim().say('accepted', 'started', 'output').apply(lost).claim().say('accepted', 'started', 'progress'),
    );
    expect(path).toEqual(['submitted', 'accepted', 'started', 'output', 'blocked', 'started', 'progress']);
  });

  it('of a skipped task is cancelled', () => {
    const { path } = walk((world) =>
      world.apply({ kind: 'skip', cause: cause('operator', { code: 'app.x.y', summary: '', evidenceRefs: [] }) }),
    );
    expect(path).toEqual(['submitted', 'cancelled']);
  });

  it('begins afresh with a generation', () => {
    const resume = {
      kind: 'resume',
      newGenerationId: 'g2',
      spareGenerationId: 's',
      inputJson: null,
      cause: OPERATOR,
    } as const;
    const { path } = walk((world) =>
      world.claim().say('accepted', 'started', 'completed').apply(resume).claim().say('accepted'),
    );
    expect(path).toEqual(['submitted', 'accepted', 'started', 'completed', 'submitted', 'accepted']);
  });

  it('is carried by its own events alone: claims, requeues, receipts, requests and checkpoints have none', () => {
    const { world } = walk((world) => {
      world.claim().say('accepted', 'checkpoint', 'failed').tick().claim().say('accepted', 'started').requestCancel();
      world.apply({ kind: 'receipt', lease: world.proof(), acknowledged: true, cause: cause('worker') });
    });
    const without = world.draft.events.filter((event) => event.aep === null).map((event) => event.type);
    expect(without).toEqual([
      'reeve.task.claimed',
      'reeve.task.checkpoint',
      'reeve.task.retry_scheduled',
      'reeve.task.requeued',
      'reeve.task.claimed',
      'task.accepted',
      'task.cancel.requested',
      'reeve.task.cancel_delivered',
      'reeve.task.cancel_acknowledged',
    ]);
  });
});

describe('a completion through Transition that comes too early', () => {
  it.each([
    ['submitted', [], ['accepted', 'started', 'completed']],
    ['accepted', ['accepted'], ['started', 'completed']],
    ['started', ['accepted', 'started'], ['completed']],
    ['blocked', ['accepted', 'started', 'blocked'], ['started', 'completed']],
  ] as const)('%s is preceded by what is missing, inferred, in the same commit', (_state, said, path) => {
    const world = TaskWorld.admit().claim();
    world.say(...said).at(T0 + 1);
    world.apply(settle('completed', { lease: world.proof(), cause: cause('worker') }));
    expect(projection(world.draft.events)).toEqual(path);
    expect(world.draft.events.map((event) => event.inferred)).toEqual(path.map((state) => state !== 'completed'));
  });

  it('after a retry infers for the attempt, and the projection stays legal', () => {
    const world = TaskWorld.admit({ retry: { initialMs: 0 } })
      .claim()
      .say('accepted', 'started', 'failed')
      .tick()
      .claim();
    world.at(T0 + 1).apply(settle('completed', { lease: world.proof(), cause: cause('worker') }));
    expect(world.eventTypes).toEqual(['task.accepted', 'task.started', 'task.completed']);
    expect(world.draft.events.map((event) => event.aep)).toEqual([null, 'started', 'completed']);
  });
});
