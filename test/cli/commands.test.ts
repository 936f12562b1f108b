// The client commands against a real service: what they print, for people and for machines, and how they exit.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cli, jsonLines, parsed, type Service, startService } from './cli-rig.js';

let service: Service;
let folder: string;

beforeAll(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), 'reeve-cli-args-'));
});

afterAll(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
  Cli.killAll();
});

async function submitted(...args: readonly string[]): Promise<string> {
  const { out, err, end } = await service.reeve('submit', 'agent', '--json', ...args);
  expect({ end, err }).toEqual({ end: 0, err: '' });
  return (parsed(out)['task'] as { task_id: string }).task_id;
}

describe('submit', () => {
  it('makes a key and shows it', async () => {
    const { out, end } = await service.reeve('submit', 'agent', '--args', '{"n":1}');
    expect(end).toBe(0);
    expect(out).toMatch(/^task {5}\S+\noutcome {2}created\nkey {6}[0-9a-f-]{36}\n$/);
  });

  it('names a parent and what it waits for, and both are followed', async () => {
    const parent = await submitted();
    const child = await submitted('--parent', parent);
    const waiter = await submitted('--depends-on', child, '--on-unsatisfied', 'fail');
    const listed = await service.reeve('list', '--parent', parent, '--json');
    expect(jsonLines(listed.out).map((task) => task['task_id'] ?? task)).toEqual([child]);
    expect((await service.reeve('cancel', parent)).end).toBe(0);
    const shown = async (id: string) => parsed((await service.reeve('get', id, '--json')).out);
    expect(await shown(child)).toMatchObject({ status: 'TASK_STATUS_CANCELLED', parent: { task_id: parent } });
    expect(await shown(waiter)).toMatchObject({
      status: 'TASK_STATUS_FAILED',
      reason: { code: 'run.failed.dependency' },
    });
    const late = await service.reeve('submit', 'agent', '--parent', parent);
    expect(late.end).not.toBe(0);
    expect(late.err).toMatch(/^reeve: PARENT_CONSTRAINT: /);
  });

  it('replays a key, and says what it did not apply', async () => {
    const id = await submitted('--key', 'replay', '--args', '{"n":1}');
    const again = await service.reeve(
      'submit',
      'agent',
      '--key',
      'replay',
      '--args',
      '{ "n": 1.0 }',
      '--priority',
      '5',
    );
    expect(again.end).toBe(0);
    expect(again.out).toContain(`task     ${id}\noutcome  replayed`);
    expect(again.err).toContain('priority');
  });

  it('tells a conflict in one line, with the places that differ', async () => {
    const id = await submitted('--key', 'conflict', '--args', '{"a":1,"b":2}');
    const { end, out, err } = await service.reeve('submit', 'flow', '--key', 'conflict', '--args', '{"a":1,"b":3}');
    expect(end).toBe(4);
    expect(out).toBe('');
    expect(err.trimEnd().split('\n')).toHaveLength(1);
    expect(err).toMatch(/^reeve: IDEMPOTENCY_CONFLICT: /);
    expect(err).toContain(`task_id=${id}`);
    expect(err).toMatch(/differs at (\/action_kind, \/args\/b|\/args\/b, \/action_kind)/);
  });

  it('takes args from a file and from stdin', async () => {
    const path = join(folder, 'args.json');
    writeFileSync(path, '{"from":"file"}');
    const fromFile = await submitted('--args', `@${path}`);
    expect((await service.reeve('get', fromFile)).out).toContain('{"from":"file"}');
    const { out } = await Cli.run(
      ['submit', 'agent', '--address', service.address, '--json', '--args', '-'],
      '{"from":"stdin"}',
    );
    const { task_id: id } = parsed(out)['task'] as { task_id: string };
    expect((await service.reeve('get', id)).out).toContain('{"from":"stdin"}');
  });

  it('carries every policy flag', async () => {
    const flags = [
      ['--priority', '7'],
      ['--label', 'team=blue'],
      ['--label', 'note=a=b'],
      ['--description', 'a test'],
      ['--timeout', '2h'],
      ['--start-by', '1h30m'],
      ['--not-before', '2020-01-01T00:00:00Z'],
      ['--attempt-timeout', '5m'],
      ['--progress-timeout', '30s'],
      ['--max-attempts', '5'],
      ['--retry-initial', '250ms'],
      ['--retry-multiplier', '1.5'],
      ['--retry-maximum', '1m'],
      ['--retry-jitter', '0'],
      ['--non-retryable', 'fatal,odd'],
      ['--cancellation-policy', 'fenced'],
    ];
    const id = await submitted(...flags.flat(), '--queue', 'q1', '--target', 'process', '--capability', 'gpu');
    const task = parsed((await service.reeve('get', id, '--json')).out);
    expect(task).toMatchObject({
      queue: 'q1',
      labels: { team: 'blue', note: 'a=b' },
      cancellation: { policy: 'CANCELLATION_POLICY_FENCED' },
      application: { execution_target: 'EXECUTION_TARGET_PROCESS', required_capabilities: ['gpu'] },
      policy: {
        priority: 7,
        description: 'a test',
        timeout: '7200s',
        start_by: '5400s',
        not_before: '2020-01-01T00:00:00Z',
        attempt_timeout: '300s',
        progress_timeout: '30s',
        retry: {
          max_attempts: 5,
          initial: '0.250s',
          multiplier: 1.5,
          maximum: '60s',
          jitter: 0,
          non_retryable_codes: ['fatal', 'odd'],
        },
      },
    });
  });

  it.each([
    [['submit', 'agent', '--args', '{'], 2, /^reeve: MALFORMED: .*field=args_json/],
    [['submit', 'agent', '--args', '@/nowhere/args.json'], 2, /^reeve: cannot read \/nowhere\/args\.json/],
    [['submit', 'unheard-of'], 4, /^reeve: ACTION_KIND_UNREGISTERED: .*action_kind=unheard-of/],
    [['submit'], 2, /missing required argument 'kind'/],
    [['submit', 'agent', '--timeout', '30'], 2, /--timeout.*units.*30s\?/],
    [['submit', 'agent', '--priority', '101'], 2, /-100 to 100/],
    [['submit', 'agent', '--label', 'x'], 2, /key=value/],
    [['submit', 'agent', '--target', 'moon'], 2, /local_worktree/],
  ])('%j exits with %d', async (args, code, message) => {
    const { end, err } = await service.reeve(...args);
    expect(end).toBe(code);
    expect(err).toMatch(message);
    expect(err).not.toMatch(/^\s+at /m);
  });
});

