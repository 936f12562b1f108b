// A worker inside the process: it claims, says what it does, and its lease lives as long as it is renewed.

import { afterEach, describe, expect, it } from 'vitest';
import { type Embedded, all, openEmbeddedFixture, refusalOf } from './embedded-fixture.js';

const open: Embedded[] = [];
afterEach(async () => {
  for (const { reeve } of open.splice(0)) await reeve.close();
});

async function embedded(...given: Parameters<typeof openEmbeddedFixture>): Promise<Embedded> {
  const one = await openEmbeddedFixture(...given);
  open.push(one);
  return one;
}

async function claimed(more: object = {}) {
  const one = await embedded();
  const { task } = await one.reeve.submit({ kind: 'agent', key: 'k', args: { n: 1 }, ...more });
  const claim = await one.reeve.claim(task.id, { worker: 'inside', ttlMs: 10_000 });
  return { ...one, task, claim };
}

const accepted = { type: 'accepted' } as const;
const started = { type: 'started' } as const;

describe('a claim', () => {
  it('carries what its work needs, and tells its task from acceptance to the end', async () => {
    const { reeve, task, claim, clock } = await claimed({ timeoutMs: 60_000 });
    expect(claim).toMatchObject({ taskId: task.id, generation: 1, epoch: 1, attempt: 1, task: { args: { n: 1 } } });
    expect(claim.deadlineAtMs).toBe(task.createdAtMs + 60_000);
    expect((await reeve.get(task.id)).lease).toMatchObject({ worker: 'inside', epoch: 1, acceptedAtMs: null });
    const going = await claim.report(accepted, started, { type: 'progress', fraction: 0.5, message: 'half' });
    expect(going).toMatchObject({ task: { progress: 0.5, message: 'half' }, cancel: null });
    expect(going.expiresAtMs).toBe(clock.nowMs() + 10_000);
    await claim.report({ type: 'output', output: { page: 1 } }, { type: 'checkpoint', checkpoint: { next: 2 } });
    const done = await claim.report({ type: 'completed', result: { pages: 1 }, exitCode: 0 });
    expect(done).toMatchObject({ task: { status: 'completed', ending: { exitCode: 0 } }, expiresAtMs: null });
    expect(await reeve.get(task.id)).toMatchObject({ result: { pages: 1 }, checkpoint: { next: 2 } });
    const events = await all(reeve.events(task.id));
    expect(events.map(({ type, workerSeq }) => [type.split('.').at(-1), workerSeq])).toEqual([
      ['submitted', null],
      ['claimed', null],
      ['accepted', 1],
      ['started', 2],
      ['progress', 3],
      ['output', 4],
      ['checkpoint', 5],
      ['completed', 6],
    ]);
    expect(events.at(-1)).toMatchObject({
      actor: { type: 'worker', id: 'inside' },
      source: 'embedded',
      aepState: 'completed',
    });
    expect((await refusalOf(claim.renew())).reason).toBe('LEASE_LOST');
  });

  it('goes once: not twice, not of what is held, and a repetition of its key has the same lease', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit({ kind: 'agent', key: 'k' });
    const first = await reeve.claim(task.id, { key: 'claim-1' });
    expect((await refusalOf(reeve.claim(task.id))).reason).toBe('INVALID_TRANSITION');
    const again = await reeve.claim(task.id, { key: 'claim-1' });
    expect([again.epoch, again.lease]).toEqual([first.epoch, first.lease]);
    await first.report(accepted, started, { type: 'completed' });
    expect((await refusalOf(reeve.claim(task.id, { key: 'claim-1' }))).reason).toBe('LEASE_LOST');
    expect((await refusalOf(reeve.claim('nobody'))).reason).toBe('TASK_NOT_FOUND');
  });

  it('that is not renewed is lost, and what its worker says then is not applied', async () => {
    const { reeve, task, claim, clock } = await claimed();
    await claim.report(accepted, started);
    await clock.advance(9_000);
    await claim.renew();
    await clock.advance(9_000);
    expect((await reeve.get(task.id)).status).toBe('running');
    await clock.advance(3_000);
    expect(await reeve.get(task.id)).toMatchObject({ status: 'queued', attempt: 1, lease: null });
    expect((await refusalOf(claim.report({ type: 'completed' }))).reason).toBe('LEASE_LOST');
    const next = await reeve.claim(task.id);
    expect([next.epoch, next.attempt]).toEqual([2, 2]);
    expect((await refusalOf(claim.report({ type: 'completed' }))).reason).toBe('LEASE_LOST');
    expect((await reeve.get(task.id)).status).toBe('running');
  });

  it('whose attempt fails is retried, with the checkpoint for the next', async () => {
    const { reeve, task, claim, clock } = await claimed({ retry: { maxAttempts: 2, initialMs: 1_000, jitter: 0 } });
    await claim.report(accepted, started, { type: 'checkpoint', checkpoint: 7 });
    await claim.report({ type: 'failed', code: 'flaky', message: 'try again', details: { at: 3 } });
    expect(await reeve.get(task.id)).toMatchObject({ status: 'retry_wait', ending: { error: { code: 'flaky' } } });
    await clock.advance(1_100);
    const next = await reeve.claim(task.id);
    expect(next.task.checkpoint).toBe(7);
    await next.report(accepted, started, { type: 'failed', code: 'flaky' });
    expect(await reeve.get(task.id)).toMatchObject({ status: 'failed', outcome: 'failed' });
  });

  it('numbers what is said at the same time one after another', async () => {
    const { reeve, task, claim } = await claimed();
    const fractions = [0.1, 0.2, 0.3, 0.4];
    await Promise.all([
      claim.report(accepted, started),
      ...fractions.map((fraction) => claim.report({ type: 'progress', fraction })),
    ]);
    const told = (await all(reeve.events(task.id))).filter(({ type }) => type === 'task.progress');
    expect(told.map(({ payload }) => (payload as { progress: number }).progress)).toEqual(fractions);
  });

  it('is told what is refused, and goes on', async () => {
    const { reeve, task, claim } = await claimed();
    expect((await refusalOf(claim.report({ type: 'progress', fraction: 0.5 }))).reason).toBe('ILLEGAL_EVENT');
    expect((await refusalOf(claim.report({ type: 'progress', fraction: 2 }))).metadata).toEqual({
      field: 'progress.fraction',
    });
    expect((await refusalOf(claim.report({ type: 'output', output: undefined }))).reason).toBe('MALFORMED');
    expect((await refusalOf(claim.report({ type: 'checkpoint', checkpoint: 'x'.repeat(131_072) }))).reason).toBe(
      'MALFORMED',
    );
    await claim.report(accepted, started, { type: 'completed' });
    expect((await reeve.get(task.id)).status).toBe('completed');
  });

  it('may be handed back as suspended, with its attempt', async () => {
    const { reeve, task, claim } = await claimed();
    await claim.report(accepted, started, { type: 'suspended', reason: 'needs an answer' });
    expect(await reeve.get(task.id)).toMatchObject({ status: 'suspended', attempt: 0 });
    await reeve.resume(task.id, { input: 'the answer' });
    expect((await reeve.claim(task.id)).task.resumeInput).toBe('the answer');
  });
});

