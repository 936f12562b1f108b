// The commands of operators against a real service: many tasks at once, holds, changes, workers, and why.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ReeveClient, workers } from '../server/reeve-client.js';
import { Cli, jsonLines, parsed, type Service, startService } from './cli-rig.js';

let service: Service;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service.close();
  Cli.killAll();
});

async function submitted(...args: readonly string[]): Promise<string> {
  const { out, err, end } = await service.reeve('submit', 'agent', '--json', ...args);
  expect({ end, err }).toEqual({ end: 0, err: '' });
  return (parsed(out)['task'] as { task_id: string }).task_id;
}

describe('cancel-all', () => {
  it('cancels what fits a description, and says what it did', async () => {
    const ids = [await submitted('--label', 'sweep=1'), await submitted('--label', 'sweep=1')];
    const kept = await submitted();
    const { end, out, err } = await service.reeve('cancel-all', '--label', 'sweep=1', '--reason', 'swept');
    expect(end).toBe(0);
    expect(out.trimEnd().split('\n')).toEqual(ids.map((id) => `${id}  cancelled`));
    expect(err).toBe('2 cancelled\n');
    expect(parsed((await service.reeve('get', kept, '--json')).out)['status']).toBe('TASK_STATUS_QUEUED');
    expect(await service.reeve('cancel-all', '--label', 'sweep=1')).toMatchObject({
      end: 0,
      out: '',
      err: 'no task fits\n',
    });
  });

  it('cancels those that are named, each with its own answer', async () => {
    const id = await submitted();
    const { end, out } = await service.reeve('cancel-all', id, 'nobody', '--json');
    expect(end).toBe(4);
    expect(jsonLines(out)).toMatchObject([
      { task_id: id, accepted: { state: 'CANCEL_STATE_CANCELLED' } },
      { task_id: 'nobody', refused: { reason: 'ERROR_REASON_TASK_NOT_FOUND' } },
    ]);
  });

  it('wants to know which', async () => {
    expect((await service.reeve('cancel-all')).end).toBe(2);
    expect((await service.reeve('cancel-all', 'x', '--everything')).end).toBe(2);
  });
});

describe('suspend', () => {
  it('holds a task until it is resumed, and tells who and why', async () => {
    const id = await submitted();
    const { end, out } = await service.reeve('suspend', id, '--reason', 'later', '--actor', 'ann');
    expect({ end, out }).toEqual({ end: 0, out: `task    ${id}\nanswer  suspended\nstatus  suspended\n` });
    const events = jsonLines((await service.reeve('events', id, '--json')).out);
    expect(events.at(-1)).toMatchObject({
      type: 'reeve.task.suspended',
      actor: { type: 'ACTOR_TYPE_OPERATOR', id: 'ann' },
      reason: { code: 'run.suspended.operator', summary: 'later' },
    });
    expect((await service.reeve('suspend', id)).end).toBe(4);
    expect((await service.reeve('resume', id)).out).toContain('status      queued');
    expect(await service.reeve('suspend', id, '--revision', '1')).toMatchObject({
      end: 4,
      err: 'reeve: the guard on revision does not hold\n',
    });
  });
});

describe('workers and drain-worker', () => {
  it('show who is there, and let them finish', async () => {
    const name = 'cli-worker';
    const worker = Cli.start([
      'work',
      '--kind',
      'flow',
      '--queue',
      'cli-workers',
      '--name',
      name,
      '--exec',
      'true',
      '--address',
      service.address,
    ]);
    await worker.line(/\S/);
    const listed = await service.reeve('workers', '--queue', 'cli-workers', '--name', name);
    expect(listed.out).toMatch(/^WORKER +SESSION +STATE +STREAM +HELD +HEARD +QUEUES +KINDS\n/);
    expect(listed.out).toMatch(/^cli-worker +\S+ +live +attached +0\/\d+ .* ago +cli-workers +flow$/m);
    const [one] = jsonLines((await service.reeve('workers', '--name', name, '--json')).out);
    const alias = String(one?.['session_alias']);
    const drained = await service.reeve('drain-worker', '--session', alias, '--reason', 'maintenance');
    expect(drained.end).toBe(0);
    expect(drained.out).toMatch(/^cli-worker +\S+ +draining/m);
    expect((await service.reeve('drain-worker')).end).toBe(2);
    expect((await service.reeve('drain-worker', 'nobody')).end).toBe(3);
    worker.signal('SIGTERM');
    await worker.finished;
  });
});