describe('get', () => {
  it('finds a task by its id and by its key', async () => {
    const id = await submitted('--key', 'found');
    for (const name of [[id], ['--key', 'found']]) {
      const { out, end } = await service.reeve('get', ...name);
      expect(end).toBe(0);
      expect(out).toContain(id);
      expect(out).toContain('queued, attempt 0 of 3');
    }
  });

  it.each([
    [['get', 'nobody'], 3],
    [['get', '--key', 'nobody'], 3],
    [['get'], 2],
    [['get', 'x', '--key', 'y'], 2],
  ])('%j exits with %d', async (args, code) => {
    expect(await service.reeve(...args)).toMatchObject({ end: code, out: '' });
  });

  it('tells machines about a failure as JSON', async () => {
    const { err } = await service.reeve('get', 'nobody', '--json');
    expect(parsed(err)).toMatchObject({
      error: { reason: 'TASK_NOT_FOUND', code: 5, metadata: { task_id: 'nobody' }, retryable: false },
    });
  });
});

describe('list', () => {
  it('pages, filters and orders', async () => {
    const ids: string[] = [];
    for (const n of [1, 2, 3]) ids.push(await submitted('--queue', 'paged', '--args', `{"n":${n}}`));
    const first = await service.reeve('list', '--queue', 'paged', '--limit', '2', '--json');
    expect(jsonLines(first.out).map((task) => task['task_id'])).toEqual([ids[2], ids[1]]);
    const token = /--page-token (\S+)/.exec(first.err)?.[1] ?? '';
    const second = await service.reeve('list', '--queue', 'paged', '--limit', '2', '--json', '--page-token', token);
    expect(jsonLines(second.out).map((task) => task['task_id'])).toEqual([ids[0]]);
    expect(second.err).toBe('');
    const oldest = await service.reeve('list', '--queue', 'paged', '--oldest-first', '--limit', '1', '--json');
    expect(jsonLines(oldest.out).map((task) => task['task_id'])).toEqual([ids[0]]);
  });

  it('prints a table', async () => {
    const id = await submitted('--queue', 'table');
    const { out } = await service.reeve('list', '--queue', 'table', '--status', 'queued,running', '--since', '1h');
    const [titles, row, ...more] = out.trimEnd().split('\n');
    expect(titles).toMatch(/^TASK +STATUS +KIND +QUEUE +ATTEMPT +CREATED +DETAIL$/);
    expect(row).toMatch(new RegExp(`^${id} +queued +agent +table +0/3 +\\S+ ago`));
    expect(more).toEqual([]);
  });

  it.each([
    [['list', '--status', 'sleeping'], 2],
    [['list', '--page-token', 'made-up'], 2],
    [['list', '--since', 'yesterday'], 2],
  ])('%j exits with %d', async (args, code) => {
    expect((await service.reeve(...args)).end).toBe(code);
  });
});

