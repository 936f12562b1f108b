// One key, one task, for ever (promise C2): in one batch, across batches, across two processes on one store, after the
// task ended. A task id belongs to the key it was admitted under.

import { describe, expect, it } from 'vitest';
import type { SubmitAnswer } from '../../src/authority/submit-work.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

function idOf(answer: SubmitAnswer): string {
  if (answer.kind === 'refused') throw new Error(answer.refusal.reason);
  return answer.kind === 'purged' ? answer.task.taskId : answer.record.admission.taskId;
}

function reasonOf(answer: SubmitAnswer): string {
  return answer.kind === 'refused' ? answer.refusal.reason : answer.kind;
}

describe('the same key', () => {
  it('converges within one batch: one is created, the others are replays of it', async () => {
    const world = await World.open();
    const answers = await Promise.all(['k', 'k', 'k'].map((key) => world.submit(key)));
    expect(answers.map(({ kind }) => kind)).toEqual(['created', 'replayed', 'replayed']);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(world.probe.plans()).toHaveLength(1);
  });

  it('converges across batches, and a later one changes nothing', async () => {
    const world = await World.open();
    const created = await world.submit('k');
    const replay = await world.submit('k');
    expect(replay).toMatchObject({ kind: 'replayed', ignoredPolicyFields: [] });
    expect(idOf(replay)).toBe(idOf(created));
    expect(world.published).toHaveLength(1);
  });

  it('converges across two processes whose submissions cross', async () => {
    const left = await World.open();
    const right = await left.replica();
    const answers = await Promise.all([
      ...['k', 'k'].map((key) => left.submit(key)),
      ...['k', 'k'].map((key) => right.submit(key)),
    ]);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(answers.filter(({ kind }) => kind === 'created')).toHaveLength(1);
  });

  it('answers the task in whatever state it is, ended ones included', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k');
    await world.settle();
    await worker.say(admission.taskId, 'accepted', 'started', 'completed');
    const replay = await world.submit('k');
    expect(replay).toMatchObject({ kind: 'replayed', record: { status: 'completed' } });
    expect(idOf(replay)).toBe(admission.taskId);
  });

  it('names the policy fields that it ignored', async () => {
    const world = await World.open();
    await world.admit('k', { policy: { priority: 1 } });
    const replay = await world.submit('k', { policy: { priority: 2, timeoutMs: 5_000 } });
    expect(replay).toMatchObject({ kind: 'replayed', ignoredPolicyFields: ['priority', 'timeout'] });
  });

  it.each(['one batch', 'two batches'])('with another payload is a conflict that says where, in %s', async (when) => {
    const world = await World.open();
    const first = world.submit('k', { args: '{"a":{"b":1}}' });
    if (when === 'two batches') await first;
    const second = await world.submit('k', { args: '{"a":{"b":2}}' });
    expect(second).toMatchObject({
      kind: 'refused',
      refusal: {
        reason: 'IDEMPOTENCY_CONFLICT',
        metadata: { task_id: idOf(await first), pointers: '["/args/a/b"]', idempotency_key: 'k' },
      },
    });
  });

  it('in another namespace is another task', async () => {
    const world = await World.open();
    const answers = await Promise.all([world.submit('k'), world.submit('k', { namespace: 'other' })]);
    expect(answers.map(({ kind }) => kind)).toEqual(['created', 'created']);
  });

  it('is a replay also while the task that holds it is changing in the same batch', async () => {
    const world = await World.open();
    await world.admit('k', { taskId: 'order-17' });
    const [cancelled, replay] = await Promise.all([
      world.cancel('order-17'),
      world.submit('k', { taskId: 'order-17' }),
    ]);
    expect(cancelled.kind).toBe('applied');
    expect(replay).toMatchObject({ kind: 'replayed', record: { status: 'cancelled' } });
  });
});

describe('a task id of the caller', () => {
  it('that is taken under another key is refused, in one batch and in two', async () => {
    const world = await World.open();
    const answers = await Promise.all([
      world.submit('first', { taskId: 'order-17' }),
      world.submit('second', { taskId: 'order-17' }),
    ]);
    expect(answers.map(reasonOf)).toEqual(['created', 'TASK_ID_TAKEN']);
    expect(reasonOf(await world.submit('third', { taskId: 'order-17' }))).toBe('TASK_ID_TAKEN');
    expect(world.published).toHaveLength(1);
  });

  it('that is taken refuses only its own submission, not another one of the same key', async () => {
    const world = await World.open();
    await world.admit('first', { taskId: 'order-17' });
    const answers = await Promise.all([world.submit('k', { taskId: 'order-17' }), world.submit('k')]);
    expect(answers.map(reasonOf)).toEqual(['TASK_ID_TAKEN', 'created']);
  });

  it('that loses its place in the batch is judged on its own key, never answered with the task of another', async () => {
    const world = await World.open();
    const elsewhere = await world.replica();
    await elsewhere.admit('k', { taskId: 'taken-before' });
    // The first is a duplicate, found out in the write; the second had joined it for its task id alone.
    const answers = await Promise.all([
      world.submit('k', { taskId: 'order-17' }),
      world.submit('other', { taskId: 'order-17' }),
    ]);
    expect(answers.map(reasonOf)).toEqual(['replayed', 'created']);
    expect(answers.map(idOf)).toEqual(['taken-before', 'order-17']);
  });

  it('does not change the answer of a key that is known, whatever else happens to the task of that id', async () => {
    const world = await World.open();
    await world.admit('k1', { taskId: 'A' });
    await world.admit('k2', { taskId: 'B' });
    expect(reasonOf(await world.submit('k1', { taskId: 'B' }))).toBe('replayed');
    const cancelled = world.cancel('B');
    const beside = world.submit('k1', { taskId: 'B' });
    expect([reasonOf(await beside), (await cancelled).kind]).toEqual(['replayed', 'applied']);
    expect(idOf(await beside)).toBe('A');
    // The other way round: what is said of B finds B, and not what would take its id.
    const again = world.submit('k1', { taskId: 'B' });
    const judged = await world.apply({
      taskId: 'B',
      intent: { kind: 'request_cancellation', graceMs: null, cause: causeOf('operator') },
    });
    expect(reasonOf(await again)).toBe('replayed');
    expect(judged).toMatchObject({ record: { status: 'cancelled', admission: { idempotencyKey: 'k2' } } });
  });
});
