// Get, List and ListEvents through a real server: views, filters, pages and their tokens.

import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AepState, TaskStatus, TaskView } from '../../src/gen/reeve/v1/task_pb.js';
import { ListOrder, type ListRequestSchema } from '../../src/gen/reeve/v1/task_service_pb.js';
import { completed, running, submitted } from './lifecycle-driver.js';
import { refusal, tasks } from './reeve-client.js';
import { type Fixture, freshKey, startFixture } from './server-fixture.js';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await startFixture();
});
afterAll(() => fixture.close());

describe('Get', () => {
  it('reads by id and by key, in three views', async () => {
    const key = freshKey();
    const { taskId } = await submitted(fixture.client, {
      idempotencyKey: key,
      namespace: 'get',
      policy: { labels: { team: 'a' }, description: 'd', timeout: { seconds: 60n } },
    });
    const byKey = await fixture.client.unary(tasks.get, { namespace: 'get', idempotencyKey: key });
    expect(byKey.task).toMatchObject({ taskId, labels: { team: 'a' }, policy: { description: 'd', priority: 0 } });
    expect(byKey.task?.timers?.deadline).toEqual(byKey.task?.timers?.nextDueTime);
    expect(byKey.task?.policy?.labels).toEqual({});
    const name = await fixture.client.unary(tasks.get, { taskId, view: TaskView.NAME });
    expect(name.task).toMatchObject({ taskId, status: TaskStatus.QUEUED, queue: '', applicationHash: '' });
    const full = await fixture.client.unary(tasks.get, { taskId, view: TaskView.FULL });
    expect(full.task?.application?.argsJson).toBe('{}');
  });

  it('shows the lease of a running task and the result of a completed one', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const { taskId } = task;
    const now = await fixture.client.unary(tasks.get, { taskId });
    expect(now.task?.lease).toMatchObject({ workerName: 'worker', epoch: 1n });
    expect(Number(now.task?.lease?.expireTime?.seconds)).toBeGreaterThan(Date.now() / 1_000);
    expect(now.task?.lease?.sessionAlias).not.toBe('');
    await worker.say(claim, [completed], 3);
    const done = await fixture.client.unary(tasks.get, { taskId, view: TaskView.FULL });
    expect(done.task).toMatchObject({ resultJson: '{"ok":true}', aepState: AepState.COMPLETED, attempt: 1 });
    const basic = await fixture.client.unary(tasks.get, { taskId });
    expect(basic.task?.resultJson).toBe('');
    worker.stop();
  });

  it('refuses no name, two names and unknown ones', async () => {
    expect(await refusal(fixture.client.unary(tasks.get, {}))).toMatchObject({ field: 'task_id' });
    const two = { taskId: 't', idempotencyKey: 'k' };
    expect(await refusal(fixture.client.unary(tasks.get, two))).toMatchObject({ field: 'idempotency_key' });
    const unknown = await refusal(fixture.client.unary(tasks.get, { taskId: 'nobody' }));
    expect(unknown).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND', metadata: { task_id: 'nobody' } });
    expect(await refusal(fixture.client.unary(tasks.get, { taskId: 't', view: 9 as 1 }))).toMatchObject({
      field: 'view',
    });
  });
});