describe('cancel, events and resume', () => {
  it('cancel what is queued at once, tell its history, give it another life', async () => {
    const id = await submitted('--key', 'lives');
    const cancelled = await service.reeve('cancel', id, '--reason', 'no need', '--wait', 'settled', '--actor', 'ada');
    expect(cancelled.end).toBe(0);
    expect(cancelled.out).toMatch(/answer {4}cancelled\nstatus {4}cancelled\n/);
    expect((await service.reeve('cancel', id)).out).toContain('already_terminal');

    const events = await service.reeve('events', id);
    expect(events.out).toMatch(/^ {3}1 {2}\S+ {2}task\.submitted +queued/);
    expect(events.out).toMatch(/task\.cancelled +queued → cancelled/);
    const last = jsonLines((await service.reeve('events', '--key', 'lives', '--json')).out).at(-1);
    expect(last).toMatchObject({ type: 'task.cancelled', actor: { type: 'ACTOR_TYPE_OPERATOR', id: 'ada' } });
    const limited = await service.reeve('events', id, '--after', '1', '--limit', '1', '--json');
    expect(jsonLines(limited.out)).toMatchObject([{ event_number: '2' }]);

    const resumed = await service.reeve('resume', id, '--input', '{"turn":2}', '--request-key', 'r1');
    expect(resumed).toMatchObject({ end: 0 });
    expect(resumed.out).toMatch(/answer {6}resumed\nstatus {6}queued\ngeneration {2}2 /);
    expect((await service.reeve('resume', id, '--input', '{"turn":2}', '--request-key', 'r1')).out).toContain(
      'replayed',
    );
    expect((await service.reeve('resume', id)).end).toBe(4);
    const stale = await service.reeve('resume', id, '--generation', 'another');
    expect(stale).toMatchObject({ end: 4 });
    expect(stale.err).toMatch(/^reeve: STALE_GENERATION: /);
  });

  it('hold a guard against what they find', async () => {
    const id = await submitted();
    await service.reeve('cancel', id);
    const { end, err } = await service.reeve('resume', id, '--revision', '1');
    expect({ end, err }).toEqual({ end: 4, err: 'reeve: the guard on revision does not hold\n' });
  });

  it('exit with 3 for a task that is not there', async () => {
    for (const command of ['cancel', 'events', 'explain', 'resume', 'suspend', 'watch']) {
      expect(await service.reeve(command, 'nobody')).toMatchObject({ end: 3, out: '' });
    }
  });
});

describe('watch', () => {
  it('replays a task that is over and exits by its outcome', async () => {
    const id = await submitted();
    await service.reeve('cancel', id);
    const people = await service.reeve('watch', id);
    expect(people.end).toBe(6);
    expect(people.out).toMatch(/task\.submitted/);
    expect(people.out).toMatch(/^status +cancelled/m);
    const machines = jsonLines((await service.reeve('watch', id, '--json')).out);
    expect(machines.at(0)).toMatchObject({ event: { type: 'task.submitted' } });
    expect(machines.at(-1)).toMatchObject({ task: { task_id: id, status: 'TASK_STATUS_CANCELLED' } });
  });

  it('follows until the end comes', async () => {
    const id = await submitted();
    const watch = Cli.start(['watch', id, '--address', service.address]);
    await watch.line(/task\.submitted/);
    await service.reeve('cancel', id);
    expect(await watch.finished).toMatchObject({ end: 6 });
  });

  it('is what --wait does', async () => {
    const wait = Cli.start(['submit', 'agent', '--wait', '--key', 'waited', '--address', service.address]);
    await wait.line(/task\.submitted/);
    await service.reeve('cancel', '--key', 'waited');
    expect(await wait.finished).toMatchObject({ end: 6 });
  });

  it('tells a time-out by its own code', async () => {
    expect((await service.reeve('submit', 'agent', '--timeout', '10ms', '--wait')).end).toBe(7);
  });
});

it('says in the history which door a task came in by', async () => {
  const { out } = await service.reeve('submit', 'agent', '--json', '--key', 'door');
  expect(out).toContain('"ADMISSION_SOURCE_CLI"');
});

describe('without a service', () => {
  it.each([
    [['get', 'x'], 5],
    [['health'], 1],
    [['watch', 'x'], 5],
  ])('%j exits with %d', async (args, code) => {
    const { end, err, out } = await Cli.run(args, '', { REEVE_ADDRESS: '127.0.0.1:1' });
    expect(end).toBe(code);
    expect(out + err).toMatch(/127\.0\.0\.1:1/);
    expect((out + err).trimEnd().split('\n')).toHaveLength(1);
  });

  it('health says so, and says serving with one', async () => {
    expect(await service.reeve('health')).toMatchObject({ end: 0, out: `${service.address} serving\n` });
  });
});
