// Two processes on one store. Each decides on what it remembers, and the check in the write makes a stale memory
// harmless: no update is lost, losers are judged again on fresh records, a bounded number of times.

import { describe, expect, it } from 'vitest';
import { MAX_JUDGEMENTS } from '../../src/authority/work.js';
import { NO_GUARDS } from '../../src/kernel/intent.js';
import { causeOf } from '../support/submissions.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

async function twoProcesses() {
  const left = await World.open({ timers: 'stopped' });
  const worker = await openWorker(left);
  const { admission } = await left.admit('k');
  await left.settle();
  const right = await left.replica({ dispatcher: null, timers: 'stopped' });
  return { left, right, worker, taskId: admission.taskId };
}

/** Another writer commits just before each of this world's next commits. */
function interfere(world: World, times: number, write: () => Promise<unknown>): void {
  let left = times;
  world.probe.beforeCommit = async () => {
    if (left > 0) {
      left -= 1;
      await write();
    }
  };
}

describe('a stale copy', () => {
  it('loses no update: both changes stand, the later one judged on the first', async () => {
    const { left, right, worker, taskId } = await twoProcesses();
    await right.cancel(taskId);
    // The left process still remembers a task without a cancel request.
    expect(await worker.say(taskId, 'accepted', 'started', 'cancelled')).toMatchObject({
      judgedThrough: 3,
      refused: [],
    });
    expect(await left.eventTypes(taskId)).toEqual([
      'submitted',
      'claimed',
      'cancel.requested',
      'accepted',
      'started',
      'cancelled',
    ]);
    expect(await left.stored(taskId)).toMatchObject({ reason: { code: 'run.cancelled.acknowledged' } });
    await left.assertHistories([taskId]);
  });

  it('under many writers of both processes keeps every event, in one order', async () => {
    const { left, right, worker, taskId } = await twoProcesses();
    await worker.say(taskId, 'accepted', 'started');
    for (let round = 0; round < 20; round++) {
      await Promise.all([
        worker.say(taskId, 'progress'),
        right.apply({
          taskId,
          intent: {
            kind: 'receipt',
            lease: { epoch: 1, sessionId: null },
            acknowledged: round > 10,
            cause: causeOf('worker'),
          },
        }),
        round === 5 ? right.cancel(taskId) : null,
      ]);
    }
    const types = await left.eventTypes(taskId);
    expect(types.filter((type) => type === 'progress')).toHaveLength(20);
    expect(types.filter((type) => type === 'cancel_delivered')).toHaveLength(1);
    await left.assertHistories([taskId]);
  });

  it('is judged afresh when it loses, and refused for what is true now', async () => {
    const { left, right, worker, taskId } = await twoProcesses();
    interfere(left, 1, () => right.cancel(taskId));
    const operator = causeOf('operator');
    const answer = await left.apply({ taskId, intent: { kind: 'suspend', lease: null, cause: operator } });
    expect(answer).toMatchObject({ kind: 'refused', refusal: { reason: 'CANCELLATION_FENCED' } });
    expect(worker.sink.lost).toEqual([]);
  });

  it('with a pinned revision is a conflict that shows the revision found', async () => {
    const { left, right, taskId } = await twoProcesses();
    interfere(left, 1, () => right.cancel(taskId));
    const answer = await left.apply({
      taskId,
      guards: { ...NO_GUARDS, expectedRevision: 2 },
      intent: { kind: 'suspend', lease: null, cause: causeOf('operator') },
    });
    expect(answer).toMatchObject({ kind: 'conflict', guard: 'REVISION', observed: '3' });
  });

  it('is not kept by a process without a cache: its refusals and conflicts are of the record as it is', async () => {
    const { right, worker, taskId } = await twoProcesses();
    const fresh = await right.replica({ dispatcher: null, cacheBytes: 0 });
    await fresh.authority.reads.get(taskId);
    await worker.say(taskId, 'accepted', 'started', 'completed');
    const answer = await fresh.apply({
      taskId,
      guards: { ...NO_GUARDS, expectedRevision: 3 },
      intent: { kind: 'suspend', lease: null, cause: causeOf('operator') },
    });
    expect(answer).toMatchObject({ kind: 'refused', refusal: { reason: 'TERMINAL_GENERATION' } });
  });
});

describe('a race that is never won', () => {
  it('ends in CONTENTION after a bounded number of judgements, and nothing was changed by it', async () => {
    const { left, right, worker, taskId } = await twoProcesses();
    await worker.say(taskId, 'accepted', 'started');
    let seq = 2;
    const commits = left.probe.calls.get('commit') ?? 0;
    interfere(left, Number.POSITIVE_INFINITY, () => {
      seq += 1;
      return new Promise((resolve) => {
        const events = [{ seq, saying: { kind: 'progress' as const, progress: 0.1, message: null } }];
        const report = {
          sessionId: worker.sessionId,
          generation: 1,
          epoch: 1,
          answeredThrough: 0,
          events,
          chance: 0,
          cause: causeOf('worker'),
        };
        right.authority.report({ taskId, report, attachment: 1, weightBytes: 1 }, resolve);
      });
    });
    expect(await left.cancel(taskId)).toMatchObject({ kind: 'refused', refusal: { reason: 'CONTENTION' } });
    expect((left.probe.calls.get('commit') ?? 0) - commits).toBe(MAX_JUDGEMENTS);
    expect(await left.stored(taskId)).toMatchObject({ cancellation: null });
  });

  it('is judged again as often as that before it is given up', async () => {
    const { left, right, taskId } = await twoProcesses();
    let round = 0;
    interfere(left, MAX_JUDGEMENTS - 1, async () => {
      round += 1;
      await right.apply({
        taskId,
        intent:
          round % 2 === 1
            ? { kind: 'suspend', lease: null, cause: causeOf('operator') }
            : {
                kind: 'resume',
                newGenerationId: null,
                spareGenerationId: 'spare',
                inputJson: null,
                cause: causeOf('operator'),
              },
      });
    });
    expect(await left.cancel(taskId)).toMatchObject({ kind: 'applied' });
    await left.assertHistories([taskId]);
  });
});

describe('a session that another process took over', () => {
  it('what its older stream says is SESSION_GONE at once, not judged again and again', async () => {
    const { left, worker, taskId } = await twoProcesses();
    const right = await left.replica({ timers: 'stopped' });
    const again = await worker.reattach({ world: right });
    const commits = left.probe.calls.get('commit') ?? 0;
    expect(await worker.say(taskId, 'accepted')).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'SESSION_GONE' },
    });
    expect((left.probe.calls.get('commit') ?? 0) - commits).toBe(1);
    expect(await again.sayIn(taskId, 1, 'accepted')).toMatchObject({ kind: 'judged', refused: [] });
  });

  it('what shares a unit with such words is judged without them', async () => {
    const { left, worker, taskId } = await twoProcesses();
    const right = await left.replica({ timers: 'stopped' });
    await worker.reattach({ world: right });
    const [said, cancelled] = await Promise.all([worker.say(taskId, 'accepted'), left.cancel(taskId)]);
    expect([said.kind, cancelled.kind]).toEqual(['refused', 'applied']);
    expect(await left.eventTypes(taskId)).toEqual(['submitted', 'claimed', 'cancel.requested']);
  });
});
