// ListWorkers and DrainWorker through a real server: who is there, what each holds, and letting them finish.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DrainWorkerRequestSchema, ListWorkersRequestSchema } from '../../src/gen/reeve/v1/worker_service_pb.js';
import { SessionEndCause, SessionState } from '../../src/gen/reeve/v1/worker_service_pb.js';
import type { Fields } from '../../src/wire/message-fields.js';
import { Worker, accepted, completed, running, started, submitted } from './lifecycle-driver.js';
import { refusal, workers } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

const list = (request: Fields<typeof ListWorkersRequestSchema>) => fixture.client.unary(workers.listWorkers, request);
const drain = (request: Fields<typeof DrainWorkerRequestSchema>) =>
  fixture.client.unary(workers.drainWorker, { idempotencyKey: freshKey('drain'), ...request });
const open = (workerName: string, hello: object = {}) => Worker.start(fixture.client, { workerName, ...hello });
const only = async (workerName: string) => {
  const found = (await list({ workerName })).workers;
  expect(found).toHaveLength(1);
  return found[0];
};

describe('ListWorkers', () => {
  it('shows what a worker said of itself, what it holds, and when it would end', async () => {
    const workerName = freshKey('w');
    const worker = await open(workerName, {
      version: '1.2',
      buildId: 'b7',
      actionKinds: ['agent', 'flow'],
      executionTargets: [5, 1],
      capabilities: ['gpu'],
      features: ['x'],
      slots: 4,
      ttl: { seconds: 20n },
      linger: { seconds: 9n },
    });
    await submitted(fixture.client, { queue: worker.queue });
    await worker.claim();
    const shown = await only(workerName);
    expect(shown).toMatchObject({
      workerName,
      version: '1.2',
      buildId: 'b7',
      namespaces: ['default'],
      queues: [worker.queue],
      actionKinds: ['agent', 'flow'],
      executionTargets: [1, 5],
      capabilities: ['gpu'],
      features: ['x'],
      state: SessionState.LIVE,
      slots: 4,
      held: 1,
      unary: false,
      attached: true,
      attachment: 1n,
      ttl: { seconds: 20n },
      linger: { seconds: 9n },
    });
    expect(shown?.sessionAlias).toMatch(/^[\w-]{12}$/);
    expect(Number(shown?.expireTime?.seconds)).toBe(Number(shown?.createTime?.seconds) + 20);
    worker.stop();
  });

  it('tells one that is away from one that is attached, with what it still holds', async () => {
    const workerName = freshKey('w');
    const worker = await open(workerName);
    await submitted(fixture.client, { queue: worker.queue });
    await worker.claim();
    worker.stop();
    await worker.stream.ended;
    expect(await only(workerName)).toMatchObject({ attached: false, held: 1, slots: 0, state: SessionState.LIVE });
  });

  it('filters by what is served: everything by those that said so', async () => {
    const name = freshKey('w');
    const a = await open(name, { queues: ['qa'], actionKinds: ['agent'] });
    const b = await open(name, { queues: [], namespaces: ['ns-b'] });
    const aliasesOf = async (request: Fields<typeof ListWorkersRequestSchema>) =>
      (await list({ workerName: name, ...request })).workers.map(({ queues }) => queues[0] ?? '*').sort();
    expect(await aliasesOf({})).toEqual(['*', 'qa']);
    expect(await aliasesOf({ queue: 'qa' })).toEqual(['*', 'qa']);
    expect(await aliasesOf({ queue: 'other' })).toEqual(['*']);
    expect(await aliasesOf({ actionKind: 'flow' })).toEqual(['*']);
    expect(await aliasesOf({ actionKind: 'agent' })).toEqual(['*', 'qa']);
    expect(await aliasesOf({ namespace: 'ns-b' })).toEqual(['*']);
    expect(await aliasesOf({ namespace: 'default' })).toEqual(['qa']);
    a.stop();
    b.stop();
  });

  it('pages by name and then by session, each once', async () => {
    const prefix = freshKey('page');
    const opened = [];
    for (const suffix of ['b', 'a', 'b', 'c']) opened.push(await open(`${prefix}-${suffix}`, { queues: [prefix] }));
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await list({ queue: prefix, namespace: 'default', pageSize: 1, pageToken });
      expect(page.workers).toHaveLength(1);
      seen.push(...page.workers.map(({ workerName, sessionAlias }) => `${workerName} ${sessionAlias}`));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    const ours = seen.filter((place) => place.startsWith(prefix));
    expect(ours).toHaveLength(4);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toEqual([...seen].sort());
    const { nextPageToken } = await list({ queue: prefix, pageSize: 1 });
    const foreign = await refusal(list({ queue: 'other', pageToken: nextPageToken }));
    expect(foreign).toMatchObject({ code: 3, reason: 'CURSOR_INVALID', metadata: { field: 'page_token' } });
    for (const worker of opened) worker.stop();
  });

  it('refuses what is out of bounds', async () => {
    expect(await refusal(list({ pageSize: 0 }))).toMatchObject({ reason: 'MALFORMED', field: 'page_size' });
  });
});

