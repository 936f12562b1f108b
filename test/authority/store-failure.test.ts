// Honest errors (promise C9): a definite failure changed nothing, an unknown outcome is found out before anything else
// is written, and the same key is always safe to send again.

import { describe, expect, it } from 'vitest';
import { UNKNOWN_OUTCOME_PATIENCE_MS } from '../../src/authority/commit-outcome.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import { StoreError } from '../../src/store/store-error.js';
import { openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const unavailable = { kind: 'refused', refusal: { reason: 'STORE_UNAVAILABLE' } };
const unknown = { kind: 'refused', refusal: { reason: 'OUTCOME_UNKNOWN' } };

describe('a store that fails before the commit', () => {
  it('is answered STORE_UNAVAILABLE, changed nothing, and the same key works afterwards', async () => {
    const world = await World.open({ dispatcher: null });
    world.probe.failNext('unavailable');
    expect(await world.submit('k')).toMatchObject(unavailable);
    expect([world.published, await world.real.findTaskId('default', 'k')]).toEqual([[], null]);
    expect(await world.submit('k')).toMatchObject({ kind: 'created' });
  });

  it('leaves a running task as it was, in the cache too', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    const { admission } = await world.admit('k');
    await world.settle();
    world.probe.failNext('unavailable');
    expect(await worker.say(admission.taskId, 'accepted')).toMatchObject(unavailable);
    expect(await world.authority.reads.get(admission.taskId)).toMatchObject({
      value: { lastEvent: 2, status: 'running' },
    });
    // Its number was not used up: the next one is beyond it.
    expect(await worker.say(admission.taskId, 'started')).toMatchObject({
      refused: [{ refusal: { reason: 'EVENT_GAP', metadata: { expected_event_seq: '1' } } }],
    });
  });

  it('while records are being read refuses those who wait, and nobody else', async () => {
    const world = await World.open({ dispatcher: null, cacheBytes: 0 });
    const { admission } = await world.admit('k');
    world.probe.down = true;
    expect(await world.cancel(admission.taskId)).toMatchObject(unavailable);
    expect(await world.authority.reads.get(admission.taskId)).toMatchObject({
      ok: false,
      refusal: unavailable.refusal,
    });
    world.probe.down = false;
    expect(await world.cancel(admission.taskId)).toMatchObject({ kind: 'applied' });
  });

  it('gives the slot of a pairing back: the task is claimed when the store is there again', async () => {
    const world = await World.open();
    const worker = await openWorker(world);
    world.probe.failNext('unavailable');
    expect(await world.submit('k')).toMatchObject(unavailable);
    const { admission } = await world.admit('k');
    world.probe.failNext('unavailable', 'unavailable');
    await world.clock.advance(1_000);
    expect(worker.sink.claimedIds).toEqual([admission.taskId]);
    expect(await world.stored(admission.taskId)).toMatchObject({ status: 'running', attempt: 1, epoch: 1 });
  });
});

describe('a commit whose answer was lost', () => {
  it('that was executed is answered as committed, once it is found out', async () => {
    const world = await World.open({ dispatcher: null });
    world.probe.failNext('lost_answer');
    const answer = await world.submit('k');
    expect(answer).toMatchObject({ kind: 'created', sequence: 1 });
    expect(world.published).toHaveLength(1);
  });

  it('that was not executed is STORE_UNAVAILABLE, and the key is free', async () => {
    const world = await World.open({ dispatcher: null });
    world.probe.failNext('lost_request');
    expect(await world.submit('k')).toMatchObject(unavailable);
    expect(world.published).toEqual([]);
    expect(await world.submit('k')).toMatchObject({ kind: 'created' });
  });
});