describe('List', () => {
  const list = (request: MessageInitShape<typeof ListRequestSchema>) => fixture.client.unary(tasks.list, request);

  it('pages in both orders without a gap, with every filter', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 25; index += 1) {
      const labels = { parity: index % 2 === 0 ? 'even' : 'odd' };
      ids.push((await submitted(fixture.client, { namespace: 'list', policy: { labels } })).taskId);
    }
    const paged = async (request: MessageInitShape<typeof ListRequestSchema>): Promise<string[]> => {
      const found: string[] = [];
      for (let pageToken = ''; ;) {
        const page = await list({ ...request, pageToken, pageSize: 10 });
        found.push(...page.tasks.map((task) => task.taskId));
        expect(page.tasks.length).toBeLessThanOrEqual(10);
        pageToken = page.nextPageToken;
        if (pageToken === '') return found;
      }
    };
    expect(await paged({ filter: { namespace: 'list' }, order: ListOrder.OLDEST_FIRST })).toEqual(ids);
    expect(await paged({ filter: { namespace: 'list' } })).toEqual([...ids].reverse());
    const odd = await paged({
      filter: { namespace: 'list', labels: { parity: 'odd' } },
      order: ListOrder.OLDEST_FIRST,
    });
    expect(odd).toEqual(ids.filter((_, index) => index % 2 === 1));
    const none = { namespace: 'list', statuses: [TaskStatus.FAILED], actionKinds: ['agent'], queue: 'default' };
    expect(await paged({ filter: none })).toEqual([]);
    const all = await list({ filter: { namespace: '*', actionKinds: ['agent'] }, pageSize: 1_000 });
    expect(all.tasks.length).toBeGreaterThanOrEqual(25);
    const future = { namespace: 'list', createdFrom: { seconds: 4_000_000_000n } };
    expect(await paged({ filter: future })).toEqual([]);
    expect(await paged({ filter: { namespace: 'list', createdBefore: { seconds: 4_000_000_000n } } })).toHaveLength(25);
  });

  it('keeps a page of large tasks below the size of a frame', async () => {
    const argsForm = { case: 'argsJson' as const, value: JSON.stringify({ text: 'x'.repeat(400_000) }) };
    for (let index = 0; index < 8; index += 1) await submitted(fixture.client, { namespace: 'large', argsForm });
    const page = await list({ filter: { namespace: 'large' }, view: TaskView.FULL });
    expect(page.tasks.length).toBeLessThan(8);
    expect(page.tasks.length).toBeGreaterThan(0);
    expect(page.nextPageToken).not.toBe('');
    const basic = await list({ filter: { namespace: 'large' } });
    expect(basic.tasks).toHaveLength(8);
    expect(basic.tasks[0]?.application?.argsJson).toBe('');
  });

  it('takes a token for the request it was given for only', async () => {
    for (let index = 0; index < 3; index += 1) await submitted(fixture.client, { namespace: 'token' });
    const filter = { namespace: 'token' };
    const { nextPageToken: pageToken } = await list({ filter, pageSize: 1 });
    expect((await list({ filter, pageSize: 1, pageToken })).tasks).toHaveLength(1);
    const altered = `${pageToken.slice(0, -1)}${pageToken.endsWith('A') ? 'B' : 'A'}`;
    const foreign: MessageInitShape<typeof ListRequestSchema>[] = [
      { filter: { namespace: 'list' }, pageToken },
      { filter, order: ListOrder.OLDEST_FIRST, pageToken },
      { filter, pageToken: altered },
      { filter, pageToken: 'x' },
      { filter, pageToken: pageToken.slice(0, -4) },
      { filter, pageToken: 'y'.repeat(5_000) },
    ];
    for (const request of foreign) {
      const refused = await refusal(list(request));
      expect(refused).toMatchObject({ code: 3, reason: 'CURSOR_INVALID', metadata: { field: 'page_token' } });
    }
  });

  it.each<[MessageInitShape<typeof ListRequestSchema>, string]>([
    [{ pageSize: 0 }, 'page_size'],
    [{ pageSize: 1_001 }, 'page_size'],
    [{ order: 9 as 1 }, 'order'],
    [{ view: 9 as 1 }, 'view'],
    [{ filter: { namespace: 'N' } }, 'filter.namespace'],
    [{ filter: { statuses: [0] } }, 'filter.statuses[0]'],
    [{ filter: { createdFrom: { nanos: -1 } } }, 'filter.created_from'],
  ])('MALFORMED: %j', async (request, field) => {
    expect(await refusal(list(request))).toMatchObject({ reason: 'MALFORMED', field });
  });

  it.each<[MessageInitShape<typeof ListRequestSchema>, string]>([
    [{ filter: { concurrencyKey: 'k' } }, 'filter.concurrency_key'],
    [{ filter: { scheduleId: 's' } }, 'filter.schedule_id'],
  ])('UNSUPPORTED: %j', async (request, field) => {
    expect(await refusal(list(request))).toMatchObject({ code: 12, reason: 'UNSUPPORTED', metadata: { field } });
  });
});