describe('ListWorkers with include_gone', () => {
  /** A worker that asked for no linger and whose stream has ended. */
  const gone = async (workerName: string, hello: object = {}, claims = 0): Promise<readonly string[]> => {
    const worker = await open(workerName, { linger: {}, ...hello });
    const taskIds: string[] = [];
    for (let at = 0; at < claims; at++) {
      taskIds.push((await submitted(fixture.client, { queue: worker.queue })).taskId);
      await worker.claim();
    }
    worker.stop();
    await worker.stream.ended;
    for (let live = true; live;) live = (await list({ workerName })).workers.length > 0;
    return taskIds;
  };

  it('shows when and why a session ended and what it held, to those who ask for it', async () => {
    const workerName = freshKey('w');
    const before = Math.floor(Date.now() / 1_000);
    const taskIds = await gone(workerName, { version: '1.2' }, 2);
    expect((await list({ workerName })).workers).toEqual([]);
    const { workers: shown } = await list({ workerName, includeGone: true });
    expect(shown).toMatchObject([
      {
        workerName,
        version: '1.2',
        state: SessionState.GONE,
        attached: false,
        slots: 0,
        end: { cause: SessionEndCause.STREAM_ENDED, drained: false, held: 2, heldTaskIds: taskIds },
      },
    ]);
    expect(Number(shown[0]?.end?.endTime?.seconds)).toBeGreaterThanOrEqual(before);
  });

  it('says of one that was draining that it left on purpose, and nothing of the end of one that lives', async () => {
    const workerName = freshKey('w');
    const worker = await open(workerName, { linger: {} });
    await drain({ workerName });
    expect((await list({ workerName, includeGone: true })).workers[0]?.end).toBeUndefined();
    worker.stop();
    for (let live = true; live;) live = (await list({ workerName })).workers.length > 0;
    const { workers: shown } = await list({ workerName, includeGone: true });
    expect(shown).toMatchObject([{ state: SessionState.GONE, end: { drained: true, held: 0, heldTaskIds: [] } }]);
  });

  it('filters and pages those that live and those that are gone in one order, each once', async () => {
    const queue = freshKey('page');
    for (const name of ['b', 'd', 'a']) await gone(`${queue}-${name}`, { queues: [queue] });
    await gone(`${queue}-other`, { queues: ['elsewhere'] });
    const live = [];
    for (const name of ['c', 'a', 'e']) live.push(await open(`${queue}-${name}`, { queues: [queue] }));
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await list({ queue, includeGone: true, pageSize: 2, pageToken });
      for (const worker of page.workers) {
        if (!worker.workerName.startsWith(queue)) continue;
        seen.push(`${worker.workerName.slice(queue.length + 1)} ${worker.state === SessionState.GONE ? '' : 'live'}`);
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect([...seen].sort()).toEqual(['a ', 'a live', 'b ', 'c live', 'd ', 'e live']);
    expect(seen.map((name) => name.slice(0, 1))).toEqual(['a', 'a', 'b', 'c', 'd', 'e']);
    const { nextPageToken } = await list({ queue, includeGone: true, pageSize: 1 });
    expect(await refusal(list({ queue, pageToken: nextPageToken }))).toMatchObject({ reason: 'CURSOR_INVALID' });
    for (const worker of live) worker.stop();
  });

  it('pages through many more than a page holds', async () => {
    const workerName = freshKey('many');
    const row = (sessionId: string) => ({
      sessionId,
      state: 'gone' as const,
      expiresAt: 1,
      attachment: 1,
      ttlMs: 1_000,
      lingerMs: null,
      workerName,
      helloJson: '{}',
      createdAt: 1,
    });
    const rows = Array.from({ length: 700 }, (_, at) => row(`${workerName} ${String(at)}`));
    const plan = { recordReads: [], sessionReads: [], records: [], ledger: [], diagnostics: [] };
    const plans = rows.map((session) => ({ ...plan, sessions: [{ kind: 'open' as const, session }] }));
    await fixture.store.commit({ batchId: workerName, plans });
    const aliases: string[] = [];
    let pageToken = '';
    do {
      const page = await list({ workerName, includeGone: true, pageSize: 9, pageToken });
      aliases.push(...page.workers.map(({ sessionAlias }) => sessionAlias));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(new Set(aliases).size).toBe(700);
    expect(aliases).toEqual([...aliases].sort());
  });
});

describe('DrainWorker', () => {
  it('by alias: what is held goes on, nothing more comes, others are left alone', async () => {
    const workerName = freshKey('w');
    const { task, worker, claim } = await running(fixture.client);
    const busy = (await list({ queue: worker.queue, workerName: 'worker' })).workers[0];
    const other = await open(workerName, { queues: [worker.queue] });
    const { workers: drained, replayed } = await drain({ sessionAlias: busy?.sessionAlias ?? '' });
    expect({ drained, replayed }).toMatchObject({
      drained: [{ sessionAlias: busy?.sessionAlias, state: SessionState.DRAINING, held: 1, attached: true }],
      replayed: false,
    });
    const next = await submitted(fixture.client, { queue: worker.queue });
    expect(await other.claim()).toMatchObject({ taskId: next.taskId });
    expect((await worker.say(claim, [completed], 3)).rejected).toEqual([]);
    expect(claim.taskId).toBe(task.taskId);
    expect(await only(workerName)).toMatchObject({ state: SessionState.LIVE });
    // It may hand back what it holds, as one that said Drain itself.
    worker.send({ case: 'release', value: { claims: [{ taskId: claim.taskId, generation: 1, epoch: claim.epoch }] } });
    expect((await worker.frame('leasesLost')).losses).toMatchObject([{ taskId: claim.taskId }]);
    worker.stop();
    other.stop();
  });

  it('by name: every session of it, also one that is away, which stays draining when it comes back', async () => {
    const workerName = freshKey('w');
    const queue = freshKey('queue');
    const first = await open(workerName, { queues: [queue] });
    const away = fixture.client.bidi(workers.work);
    const hello = { workerName, actionKinds: ['*'], slots: 1, queues: [queue] };
    away.send({ frameId: 1n, frame: { case: 'hello', value: hello } });
    const welcome = (await away.next())?.frame;
    if (welcome?.case !== 'welcome') throw new Error('no welcome');
    away.half();
    await away.ended;
    const { workers: drained } = await drain({ workerName });
    expect(drained.map(({ state }) => state)).toEqual([SessionState.DRAINING, SessionState.DRAINING]);
    const { sessionId, sessionSecret, sessionAlias } = welcome.value;
    const back = fixture.client.bidi(workers.work);
    const reattach = { sessionId, sessionSecret, held: [] };
    back.send({ frameId: 1n, frame: { case: 'hello', value: { ...hello, reattach } } });
    await back.next();
    const fresh = await open(freshKey('w'), { queues: [queue] });
    const { taskId } = await submitted(fixture.client, { queue });
    const claim = await fresh.claim();
    expect(claim.taskId).toBe(taskId);
    await fresh.say(claim, [accepted, started, completed]);
    const shown = (await list({ workerName })).workers.find((one) => one.sessionAlias === sessionAlias);
    expect(shown).toMatchObject({ attached: true, attachment: 2n, state: SessionState.DRAINING, held: 0 });
    for (const worker of [first, fresh]) worker.stop();
    back.half();
  });

  it('with its key again drains nothing more, and the key with another content is refused', async () => {
    const workerName = freshKey('w');
    const first = await open(workerName);
    const request = { workerName, idempotencyKey: freshKey('drain') };
    const [one, two] = await Promise.all([drain(request), drain(request)]);
    expect([one.replayed, two.replayed].sort()).toEqual([false, true]);
    const second = await open(workerName);
    const again = await drain(request);
    expect(again).toMatchObject({ replayed: true, workers: [{ state: SessionState.DRAINING }] });
    const states = (await list({ workerName })).workers.map(({ state }) => state).sort();
    expect(states).toEqual([SessionState.LIVE, SessionState.DRAINING]);
    const other = await refusal(drain({ ...request, workerName: 'other' }));
    expect(other).toMatchObject({ code: 6, reason: 'IDEMPOTENCY_CONFLICT' });
    first.stop();
    second.stop();
  });

  it('that finds nobody is refused and its key is free again', async () => {
    const workerName = freshKey('w');
    const request = { workerName, idempotencyKey: freshKey('drain') };
    expect(await refusal(drain(request))).toMatchObject({ code: 5, reason: 'NOT_FOUND' });
    expect(await refusal(drain({ sessionAlias: 'nobody' }))).toMatchObject({
      reason: 'NOT_FOUND',
      metadata: { session_alias: 'nobody' },
    });
    const worker = await open(workerName);
    expect(await drain(request)).toMatchObject({ replayed: false, workers: [{ workerName }] });
    worker.stop();
  });

  it.each<[string, Fields<typeof DrainWorkerRequestSchema>]>([
    ['session_alias', {}],
    ['worker_name', { sessionAlias: 'a', workerName: 'b' }],
    ['idempotency_key', { workerName: 'b', idempotencyKey: '' }],
    ['actor.type', { workerName: 'b', actor: { type: 5 } }],
    ['reason.code', { workerName: 'b', reason: { code: 'nonsense' } }],
  ])('MALFORMED: %s (case %#)', async (field, request) => {
    expect(await refusal(drain(request))).toMatchObject({ code: 3, reason: 'MALFORMED', field });
  });
});
