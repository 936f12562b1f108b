// The authority as a library: the same admission, the same intents, the same refusals as through a server.

import { afterEach, describe, expect, it } from 'vitest';
import type { Submission } from '../../src/embed/submission.js';
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

const AGENT: Submission = { kind: 'agent', key: 'k', args: { prompt: 'hi', n: 1 } };

describe('submit', () => {
  it('admits once: the same key is the same task, and other work under it is a conflict that names the places', async () => {
    const { reeve } = await embedded();
    const first = await reeve.submit(AGENT);
    expect(first).toMatchObject({
      outcome: 'CREATED',
      task: { key: 'k', status: 'queued', argsJson: '{"n":1,"prompt":"hi"}', admission: { source: 'embedded' } },
      fact: { transitionId: `${first.task.id}~r1`, eventId: `${first.task.id}~e1`, revision: 1, sequence: 1 },
    });
    const again = await reeve.submit({ ...AGENT, args: { n: 1, prompt: 'hi' }, priority: 5 });
    expect(again).toMatchObject({ outcome: 'REPLAYED', task: { id: first.task.id }, fact: first.fact });
    expect(again.ignoredPolicyFields).toEqual(['priority']);
    const conflict = await refusalOf(reeve.submit({ ...AGENT, args: { prompt: 'hi', n: 2 } }));
    expect(conflict).toMatchObject({ reason: 'IDEMPOTENCY_CONFLICT', retryable: false });
    expect(conflict.metadata).toMatchObject({ task_id: first.task.id, pointers: '["/args/n"]' });
  });

  it.each<[Partial<Submission>, string, object]>([
    [{ kind: 'nope' }, 'ACTION_KIND_UNREGISTERED', { action_kind: 'nope' }],
    [{ key: ' k' }, 'MALFORMED', { field: 'idempotency_key' }],
    [{ key: 'schedule:x' }, 'MALFORMED', { field: 'idempotency_key' }],
    [{ args: [] }, 'MALFORMED', { field: 'args' }],
    [{ args: { n: Number.NaN } }, 'MALFORMED', { field: 'args', pointer: '/n' }],
    [{ argsJson: '{}' }, 'MALFORMED', { field: 'args' }],
    [{ priority: 101 }, 'MALFORMED', { field: 'priority' }],
    [{ capabilities: ['a b'] }, 'MALFORMED', { field: 'required_capabilities[0]' }],
    [{ actor: { type: 'reaper' as 'producer', id: '' } }, 'MALFORMED', { field: 'actor.type' }],
    [{ onUnsatisfied: 'shrug' as 'skip' }, 'MALFORMED', { field: 'on_unsatisfied' }],
    [
      { dependsOn: [{ taskId: 't', condition: 'maybe' as 'terminal' }] },
      'MALFORMED',
      { field: 'depends_on[0].condition' },
    ],
    [{ dependsOn: ['nobody'] }, 'TASK_NOT_FOUND', { task_id: 'nobody' }],
    [{ parent: { taskId: 'nobody', generationId: 'g', attached: true } }, 'TASK_NOT_FOUND', { task_id: 'nobody' }],
    [{ concurrencyKey: '' }, 'MALFORMED', { field: 'concurrency_key' }],
    [{ retentionMs: -1 }, 'MALFORMED', { field: 'retention' }],
  ])('refuses %j as %s', async (more, reason, metadata) => {
    const { reeve } = await embedded();
    const refused = await refusalOf(reeve.submit({ ...AGENT, ...more }));
    expect(refused.reason).toBe(reason);
    expect(refused.metadata).toMatchObject(metadata);
    expect(await all(reeve.list({ namespace: '*' }))).toEqual([]);
  });

  it('knows the kinds of its options, their schemas and their time-outs', async () => {
    const argsSchema = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] };
    const { reeve } = await embedded({ kinds: ['sweep', { name: 'crawl', argsSchema, timeoutMs: 1_000 }] });
    await reeve.submit({ kind: 'sweep', key: 'a' });
    const { task } = await reeve.submit({ kind: 'crawl', key: 'b', args: { url: 'x' } });
    expect(task).toMatchObject({ policy: { timeoutMs: 1_000 }, nextDueAtMs: task.createdAtMs + 1_000 });
    const refused = await refusalOf(reeve.submit({ kind: 'crawl', key: 'c', args: { url: 1 } }));
    expect(refused).toMatchObject({ reason: 'MALFORMED', metadata: { field: 'args', pointer: '/url' } });
  });

  it('gives a verdict per item, and one bad item harms no other', async () => {
    const { reeve } = await embedded();
    const verdicts = await reeve.submitAll([
      AGENT,
      { ...AGENT, kind: 'nope', key: 'x' },
      AGENT,
      { kind: 'flow', key: 'y' },
    ]);
    expect(verdicts.map((verdict) => (verdict.ok ? verdict.outcome : verdict.refusal.reason))).toEqual([
      'CREATED',
      'ACTION_KIND_UNREGISTERED',
      'REPLAYED',
      'CREATED',
    ]);
  });
});

