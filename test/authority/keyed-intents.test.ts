// A keyed intent is applied once (lifecycle.md section 4, step 2): a repeat gets the first result, in one batch, across
// batches, processes and restarts; other content under the key is a conflict; other intents are not touched by it.

import { describe, expect, it } from 'vitest';
import type { IntentAnswer, IntentRequest } from '../../src/authority/intent-work.js';
import type { Intent } from '../../src/kernel/intent.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const CONTENT = 'sha256:00';
const OTHER_CONTENT = 'sha256:11';

function suspend(taskId: string, key: string, contentHash = CONTENT): IntentRequest {
  return { taskId, key: { key, contentHash }, intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } };
}

function cancelRequest(taskId: string, key: string): IntentRequest {
  const intent: Intent = { kind: 'request_cancellation', graceMs: null, cause: causeOf('producer') };
  return { taskId, key: { key, contentHash: CONTENT }, intent, remembers: () => true };
}

const kinds = (answers: readonly IntentAnswer[]): string[] =>
  answers.map((answer) => (answer.kind === 'refused' ? answer.refusal.reason : answer.kind));

async function queuedTask() {
  const world = await World.open();
  const { admission } = await world.admit('k');
  return { world, taskId: admission.taskId };
}

async function runningTask() {
  const world = await World.open();
  const worker = await openWorker(world);
  const { admission } = await world.admit('k');
  await world.settle();
  return { world, worker, taskId: admission.taskId };
}

describe('a repeated key', () => {
  it('gets the first result and changes nothing', async () => {
    const { world, taskId } = await queuedTask();
    const first = await world.apply(suspend(taskId, 'op-1'));
    const second = await world.apply(suspend(taskId, 'op-1'));
    expect(kinds([first, second])).toEqual(['applied', 'replayed']);
    expect(second).toMatchObject({
      remembered: { kind: 'applied', intent: 'suspend', previousStatus: 'queued', status: 'suspended', revision: 2 },
      record: { status: 'suspended' },
    });
    expect(await world.eventTypes(taskId)).toEqual(['submitted', 'suspended']);
  });

  it('within one batch: the second is the replay of the first, not judged on what the first left', async () => {
    const { world, taskId } = await queuedTask();
    const answers = await Promise.all([world.apply(suspend(taskId, 'op-1')), world.apply(suspend(taskId, 'op-1'))]);
    expect(kinds(answers)).toEqual(['applied', 'replayed']);
    expect(await world.eventTypes(taskId)).toEqual(['submitted', 'suspended']);
  });

  it('within one batch also where every answer is remembered: the second cancel keeps no second entry', async () => {
    const { world, taskId } = await runningTask();
    const requests = [cancelRequest(taskId, 'c-1'), cancelRequest(taskId, 'c-1'), cancelRequest(taskId, 'c-2')];
    const answers = await Promise.all(requests.map((request) => world.apply(request)));
    expect(kinds(answers)).toEqual(['applied', 'replayed', 'unchanged']);
    expect(world.fatals).toEqual([]);
    expect(await world.apply(cancelRequest(taskId, 'c-2'))).toMatchObject({
      kind: 'replayed',
      remembered: { kind: 'unchanged', revision: 3 },
    });
  });

  it('in two processes at once: one applies, the other replays', async () => {
    const { world, taskId } = await queuedTask();
    const other = await world.replica();
    await other.authority.reads.get(taskId);
    const answers = await Promise.all([world.apply(suspend(taskId, 'op-1')), other.apply(suspend(taskId, 'op-1'))]);
    expect(kinds(answers).sort()).toEqual(['applied', 'replayed']);
    expect(await world.eventTypes(taskId)).toEqual(['submitted', 'suspended']);
  });

  it('after a restart', async () => {
    const { world, taskId } = await queuedTask();
    await world.apply(suspend(taskId, 'op-1'));
    world.kill();
    const restarted = await world.replica();
    expect(kinds([await restarted.apply(suspend(taskId, 'op-1'))])).toEqual(['replayed']);
  });

  it('whose answer was lost, though it was executed', async () => {
    const { world, taskId } = await queuedTask();
    world.probe.failNext('lost_answer');
    const first = await world.apply(suspend(taskId, 'op-1'));
    const second = await world.apply(suspend(taskId, 'op-1'));
    expect(kinds([first, second])).toEqual(['applied', 'replayed']);
  });

  it.each(['one batch', 'two batches'])('with other content is a conflict, in %s', async (when) => {
    const { world, taskId } = await queuedTask();
    const first = world.apply(suspend(taskId, 'op-1'));
    if (when === 'two batches') await first;
    const second = await world.apply(suspend(taskId, 'op-1', OTHER_CONTENT));
    expect(kinds([await first, second])).toEqual(['applied', 'IDEMPOTENCY_CONFLICT']);
    expect(second).toMatchObject({ refusal: { metadata: { idempotency_key: 'op-1', task_id: taskId } } });
  });
});

describe('what a key does not cover', () => {
  it('a refused intent keeps no entry: the key can still be used', async () => {
    const { world, taskId } = await queuedTask();
    await world.apply(suspend(taskId, 'op-0'));
    expect(kinds([await world.apply(suspend(taskId, 'op-1'))])).toEqual(['INVALID_TRANSITION']);
    await world.apply({
      taskId,
      intent: {
        kind: 'resume',
        newGenerationId: null,
        spareGenerationId: 'spare',
        inputJson: null,
        cause: causeOf('operator'),
      },
    });
    expect(kinds([await world.apply(suspend(taskId, 'op-1'))])).toEqual(['applied']);
  });

  it('the same key on another task', async () => {
    const { world, taskId } = await queuedTask();
    const { admission } = await world.admit('l');
    const answers = await Promise.all([
      world.apply(suspend(taskId, 'op-1')),
      world.apply(suspend(admission.taskId, 'op-1')),
    ]);
    expect(kinds(answers)).toEqual(['applied', 'applied']);
  });

  it('an unkeyed intent that shares the unit of a repeated one is judged, not answered with its entry', async () => {
    const { world, taskId } = await queuedTask();
    const other = await world.replica();
    await other.authority.reads.get(taskId);
    // The other process wins while this batch is on its way: the ledger key is taken, the unit is lost.
    world.probe.beforeCommit = async () => {
      world.probe.beforeCommit = () => Promise.resolve();
      await other.apply(suspend(taskId, 'op-1'));
    };
    const answers = await Promise.all([world.apply(suspend(taskId, 'op-1')), world.cancel(taskId)]);
    expect(kinds(answers)).toEqual(['replayed', 'applied']);
    expect(await world.eventTypes(taskId)).toEqual(['submitted', 'suspended', 'cancel.requested', 'cancelled']);
  });
});
