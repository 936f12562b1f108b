// Watch through a real server: replay, live, resume from any cursor, bookmarks, the slow reader, its refusals.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { WatchRequestSchema, WatchResponse } from '../../src/gen/reeve/v1/task_service_pb.js';
import { type Event, Worker, accepted, completed, running, started, submitted } from './lifecycle-driver.js';
import { type Received, refusedOf, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

type Watch = Received<typeof tasks.watch>;

const watch = (taskId: string, more: MessageInitShape<typeof WatchRequestSchema> = {}): Watch =>
  fixture.client.serverStream(tasks.watch, { scope: { case: 'taskId', value: taskId }, ...more });

function numbers(messages: readonly WatchResponse[]): number[] {
  return messages.flatMap(({ item }) => (item.case === 'event' ? [Number(item.value.eventNumber)] : []));
}

/** Reads until the event of a number has come. */
async function until(stream: Watch, eventNumber: number): Promise<WatchResponse> {
  for (;;) {
    const next = await stream.next();
    if (next === undefined) throw new Error('the watch ended');
    if (next.item.case === 'event' && Number(next.item.value.eventNumber) === eventNumber) return next;
  }
}

const progress = (message: string): Event => ({ case: 'progress', value: { message } });

describe('Watch of one task', () => {
  it('replays, follows, and ends OK after the terminal event', async () => {
    const worker = await Worker.start(fixture.client);
    const { taskId } = await submitted(fixture.client, { queue: worker.queue });
    const claim = await worker.claim();
    const early = watch(taskId);
    await until(early, 2);
    await worker.say(claim, [accepted, started]);
    const late = watch(taskId);
    for (let seq = 3; seq < 40; seq += 1) await worker.say(claim, [progress(String(seq))], seq);
    await worker.say(claim, [completed], 40);
    expect(await early.ended).toBeNull();
    expect(await late.ended).toBeNull();
    const all = Array.from({ length: 42 }, (_, index) => index + 1);
    expect(numbers(early.messages)).toEqual(all);
    expect(numbers(late.messages)).toEqual(all);
    const over = watch(taskId);
    expect(await over.ended).toBeNull();
    expect(numbers(over.messages)).toEqual(all);
    worker.stop();
  });

  it('goes on from every cursor without a gap or a duplicate', async () => {
    const { task, claim, worker } = await running(fixture.client);
    for (let seq = 3; seq < 10; seq += 1) await worker.say(claim, [progress('x')], seq);
    await worker.say(claim, [completed], 10);
    const whole = watch(task.taskId);
    await whole.ended;
    const cursors = whole.messages.map((message) => message.cursor);
    for (const [index, cursor] of cursors.entries()) {
      const rest = watch(task.taskId, { cursor });
      expect(await rest.ended).toBeNull();
      expect(numbers(rest.messages)).toEqual(numbers(whole.messages.slice(index + 1)));
    }
    worker.stop();
  });

  it('says when the replay is done, and can begin with what commits from now on', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const stream = watch(task.taskId, { fromStart: false });
    const first = await stream.next();
    expect(first?.item).toMatchObject({ case: 'bookmark' });
    expect(first?.item.case === 'bookmark' && first.item.value.sequence).toBeGreaterThan(0n);
    await worker.say(claim, [completed], 3);
    expect(await stream.ended).toBeNull();
    expect(numbers(stream.messages)).toEqual([5]);
    const resumed = watch(task.taskId, { cursor: first?.cursor ?? '' });
    await resumed.ended;
    expect(numbers(resumed.messages)).toEqual([5]);
    worker.stop();
  });

  it('shows AEP consumers their events only', async () => {
    const { task, claim, worker } = await running(fixture.client);
    await worker.say(claim, [{ case: 'checkpoint', value: { checkpointJson: '1' } }, completed], 3);
    const stream = watch(task.taskId, { aepOnly: true });
    expect(await stream.ended).toBeNull();
    const types = stream.messages.map(({ item }) => (item.case === 'event' ? item.value.type : ''));
    expect(types).toEqual(['task.submitted', 'task.accepted', 'task.started', 'task.completed']);
    worker.stop();
  });

  it('goes on over generations until the current one is over', async () => {
    const { taskId } = await submitted(fixture.client);
    const requestId = freshKey('cancel');
    await fixture.client.unary(tasks.cancel, { taskId, requestId });
    await fixture.client.unary(tasks.resume, { taskId, idempotencyKey: freshKey('resume') });
    const stream = watch(taskId);
    await until(stream, 4);
    await fixture.client.unary(tasks.cancel, { taskId, requestId: freshKey('cancel') });
    expect(await stream.ended).toBeNull();
    expect(numbers(stream.messages)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('survives a hundred reconnects at any point', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const seen: number[] = [];
    let cursor = '';
    for (let seq = 3; seq < 103; seq += 1) {
      await worker.say(claim, [progress('x')], seq);
      const stream = watch(task.taskId, cursor === '' ? {} : { cursor });
      const next = await stream.next();
      if (next?.item.case === 'event') seen.push(Number(next.item.value.eventNumber));
      cursor = next?.cursor ?? cursor;
      stream.cancel();
      await stream.ended;
    }
    await worker.say(claim, [completed], 103);
    const last = watch(task.taskId, { cursor });
    await last.ended;
    expect([...seen, ...numbers(last.messages)]).toEqual(Array.from({ length: 105 }, (_, index) => index + 1));
    worker.stop();
  });

  it('cuts a live reader who is too slow, with a cursor that leaves nothing out', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const stream = watch(task.taskId);
    await until(stream, 4);
    stream.call.pause();
    const output = JSON.stringify('x'.repeat(700_000));
    // A paused client of grpc-js still takes sixteen messages.
    for (let seq = 3; seq < 26; seq += 1) {
      await worker.say(claim, [{ case: 'output', value: { content: { case: 'outputJson', value: output } } }], seq);
    }
    stream.call.resume();
    const refused = refusedOf(await stream.ended);
    expect(refused).toMatchObject({ code: 8, reason: 'SLOW_READER' });
    expect(refused.retryMs).toBeGreaterThan(0);
    await worker.say(claim, [completed], 26);
    const rest = watch(task.taskId, { cursor: refused.metadata['cursor'] ?? '' });
    expect(await rest.ended).toBeNull();
    const both = [...numbers(stream.messages), ...numbers(rest.messages)];
    expect(new Set(both)).toEqual(new Set(Array.from({ length: 28 }, (_, index) => index + 1)));
    worker.stop();
  });
});

describe('refusals of Watch', () => {
  const refused = async (request: MessageInitShape<typeof WatchRequestSchema>) =>
    refusedOf(await fixture.client.serverStream(tasks.watch, request).ended);

  it('TASK_NOT_FOUND and MALFORMED', async () => {
    const scope = { case: 'taskId' as const, value: 'nobody' };
    expect(await refused({ scope })).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
    expect(await refused({})).toMatchObject({ code: 3, field: 'scope' });
    expect(await refused({ scope: { case: 'taskId', value: '' } })).toMatchObject({ field: 'task_id' });
    expect(await refused({ scope, cursor: 'x', fromStart: true })).toMatchObject({ field: 'from_start' });
  });

  it('CURSOR_INVALID for a foreign, altered or cut cursor', async () => {
    const one = await submitted(fixture.client);
    const two = await submitted(fixture.client);
    const stream = watch(one.taskId);
    const cursor = (await until(stream, 1)).cursor;
    stream.cancel();
    for (const [taskId, wrong] of [
      [two.taskId, cursor],
      [one.taskId, `${cursor}A`],
      [one.taskId, cursor.slice(2)],
      [one.taskId, '%'],
    ] as const) {
      const scope = { case: 'taskId' as const, value: taskId };
      expect(await refused({ scope, cursor: wrong })).toMatchObject({
        code: 3,
        reason: 'CURSOR_INVALID',
        field: 'cursor',
      });
    }
  });

  it('MALFORMED for a scope that is none', async () => {
    expect(await refused({ scope: { case: undefined } })).toMatchObject({ code: 3, field: 'scope' });
    expect(await refused({ scope: { case: 'namespace', value: 'No' } })).toMatchObject({ code: 3, field: 'namespace' });
    const queue = { case: 'queue' as const, value: { queue: ' ' } };
    expect(await refused({ scope: queue })).toMatchObject({ code: 3, field: 'queue.queue' });
    expect(await refused({ scope: { case: 'subtreeOf', value: 'nobody' } })).toMatchObject({ code: 5 });
  });
});

describe('Watch of many tasks', () => {
  const many = (scope: Exclude<MessageInitShape<typeof WatchRequestSchema>['scope'], undefined>, more = {}): Watch =>
    fixture.client.serverStream(tasks.watch, { scope, ...more });

  /** Reads events until so many have come. */
  async function take(stream: Watch, count: number): Promise<string[]> {
    const told: string[] = [];
    while (told.length < count) {
      const next = await stream.next();
      if (next === undefined) throw new Error('the watch ended');
      if (next.item.case === 'event') told.push(`${next.item.value.taskId} ${String(next.item.value.eventNumber)}`);
    }
    return told;
  }

  it('follows a namespace and a queue, replayed and live, and goes on from a cursor', async () => {
    const namespace = freshKey('watched').replaceAll(/[^a-z0-9-]/g, '-');
    const one = (await submitted(fixture.client, { namespace })).taskId;
    const all = many({ case: 'namespace', value: namespace });
    expect(await take(all, 1)).toEqual([`${one} 1`]);
    const queue = many({ case: 'queue', value: { namespace, queue: 'q' } });
    const first = await queue.next();
    expect(first?.item.case).toBe('bookmark');
    const two = (await submitted(fixture.client, { namespace, queue: 'q' })).taskId;
    await submitted(fixture.client);
    await fixture.client.unary(tasks.cancel, { taskId: one, requestId: freshKey() });
    await fixture.client.unary(tasks.cancel, { taskId: two, requestId: freshKey() });
    expect(await take(all, 5)).toEqual([`${two} 1`, `${one} 2`, `${one} 3`, `${two} 2`, `${two} 3`]);
    expect(await take(queue, 3)).toEqual([`${two} 1`, `${two} 2`, `${two} 3`]);
    const resumed = many({ case: 'queue', value: { namespace, queue: 'q' } }, { cursor: first?.cursor ?? '' });
    expect(await take(resumed, 3)).toHaveLength(3);
    for (const stream of [all, queue, resumed]) {
      stream.cancel();
      await stream.ended;
    }
  });

  it('follows a task and all below it', async () => {
    const root = await submitted(fixture.client);
    const stream = many({ case: 'subtreeOf', value: root.taskId });
    expect(await take(stream, 1)).toEqual([`${root.taskId} 1`]);
    const below = async (parent: typeof root): Promise<typeof root> => {
      const link = { taskId: parent.taskId, generationId: parent.generation?.id ?? '', attachment: 2 };
      return submitted(fixture.client, { policy: { parent: link } });
    };
    const child = await below(root);
    await submitted(fixture.client);
    const grandchild = await below(child);
    expect(await take(stream, 2)).toEqual([`${child.taskId} 1`, `${grandchild.taskId} 1`]);
    stream.cancel();
    await stream.ended;
  });
});