describe('reading', () => {
  it('finds a task by either of its names, lists by what is asked, and tells what does not exist', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit({ ...AGENT, namespace: 'a', labels: { team: 'x' } });
    const other = await reeve.submit({ kind: 'flow', key: 'k' });
    expect((await reeve.get(task.id)).args).toEqual({ n: 1, prompt: 'hi' });
    expect((await reeve.find('k', 'a')).id).toBe(task.id);
    expect((await reeve.find('k')).id).toBe(other.task.id);
    const ids = async (options: Parameters<typeof reeve.list>[0]) =>
      (await all(reeve.list(options))).map(({ id }) => id);
    expect(await ids({})).toEqual([other.task.id]);
    expect(await ids({ namespace: '*', order: 'oldest_first' })).toEqual([task.id, other.task.id]);
    expect(await ids({ namespace: '*', labels: { team: 'x' } })).toEqual([task.id]);
    expect(await ids({ namespace: '*', kinds: ['flow'], statuses: ['queued'] })).toEqual([other.task.id]);
    expect((await refusalOf(reeve.get('nobody'))).reason).toBe('TASK_NOT_FOUND');
    expect((await refusalOf(reeve.find('nobody'))).metadata).toMatchObject({ idempotency_key: 'nobody' });
    expect((await refusalOf(all(reeve.events('nobody')))).reason).toBe('TASK_NOT_FOUND');
    expect((await refusalOf(all(reeve.list({ namespace: 'A B' })))).reason).toBe('MALFORMED');
  });

  it('hands out what nobody can change', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    const details = await reeve.get(task.id);
    const [event] = await all(reeve.events(task.id));
    const frozen = [task, task.policy, task.generation, details.args, event, event?.payload, event?.actor];
    expect(frozen.every((value) => Object.isFrozen(value))).toBe(true);
  });

  it('explains why a task does not run', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit({ ...AGENT, timeoutMs: 5_000 });
    expect(await reeve.explain(task.id)).toMatchObject({
      blockers: [{ kind: 'no_worker_for_queue' }],
      nextTimer: { kind: 'total_deadline', dueAt: task.createdAtMs + 5_000 },
    });
  });
});