describe('workers --gone', () => {
  it('shows who went, when, why and with which tasks, and without the option nobody who is gone', async () => {
    const queue = 'cli-gone';
    const id = await submitted('--queue', queue);
    const client = new ReeveClient(service.address);
    const stream = client.bidi(workers.work);
    const hello = { workerName: 'cli-gone', actionKinds: ['agent'], slots: 1, queues: [queue], linger: {} };
    stream.send({ frameId: 1n, frame: { case: 'hello', value: hello } });
    for (let claimed = false; !claimed;) claimed = (await stream.next())?.frame.case === 'claims';
    stream.half();
    await stream.ended;
    const names = ['--queue', queue, '--name', 'cli-gone'];
    for (let live = true; live;) live = (await service.reeve('workers', ...names)).out.includes('cli-gone');
    const { out } = await service.reeve('workers', '--gone', ...names);
    expect(out).toMatch(/^WORKER +SESSION +STATE +STREAM +HELD +HEARD +QUEUES +KINDS +ENDED +LOST\n/);
    const ending = `cli-gone +agent +\\d.* ago, stream ended +${id}`;
    expect(out).toMatch(new RegExp(`^cli-gone +\\S+ +gone +1 +${ending}$`, 'm'));
    const [one] = jsonLines((await service.reeve('workers', '--gone', ...names, '--json')).out);
    expect(one).toMatchObject({
      state: 'SESSION_STATE_GONE',
      end: { cause: 'SESSION_END_CAUSE_STREAM_ENDED', held: 1, held_task_ids: [id] },
    });
    client.close();
  });
});

describe('update', () => {
  it('changes what is given and clears what is named', async () => {
    const id = await submitted('--priority', '3', '--timeout', '2h', '--label', 'team=a', '--description', 'kept');
    const { end, out } = await service.reeve(
      'update',
      id,
      '--priority',
      '-4',
      '--start-by',
      '1h',
      '--clear',
      'timeout,labels',
      '--actor',
      'ann',
    );
    expect(end).toBe(0);
    expect(out).toMatch(/^changed {3}priority, start_by, timeout, labels\n/);
    const task = parsed((await service.reeve('get', id, '--json')).out);
    expect(task).toMatchObject({ policy: { priority: -4, start_by: '3600s', description: 'kept' } });
    expect(task).not.toHaveProperty('labels');
    expect(task['policy']).not.toHaveProperty('timeout');
    const events = jsonLines((await service.reeve('events', id, '--json')).out);
    expect(events.at(-1)).toMatchObject({ type: 'reeve.task.policy_updated', actor: { id: 'ann' } });
  });

  it('tells a guard that does not hold, a task that is over, and a call without a change', async () => {
    const id = await submitted();
    const guarded = await service.reeve('update', id, '--priority', '1', '--revision', '9');
    expect(guarded).toMatchObject({ end: 4, err: 'reeve: the guard on revision does not hold\n' });
    expect(await service.reeve('update', id)).toMatchObject({ end: 2, out: '' });
    await service.reeve('cancel', id);
    const over = await service.reeve('update', id, '--priority', '1');
    expect(over.end).toBe(4);
    expect(over.err).toMatch(/^reeve: TERMINAL_GENERATION/);
  });
});