describe('a cancel of what runs', () => {
  it('is told with the next report, receipted, and settled by the worker', async () => {
    const { reeve, task, claim, clock } = await claimed();
    await claim.report(accepted, started);
    const asked = await reeve.cancel(task.id, { graceMs: 8_000 });
    expect(asked).toMatchObject({ state: 'CANCELLATION_REQUESTED', task: { status: 'running' } });
    await clock.advance(1_000);
    expect((await claim.renew()).cancel).toMatchObject({ graceMs: 7_000 });
    await claim.confirmCancel('delivered');
    const stopping = await claim.confirmCancel('acknowledged');
    expect(stopping.task.cancellation).toMatchObject({ deliveredAtMs: clock.nowMs(), acknowledgedAtMs: clock.nowMs() });
    await claim.report({ type: 'cancelled', reason: 'stopped' });
    expect(await reeve.get(task.id)).toMatchObject({ status: 'cancelled', ownerStopped: true });
  });

  it('revokes the lease when its grace has passed, and says that the owner was not seen to stop', async () => {
    const { reeve, task, claim, clock } = await claimed();
    await claim.report(accepted, started);
    await reeve.cancel(task.id, { graceMs: 2_000 });
    await clock.advance(3_000);
    expect(await reeve.get(task.id)).toMatchObject({ status: 'cancelled', ownerStopped: false });
    expect((await refusalOf(claim.report({ type: 'completed' }))).reason).toBe('LEASE_LOST');
  });
});