describe('ListEvents', () => {
  it('reads the whole history, page by page, facts and stream events', async () => {
    const { task, claim, worker } = await running(fixture.client);
    const progress = { case: 'progress' as const, value: { fraction: 0.5, message: 'half' } };
    const output = { case: 'output' as const, value: { content: { case: 'outputJson' as const, value: '[1,2]' } } };
    const binary = { data: new Uint8Array([0, 1, 255]), contentType: 'image/png' };
    const picture = { case: 'output' as const, value: { content: { case: 'binary' as const, value: binary } } };
    await worker.say(
      claim,
      [progress, output, picture, { case: 'checkpoint', value: { checkpointJson: '7' } }, completed],
      3,
    );
    const { taskId } = task;
    const whole = await fixture.client.unary(tasks.listEvents, { taskId });
    expect(whole.hasMore).toBe(false);
    expect(whole.events.map((event) => event.type)).toEqual([
      'task.submitted',
      'reeve.task.claimed',
      'task.accepted',
      'task.started',
      'task.progress',
      'task.output',
      'task.output',
      'reeve.task.checkpoint',
      'task.completed',
    ]);
    expect(whole.events.map((event) => Number(event.eventNumber))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(whole.events[1]).toMatchObject({ fromStatus: TaskStatus.QUEUED, toStatus: TaskStatus.RUNNING, epoch: 1n });
    expect(whole.events[2]).toMatchObject({ revision: 0n, fromStatus: 0, eventSeq: 1n, aepState: AepState.ACCEPTED });
    expect(whole.events[6]?.binary?.contentType).toBe('image/png');
    expect([...(whole.events[6]?.binary?.data ?? [])]).toEqual([0, 1, 255]);
    expect(JSON.parse(whole.events[6]?.payloadJson ?? '')).toMatchObject({ content_type: 'image/png', size_bytes: 3 });
    for (const event of whole.events) expect(JSON.parse(event.payloadJson)).toMatchObject({ task_id: taskId });
    const read: string[] = [];
    for (let after = 0n; ;) {
      const page = await fixture.client.unary(tasks.listEvents, { taskId, afterEventNumber: after, pageSize: 2 });
      read.push(...page.events.map((event) => event.eventId));
      after = page.events.at(-1)?.eventNumber ?? after;
      if (!page.hasMore) break;
    }
    expect(read).toEqual(whole.events.map((event) => event.eventId));
    const aep = await fixture.client.unary(tasks.listEvents, { taskId, aepOnly: true });
    expect(aep.events.map((event) => event.aepState)).not.toContain(0);
    expect(aep.events).toHaveLength(7);
    worker.stop();
  });

  it('shows on request what was said without the right to say it', async () => {
    const { task, claim, worker } = await running(fixture.client);
    await worker.say({ ...claim, epoch: 1n }, [completed], 3);
    await worker.say(claim, [{ case: 'progress', value: { message: 'late' } }], 4);
    const { taskId } = task;
    const quiet = await fixture.client.unary(tasks.listEvents, { taskId });
    expect(quiet.diagnostics).toEqual([]);
    const { diagnostics } = await fixture.client.unary(tasks.listEvents, { taskId, includeDiagnostics: true });
    expect(diagnostics[0]).toMatchObject({ epoch: 1n, eventSeq: 4n, type: 'task.progress', refusedAs: 11 });
    expect(JSON.parse(diagnostics[0]?.payloadJson ?? '')).toMatchObject({ message: 'late' });
    worker.stop();
  });

  it('refuses what it cannot read', async () => {
    const events = (request: object) => refusal(fixture.client.unary(tasks.listEvents, request));
    expect(await events({})).toMatchObject({ field: 'task_id' });
    expect(await events({ taskId: 'nobody' })).toMatchObject({ code: 5, reason: 'TASK_NOT_FOUND' });
    expect(await events({ taskId: 't', afterEventNumber: -1n })).toMatchObject({ field: 'after_event_number' });
    expect(await events({ taskId: 't', pageSize: 0 })).toMatchObject({ field: 'page_size' });
  });
});