describe('transition', () => {
  it('applies typed intents under guards, replays a key, and a guard that does not hold is an answer', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    const options = { key: 'hold-1', fromStatus: 'queued', expectedRevision: 1 } as const;
    const held = await reeve.transition(task.id, { type: 'suspend' }, options);
    expect(held).toMatchObject({
      applied: true,
      conflict: null,
      replayed: false,
      previousStatus: 'queued',
      currentStatus: 'suspended',
      fact: { transitionId: `${task.id}~r2`, revision: 2, sequence: 2 },
    });
    expect(await reeve.transition(task.id, { type: 'suspend' }, options)).toMatchObject({
      replayed: true,
      fact: held.fact,
    });
    const conflict = await reeve.transition(task.id, { type: 'resume' }, { expectedRevision: 1 });
    expect(conflict).toMatchObject({ applied: false, conflict: { guard: 'REVISION', observed: '2' }, fact: null });
    const other = await refusalOf(reeve.transition(task.id, { type: 'resume' }, { key: 'hold-1' }));
    expect(other.reason).toBe('IDEMPOTENCY_CONFLICT');
    expect(await reeve.resume(task.id, { input: { more: 1 } })).toMatchObject({ currentStatus: 'queued' });
    expect((await reeve.get(task.id)).resumeInput).toEqual({ more: 1 });
  });

  it('changes the policy of a live task', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    const policy = { priority: 7, timeoutMs: 9_000 };
    const changed = await reeve.transition(task.id, { type: 'update_policy', policy });
    expect(changed.task).toMatchObject({ policy, nextDueAtMs: task.createdAtMs + 9_000 });
    const empty = await refusalOf(reeve.transition(task.id, { type: 'update_policy', policy: {} }));
    expect(empty.reason).toBe('MALFORMED');
  });

  it('is refused as the contract says', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    const reasonOf = async (...args: Parameters<typeof reeve.transition>) =>
      (await refusalOf(reeve.transition(...args))).reason;
    const settle = { type: 'settle_completion', result: 1 } as const;
    expect(await reasonOf('nobody', { type: 'suspend' })).toBe('TASK_NOT_FOUND');
    expect(await reasonOf('a b', { type: 'suspend' })).toBe('MALFORMED');
    expect(await reasonOf(task.id, settle)).toBe('INVALID_TRANSITION');
    expect(await reasonOf(task.id, { type: 'skip' })).toBe('MALFORMED');
    expect(await reasonOf(task.id, { type: 'suspend' }, { generationId: 'other' })).toBe('STALE_GENERATION');
    expect(await reasonOf(task.id, { type: 'settle_cancellation' })).toBe('CANCELLATION_NOT_REQUESTED');
    expect(await reasonOf(task.id, { type: 'suspend' }, { reason: { code: 'run.cancelled.parent' } })).toBe(
      'MALFORMED',
    );
    expect(await reasonOf(task.id, { type: 'wish' } as never)).toBe('MALFORMED');
    const skipped = await reeve.transition(task.id, { type: 'skip' }, { reason: { code: 'app.tests.skip' } });
    expect(skipped.task).toMatchObject({ status: 'skipped', outcome: 'cancelled', reason: { code: 'app.tests.skip' } });
    expect(await reasonOf(task.id, { type: 'suspend' })).toBe('TERMINAL_GENERATION');
  });

  it('begins the next generation under an id that was never used', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    for (const newGenerationId of ['second', 'third']) {
      await reeve.cancel(task.id);
      expect((await reeve.resume(task.id, { newGenerationId })).task.generation.id).toBe(newGenerationId);
    }
    await reeve.cancel(task.id);
    for (const newGenerationId of [task.generation.id, 'second', 'third']) {
      const used = await refusalOf(reeve.resume(task.id, { newGenerationId }));
      expect(used).toMatchObject({ reason: 'MALFORMED', metadata: { field: 'new_generation_id' } });
    }
  });
});

describe('families', () => {
  it('end with their parents, in the same commit', async () => {
    const { reeve } = await embedded();
    const { task: parent } = await reeve.submit({ ...AGENT, taskId: 'parent' });
    const link = { taskId: 'parent', generationId: parent.generation.id, attached: true };
    const { task: child } = await reeve.submit({ ...AGENT, key: 'child', parent: link });
    const waiter = await reeve.submit({ ...AGENT, key: 'waiter', dependsOn: ['parent'], onUnsatisfied: 'fail' });
    expect(waiter.task.status).toBe('waiting_dependency');
    await reeve.cancel('parent');
    expect(await reeve.get(child.id)).toMatchObject({ status: 'cancelled', reason: { code: 'run.cancelled.parent' } });
    expect((await reeve.get(waiter.task.id)).status).toBe('failed');
  });

  it('do not believe a propagation that a program makes up, and nothing changes', async () => {
    const { reeve } = await embedded();
    const { task: parent } = await reeve.submit({ ...AGENT, taskId: 'parent' });
    const link = { taskId: 'parent', generationId: parent.generation.id, attached: true };
    const { task } = await reeve.submit({ ...AGENT, key: 'child', parent: link });
    const forged = { actor: { type: 'parent' as 'producer', id: 'parent' } };
    const intents = [
      { type: 'request_cancellation' },
      { type: 'settle_failure', code: 'parent_failed' },
      { type: 'suspend' },
    ] as const;
    for (const intent of intents) {
      const refused = await refusalOf(reeve.transition(task.id, intent, forged));
      expect(refused).toMatchObject({
        reason: 'PARENT_CONSTRAINT',
        metadata: { task_id: task.id, parent_task_id: 'parent' },
      });
    }
    expect((await refusalOf(reeve.cancel(task.id, forged))).reason).toBe('PARENT_CONSTRAINT');
    expect((await refusalOf(reeve.transition('nobody', intents[0], forged))).reason).toBe('TASK_NOT_FOUND');
    expect((await reeve.get(task.id)).lastEventNumber).toBe(task.lastEventNumber);
  });
});