describe('explain', () => {
  it('says what is in the way and what comes next', async () => {
    const id = await submitted('--start-by', '1h');
    const { end, out } = await service.reeve('explain', id);
    expect(end).toBe(0);
    expect(out).toMatch(/^task {5}\S+\nstatus {3}queued\nbecause {2}no_worker_for_queue: .+\nnext {5}start_by, in /);
    const machines = parsed((await service.reeve('explain', id, '--json')).out);
    expect(machines).toMatchObject({
      task: { task_id: id },
      blockers: [{ kind: 'BLOCKER_KIND_NO_WORKER_FOR_QUEUE' }],
      next_timer: { kind: 'TIMER_KIND_START_BY' },
    });
  });
});

describe('purge', () => {
  it('takes away what is finished and old enough, after a look at how much that is', async () => {
    const namespace = 'purged-by-cli';
    const ids = [await submitted('--namespace', namespace), await submitted('--namespace', namespace)];
    const live = await submitted('--namespace', namespace);
    for (const id of ids) await service.reeve('cancel', id);
    const purge = (...args: readonly string[]) =>
      service.reeve('purge', '--namespace', namespace, '--reason', 'tests', ...args);
    expect(await purge('--older-than', '0', '--dry-run')).toMatchObject({
      end: 0,
      out: 'would purge 2, kept 0 that are needed\n',
    });
    expect(await purge('--older-than', '1h')).toMatchObject({ end: 0, out: 'purged 0, kept 0 that are needed\n' });
    expect(await purge('--older-than', '0', '--status', 'completed', '--json')).toMatchObject({ end: 0 });
    const { end, out } = await purge('--older-than', '0', '--json');
    expect(end).toBe(0);
    expect(jsonLines(out)).toMatchObject([{ purged: '2' }]);
    const card = await service.reeve('get', ids[0] ?? '');
    expect(card.out).toMatch(/^status +cancelled, purged$/m);
    expect(parsed((await service.reeve('get', live, '--json')).out)['status']).toBe('TASK_STATUS_QUEUED');
    expect(await service.reeve('events', ids[0] ?? '')).toMatchObject({ end: 3 });
  });

  it('wants to know how old, and why', async () => {
    expect((await service.reeve('purge', '--reason', 'x')).end).toBe(2);
    expect((await service.reeve('purge', '--older-than', '0')).end).toBe(2);
  });
});

describe('watch', () => {
  it.each([
    ['a queue', (queue: string) => ['--queue', queue]],
    ['a subtree', (_queue: string, root: string) => ['--subtree', root]],
  ])('follows %s until it is interrupted', async (_what, scopeOf) => {
    const queue = `watched-${_what.replaceAll(' ', '-')}`;
    const root = await submitted('--queue', queue);
    const watching = Cli.start(['--address', service.address, 'watch', ...scopeOf(queue, root)]);
    await watching.line(new RegExp(`^${root} +1 .*task.submitted`));
    await submitted();
    await service.reeve('cancel', root);
    await watching.line(new RegExp(`^${root} +3 .*task.cancelled`));
    watching.signal('SIGINT');
    const { out } = await watching.finished;
    expect(out.trimEnd().split('\n')).toHaveLength(3);
  });

  it('follows a namespace, in messages for machines', async () => {
    const namespace = 'watched-by-cli';
    const id = await submitted('--namespace', namespace);
    const watching = Cli.start([
      '--address',
      service.address,
      '--namespace',
      namespace,
      'watch',
      '--everything',
      '--json',
    ]);
    const line = await watching.line(/task.submitted/);
    expect(parsed(line)).toMatchObject({ event: { task_id: id, type: 'task.submitted' } });
    watching.signal('SIGINT');
    await watching.finished;
  });

  it('wants one scope', async () => {
    expect((await service.reeve('watch', '--queue', 'q', '--everything')).end).toBe(2);
    expect((await service.reeve('watch', 'some-task', '--everything')).end).toBe(2);
  });
});