describe('a settlement by transition', () => {
  const settle = { type: 'settle_completion', result: 1 } as const;

  it('needs the lease, and one that is not in force is a conflict', async () => {
    const { reeve, task, claim } = await claimed();
    expect((await refusalOf(reeve.transition(task.id, settle))).reason).toBe('LEASE_REQUIRED');
    const lease = { ...claim.lease, token: 'made up' };
    expect(await reeve.transition(task.id, settle, { lease })).toMatchObject({
      applied: false,
      conflict: { guard: 'LEASE' },
    });
    const done = await reeve.transition(task.id, settle, { lease: claim.lease });
    expect(done).toMatchObject({ applied: true, currentStatus: 'completed', task: { outcome: 'completed' } });
    const events = await all(reeve.events(task.id));
    expect(events.filter(({ inferred }) => inferred).map(({ type }) => type)).toEqual([
      'task.accepted',
      'task.started',
    ]);
    expect(events.at(-1)?.actor).toEqual({ type: 'worker', id: 'inside' });
  });

  describe('under a FENCED policy, after a cancel request,', () => {
    async function fenced() {
      const one = await claimed({ cancellationPolicy: 'FENCED' });
      await one.claim.report(accepted, started, { type: 'progress', fraction: 1 });
      await one.clock.advance(1_000);
      await one.reeve.cancel(one.task.id);
      const requestedAtMs = (await one.reeve.get(one.task.id)).cancellation?.requestedAtMs ?? 0;
      await one.clock.advance(1_000);
      const complete = (proof: object) =>
        one.reeve.transition(one.task.id, { ...settle, ...proof }, { lease: one.claim.lease });
      return { ...one, requestedAtMs, complete };
    }

    it('completes by the word of the program that it was over strictly before', async () => {
      const { reeve, task, requestedAtMs, complete } = await fenced();
      for (const authoritativeAtMs of [requestedAtMs, requestedAtMs + 1]) {
        expect((await refusalOf(complete({ authoritativeAtMs }))).reason).toBe('CANCELLATION_FENCED');
      }
      expect((await refusalOf(complete({}))).reason).toBe('CANCELLATION_FENCED');
      expect((await refusalOf(complete({ authoritativeAtMs: requestedAtMs + 60_000 }))).reason).toBe('MALFORMED');
      expect((await refusalOf(complete({ authoritativeAtMs: 1.5 }))).reason).toBe('MALFORMED');
      const done = await complete({ authoritativeAtMs: requestedAtMs - 1 });
      expect(done.task).toMatchObject({ status: 'completed' });
      const last = (await all(reeve.events(task.id))).at(-1);
      expect(last).toMatchObject({ type: 'task.completed', authoritativeAtMs: requestedAtMs - 1 });
    });

    it('completes by an event that was committed before', async () => {
      const { reeve, task, complete } = await fenced();
      const events = await all(reeve.events(task.id));
      const progress = events.find(({ type }) => type === 'task.progress');
      const request = events.find(({ type }) => type === 'task.cancel.requested');
      const after = await refusalOf(complete({ authoritativeEventId: request?.id }));
      expect(after.reason).toBe('CANCELLATION_FENCED');
      await complete({ authoritativeEventId: progress?.id });
      expect((await all(reeve.events(task.id))).at(-1)).toMatchObject({ authoritativeAtMs: progress?.atMs });
    });

    it('does not believe its worker: what that says is fenced', async () => {
      const { reeve, task, claim } = await fenced();
      expect((await refusalOf(claim.report({ type: 'completed' }))).reason).toBe('CANCELLATION_FENCED');
      await claim.report({ type: 'failed', code: 'x' });
      expect((await reeve.get(task.id)).status).toBe('cancelled');
    });
  });
});