describe('an outcome that stays unknown', () => {
  async function lost(executed: boolean) {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    world.probe.outcomeHidden = true;
    world.probe.failNext(executed ? 'lost_answer' : 'lost_request');
    const submitted = world.submit('k');
    await world.settle();
    return { world, submitted };
  }

  it('keeps callers waiting for its patience, then tells them; nothing else is written meanwhile', async () => {
    const { world, submitted } = await lost(true);
    const answered: string[] = [];
    void submitted.then(({ kind }) => answered.push(kind));
    const behind = world.submit('behind');
    await world.clock.advance(UNKNOWN_OUTCOME_PATIENCE_MS - 100);
    expect(answered).toEqual([]);
    await world.clock.advance(2_500);
    expect(await submitted).toMatchObject(unknown);
    expect(await behind).toMatchObject(unavailable);
    expect(world.probe.calls.get('commit')).toBe(1);
    expect(world.published).toEqual([]);
  });

  it('is published when it is found out, and the same key then answers the task that was made', async () => {
    const { world, submitted } = await lost(true);
    await world.clock.advance(10_000);
    expect(await submitted).toMatchObject(unknown);
    world.probe.outcomeHidden = false;
    await world.clock.advance(2_000);
    expect(world.published).toHaveLength(1);
    const again = await world.submit('k');
    expect(again).toMatchObject({ kind: 'replayed', record: { admission: { idempotencyKey: 'k' } } });
    expect(again.kind === 'replayed' && again.record.admission.taskId).toBe(world.published[0]?.taskId);
  });

  it('that turns out not to be committed leaves the key free', async () => {
    const { world, submitted } = await lost(false);
    await world.clock.advance(10_000);
    expect(await submitted).toMatchObject(unknown);
    world.probe.outcomeHidden = false;
    await world.clock.advance(2_000);
    expect(world.published).toEqual([]);
    expect(await world.submit('k')).toMatchObject({ kind: 'created' });
  });

  it('does not keep those waiting for ever who come after the patience ran out', async () => {
    const { world, submitted } = await lost(true);
    await world.clock.advance(10_000);
    await submitted;
    const late = world.submit('late');
    await world.clock.advance(2_500);
    expect(await late).toMatchObject(unavailable);
    expect(world.probe.calls.get('commit')).toBe(1);
  });

  it('answers each caller once, though it is found out later', async () => {
    const { world, submitted } = await lost(true);
    let answers = 0;
    const { submission } = await import('../support/submissions.js');
    world.authority.submit(submission('k'), () => (answers += 1));
    await world.clock.advance(10_000);
    await submitted;
    world.probe.outcomeHidden = false;
    await world.clock.advance(5_000);
    expect(answers).toBe(1);
  });
});

describe('a store that must not be used any more', () => {
  it('ends the process: callers get OUTCOME_UNKNOWN, those behind a definite no, and it is not called again', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    world.probe.failNext('fatal');
    const held = world.probe.hold();
    const first = world.submit('k');
    await held;
    const behind = world.submit('behind');
    world.probe.release();
    expect(await first).toMatchObject(unknown);
    expect(await behind).toMatchObject({ kind: 'refused', refusal: { reason: 'STORE_UNAVAILABLE' } });
    await world.settle();
    expect(world.fatals).toMatchObject([{ failure: 'fatal' }]);
    expect(await world.submit('later')).toMatchObject({ kind: 'refused', refusal: { reason: 'STORE_UNAVAILABLE' } });
    expect(world.probe.calls.get('commit')).toBe(1);
  });

  it('is also one that throws what no store may throw', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    const error = new TypeError('a defect of the adapter');
    world.probe.beforeCommit = () => Promise.reject(error);
    expect(await world.submit('k')).toMatchObject(unknown);
    await world.settle();
    expect(world.fatals).toMatchObject([{ failure: 'fatal', cause: error }]);
  });

  it('is found out by reads too, whoever makes them, and told once', async () => {
    const asks: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
      'a list': (world) => world.authority.reads.list({ ...EVERYTHING }),
      'a history': (world) => world.authority.reads.history('t', 0, 1, 1),
      'the timers': (world) => world.clock.advance(2_000),
      'the reaper': (world) => world.clock.advance(2_000),
    };
    const methods = {
      'a list': 'listTasks',
      'a history': 'readHistory',
      'the timers': 'dueTasks',
      'the reaper': 'sessions',
    };
    for (const [who, method] of Object.entries(methods)) {
      const real = openMemoryStore();
      Object.assign(real, { [method]: () => Promise.reject(new StoreError('fatal', who)) });
      const world = await World.open({ real });
      await asks[who]?.(world);
      await asks[who]?.(world);
      expect(world.fatals).toMatchObject([{ failure: 'fatal', message: who }]);
    }
  });

  it('is found out though nobody asks it anything, and after the stop it is no news', async () => {
    const world = await World.open({ dispatcher: null, timers: 'stopped' });
    world.probe.die(new StoreError('fatal', 'a thread died'));
    expect(world.fatals).toMatchObject([{ message: 'a thread died' }]);
    const stopping = await World.open({ dispatcher: null, timers: 'stopped' });
    await stopping.authority.stop();
    await stopping.real.close();
    expect(await stopping.authority.reads.get('t')).toMatchObject({ ok: false });
    expect(stopping.fatals).toEqual([]);
  });
});

const EVERYTHING = {
  namespace: null,
  queue: null,
  statuses: null,
  actionKinds: null,
  labels: {},
  descending: false,
  after: null,
  limit: 10,
  withArgs: false,
};