describe('concurrency keys', () => {
  it('let one run at a time, and the next when it has ended', async () => {
    const { reeve } = await embedded();
    const [first, second] = await Promise.all(
      ['a', 'b'].map((key) => reeve.submit({ ...AGENT, key, concurrencyKey: 'one' })),
    );
    const [one = '', two = ''] = [first?.task.id, second?.task.id];
    const claim = await reeve.claim(one);
    expect((await refusalOf(reeve.claim(two))).reason).toBe('INVALID_TRANSITION');
    expect(await reeve.explain(two)).toMatchObject({ blockers: [{ kind: 'concurrency_key' }] });
    await claim.report({ type: 'accepted' }, { type: 'started' }, { type: 'completed' });
    expect((await reeve.claim(two)).taskId).toBe(two);
  });
});

describe('cancel', () => {
  it('answers one of three states, and the same again under the same key', async () => {
    const { reeve } = await embedded();
    const { task } = await reeve.submit(AGENT);
    const reason = { code: 'run.cancelled.user', summary: 'no longer wanted' };
    const first = await reeve.cancel(task.id, { key: 'stop', reason });
    expect(first).toMatchObject({ state: 'CANCELLED', replayed: false, task: { ownerStopped: true, reason } });
    expect(first.fact?.revision).toBe(3);
    await reeve.resume(task.id, { newGenerationId: 'next' });
    const again = await reeve.cancel(task.id, { key: 'stop', reason });
    expect(again).toMatchObject({ state: 'CANCELLED', replayed: true, fact: first.fact, generation: { number: 1 } });
    expect(again.task).toMatchObject({ status: 'queued', generation: { id: 'next', number: 2 } });
    const named = await refusalOf(reeve.cancel(task.id, { generationId: task.generation.id }));
    expect(named.reason).toBe('STALE_GENERATION');
    await reeve.cancel(task.id);
    const over = await reeve.cancel(task.id, { key: 'late' });
    expect(over).toMatchObject({ state: 'ALREADY_TERMINAL', generation: { id: 'next' }, fact: null });
    expect(await reeve.cancel(task.id, { key: 'late' })).toMatchObject({ state: 'ALREADY_TERMINAL', replayed: true });
  });
});

describe('time', () => {
  it('passes: deadlines and delayed starts come by themselves', async () => {
    const { reeve, clock } = await embedded();
    const { task } = await reeve.submit({ ...AGENT, timeoutMs: 2_000 });
    await clock.advance(3_000);
    expect(await reeve.get(task.id)).toMatchObject({ status: 'timed_out', reason: { code: 'run.timed_out.deadline' } });
  });
});

describe('close', () => {
  it('refuses what comes after it, ends once, and leaves no timer', async () => {
    const { reeve, clock } = await openEmbeddedFixture();
    const { task } = await reeve.submit(AGENT);
    await Promise.all([reeve.close(), reeve.close()]);
    for (const call of [
      () => reeve.submit(AGENT),
      () => reeve.get(task.id),
      () => reeve.cancel(task.id),
      () => all(reeve.list()),
    ]) {
      expect((await refusalOf(call())).reason).toBe('DRAINING');
    }
    expect(() => reeve.subscribe(() => undefined)).toThrow(/closed/);
    expect(clock.armedTimers).toBe(0);
  });

  it('commits what was accepted before it', async () => {
    const { reeve } = await openEmbeddedFixture();
    const submitted = reeve.submit(AGENT);
    await reeve.close();
    expect(await submitted).toMatchObject({ outcome: 'CREATED' });
  });
});
