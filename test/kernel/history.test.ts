// Events, drafts and the fold (promise C3): numbers, ids, and that a history is nothing but its events.

import { describe, expect, it } from 'vitest';
import { Draft } from '../../src/kernel/draft.js';
import { eventId, eventNumberOf, isFact, transitionId, type TaskEvent } from '../../src/kernel/event.js';
import { applyEvent, beginRecord, fold } from '../../src/kernel/fold.js';
import { PRODUCER, T0, TASK_ID, TaskWorld, admission } from './task-world.js';

function life(): TaskWorld {
  return TaskWorld.admit({ retry: { initialMs: 0 } })
    .claim()
    .say('accepted', 'started', 'progress', 'output', 'checkpoint', 'failed')
    .tick()
    .claim()
    .say('accepted', 'started')
    .requestCancel()
    .say('completed');
}

describe('a history', () => {
  it('begins with task.submitted: revision 1, event 1, queued', () => {
    const { draft } = TaskWorld.admit();
    expect(draft.events).toHaveLength(1);
    expect(draft.events[0]).toMatchObject({
      type: 'task.submitted',
      number: 1,
      revision: 1,
      generation: 1,
      from: null,
      to: 'queued',
      aep: 'submitted',
      at: T0,
      cause: PRODUCER,
    });
  });

  it('numbers every event and gives facts, and only facts, a revision', () => {
    const { draft } = life();
    expect(draft.events.map((event) => event.number)).toEqual(draft.events.map((_, index) => index + 1));
    const facts = draft.events.filter((event) => isFact(event.type));
    expect(facts.map((event) => event.revision)).toEqual(facts.map((_, index) => index + 1));
    const others = draft.events.filter((event) => !isFact(event.type));
    expect(others.map((event) => event.type)).toEqual([
      'task.accepted',
      'task.started',
      'task.progress',
      'task.output',
      'reeve.task.checkpoint',
      'task.accepted',
      'task.started',
    ]);
    for (const event of others) expect(event).toMatchObject({ revision: null, from: null, to: null });
  });

  it('folds to the record, in one go or from any point on', () => {
    const { draft, record } = life();
    expect(fold(admission({ retry: { initialMs: 0 } }), draft.events)).toEqual(record);
    for (let cut = 1; cut <= draft.events.length; cut += 1) {
      const early = fold(record.admission, draft.events.slice(0, cut));
      if (early === null) throw new Error('the fold of something is something');
      expect(draft.events.slice(cut).reduce(applyEvent, early)).toEqual(record);
    }
  });

  it('of nothing folds to nothing', () => {
    expect(fold(admission(), [])).toBeNull();
  });

  it('that does not begin with its submission, or has a second one, is no history', () => {
    const { draft } = life();
    const [first, second] = draft.events;
    if (first === undefined || second === undefined) throw new Error('there are more');
    expect(() => beginRecord(admission(), second)).toThrow('begins with task.submitted');
    expect(() => fold(admission(), [first, first])).toThrow('only be the first');
  });

  it('survives JSON', () => {
    const { draft, record } = life();
    const copied = JSON.parse(JSON.stringify(draft.events)) as TaskEvent[];
    expect(fold(record.admission, copied)).toEqual(record);
  });
});

describe('a draft', () => {
  it('refuses to take an edge that is not declared, as the last line', () => {
    const { record } = TaskWorld.admit();
    const draft = Draft.of(record, T0);
    const data = { resultJson: null, ending: null, ownerStopped: true };
    expect(() => draft.append({ type: 'task.completed', data }, { cause: PRODUCER, to: 'completed' })).toThrow(
      'undeclared edge queued → completed',
    );
    expect(draft.record).toBe(record);
    expect(draft.events).toEqual([]);
  });

  it('marks each event with the epoch it belongs to', () => {
    const { draft } = life();
    expect(draft.events.map((event) => [event.type.replace(/^(reeve\.)?task\./, ''), event.epoch])).toEqual([
      ['submitted', null],
      ['claimed', 1],
      ['accepted', 1],
      ['started', 1],
      ['progress', 1],
      ['output', 1],
      ['checkpoint', 1],
      ['retry_scheduled', 1],
      ['requeued', null],
      ['claimed', 2],
      ['accepted', 2],
      ['started', 2],
      ['cancel.requested', 2],
      ['completed', 2],
    ]);
  });
});

describe('derived ids', () => {
  it('name the task and the number, and are read back', () => {
    expect(eventId(TASK_ID, 12)).toBe('order-17~e12');
    expect(transitionId(TASK_ID, 3)).toBe('order-17~r3');
    expect(eventNumberOf(TASK_ID, eventId(TASK_ID, 12))).toBe(12);
  });

  it.each([
    'order-1~e7',
    'order-17~e0',
    'order-17~e',
    'order-17~e01',
    'order-17~e1x',
    'order-17~r1',
    'order-17',
    '',
    'order-17~e1e3',
    'order-17~e9999999999999999',
  ])('%s is no event id of this task', (id) => {
    expect(eventNumberOf(TASK_ID, id)).toBeNull();
  });
});
