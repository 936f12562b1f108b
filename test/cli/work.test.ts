// `reeve work --exec` against a real service, with the shell examples and worse programs.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Cli, jsonLines, parsed, type Service, startService } from './cli-rig.js';

let service: Service;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service.close();
});

afterEach(async () => {
  for (const worker of workers.splice(0)) {
    worker.signal('SIGTERM');
    await worker.finished;
  }
});

const workers: Cli[] = [];

/** A worker on a queue of its own, attached. */
async function work(queue: string, exec: string, ...flags: readonly string[]): Promise<Cli> {
  const args = ['work', '--address', service.address, '--kind', 'agent', '--queue', queue, '--exec', exec, '--json'];
  const worker = Cli.start([...args, ...flags]);
  workers.push(worker);
  await worker.line(/"type":"attached"/);
  return worker;
}

async function doTask(queue: string, ...flags: readonly string[]) {
  const { end, out } = await service.reeve('submit', 'agent', '--queue', queue, '--wait', '--json', ...flags);
  const { task } = jsonLines(out).at(-1) as { task: Record<string, unknown> };
  return { end, task, out };
}

async function eventTypes(taskId: unknown): Promise<readonly unknown[]> {
  const { out } = await service.reeve('events', String(taskId), '--json');
  return jsonLines(out).map((event) => event['type']);
}

describe('the greeting example', () => {
  it('completes, with progress and an output on the way', async () => {
    await work('greet', 'examples/shell/greet.sh');
    const { end, task } = await doTask('greet', '--args', '{"name":"Ada"}');
    expect(end).toBe(0);
    expect(task).toMatchObject({ status: 'TASK_STATUS_COMPLETED', attempt: 1, exit_code: 0 });
    expect(JSON.parse(String(task['result_json']))).toEqual({ greeting: 'Hello, Ada!' });
    expect(await eventTypes(task['task_id'])).toEqual([
      'task.submitted',
      'reeve.task.claimed',
      'task.accepted',
      'task.started',
      'task.progress',
      'task.output',
      'task.completed',
    ]);
  });

  it('fails for good with its exit code and what it said on stderr', async () => {
    await work('greet', 'examples/shell/greet.sh');
    const { end, task } = await doTask('greet');
    expect(end).toBe(1);
    expect(task).toMatchObject({
      status: 'TASK_STATUS_FAILED',
      attempt: 1,
      exit_code: 64,
      error_detail: 'args.name is missing\n',
      error: { code: 'exit_code', retryable: false },
    });
  });
});

describe('the counting example', () => {
  it('stops when it is cancelled, and the owner is known to have stopped', async () => {
    await work('count', 'examples/shell/count.sh');
    const submit = Cli.start([
      ...['submit', 'agent', '--address', service.address, '--queue', 'count', '--key', 'count'],
      ...['--args', '{"to":1000}', '--wait'],
    ]);
    await submit.line(/task\.progress/);
    const cancel = await service.reeve('cancel', '--key', 'count', '--reason', 'enough', '--wait', 'settled');
    expect(cancel).toMatchObject({ end: 0 });
    expect(cancel.out).toContain('receipts  delivered, acknowledged, settled');
    expect((await submit.finished).end).toBe(6);
    const task = parsed((await service.reeve('get', '--key', 'count', '--json')).out);
    expect(task).toMatchObject({
      cancellation: { owner_stopped: 'OWNER_STOPPED_CONFIRMED' },
      exit_code: 143,
    });
    expect(task['error_detail']).toMatch(/stopped at \d+\n/);
  });

  it.each([
    ['that leaves', 'SIGTERM', false],
    ['whose terminal is closed', 'SIGHUP', true],
    ['whose log nobody reads any more', 'SIGINT', true],
  ] as const)(
    'is handed back by a worker %s, and goes on from its checkpoint on the next',
    async (_which, signal, isUnheard) => {
      const key = `moved-${signal}`;
      const first = await work(key, 'examples/shell/count.sh', '--drain-grace', '0');
      const submit = Cli.start([
        ...['submit', 'agent', '--address', service.address, '--queue', key, '--key', key],
        ...['--args', '{"to":6}', '--wait'],
      ]);
      await submit.line(/task\.progress.* 2 of 6/);
      if (isUnheard) first.closeOutputs();
      first.signal(signal);
      expect((await first.finished).end).toBe(0);
      await work(key, 'examples/shell/count.sh');
      const { end, out } = await submit.finished;
      expect(end).toBe(0);
      expect(out.match(/task\.progress.* 1 of 6/g)).toHaveLength(1);
      const task = parsed((await service.reeve('get', '--key', key, '--json')).out);
      expect(task).toMatchObject({ attempt: 1, status: 'TASK_STATUS_COMPLETED' });
    },
  );
});

describe('a program', () => {
  it('that says nothing completes by its exit code', async () => {
    await work('quiet', 'true');
    expect((await doTask('quiet')).task).toMatchObject({ status: 'TASK_STATUS_COMPLETED', exit_code: 0 });
  });

  it('that asks for another attempt gets one', async () => {
    await work('later', 'test "$REEVE_ATTEMPT" = 2 || exit 75');
    const { end, task } = await doTask('later', '--retry-initial', '10ms');
    expect(end).toBe(0);
    expect(task).toMatchObject({ attempt: 2, status: 'TASK_STATUS_COMPLETED' });
  });

  it('that says illegal things hears of it, and its legal words count', async () => {
    const program = [
      `read -r claim`,
      `echo 'no JSON'`,
      `read -r first`,
      `echo '{"type":"task.blocked","payload":{"reason":"tea"}}'`,
      `echo '{"type":"task.output","payload":{"output":1}}'`,
      `read -r second`,
      `echo '{"type":"task.started"}'`,
      `printf '{"type":"task.output","payload":{"output":[%s,%s]}}\\n' "$first" "$second"`,
    ].join('; ');
    const worker = await work('illegal', program);
    const { end, task, out } = await doTask('illegal');
    expect(end).toBe(0);
    const output = jsonLines(out).find(({ event }) => (event as { type?: string } | undefined)?.type === 'task.output');
    const { payload_json: payload } = output?.['event'] as { payload_json: string };
    expect(JSON.parse(payload)).toMatchObject({
      output: [
        { type: 'event.rejected', payload: { line: 1, error: { code: 'MALFORMED' } } },
        {
          type: 'event.rejected',
          payload: {
            line: 3,
            error: { code: 'ILLEGAL_EVENT', details: { attempt_state: 'blocked', event: 'output' } },
          },
        },
      ],
    });
    await worker.line(/"type":"line_rejected".*"line":3/);
    expect(await eventTypes(task['task_id'])).toEqual([
      'task.submitted',
      'reeve.task.claimed',
      'task.accepted',
      'task.started',
      'task.blocked',
      'task.started',
      'task.output',
      'task.completed',
    ]);
  });

  it('that saves and results in numbers no double holds gets and gives them as they are', async () => {
    const numbers = '{"n":12345678901234567890,"h":1e400,"d":1.50}';
    const program = `read -r claim; echo "$claim" >&2
      test "$REEVE_ATTEMPT" = 2 || { echo '{"type":"reeve.task.checkpoint","payload":{"checkpoint":${numbers}}}'; exit 75; }
      case $claim in *'"checkpoint":${numbers}'*) echo '{"type":"task.completed","payload":{"result":${numbers}}}';; esac`;
    await work('exact', program);
    const { task } = await doTask('exact', '--retry-initial', '10ms');
    expect(task).toMatchObject({ status: 'TASK_STATUS_COMPLETED', attempt: 2, result_json: numbers });
  });

  it('that outputs something very deep has it passed on', async () => {
    const program = `exec '${process.execPath}' -e '
      const deep = "[".repeat(500) + "]".repeat(500);
      for (const [type, name] of [["task.output", "output"], ["task.completed", "result"]])
        console.log("{\\"type\\":\\"" + type + "\\",\\"payload\\":{\\"" + name + "\\":" + deep + "}}");'`;
    await work('deep', program);
    const { end, task } = await doTask('deep');
    expect(end).toBe(0);
    expect(task['result_json']).toHaveLength(1_000);
    expect((await service.reeve('events', String(task['task_id']))).end).toBe(0);
  });

  it('is killed with a worker that a signal ends at once', async () => {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address() as AddressInfo;
    const connected = once(listener, 'connection') as Promise<[Socket]>;
    const source = `process.on("SIGTERM", () => 0); require("node:net").connect(${port}, "127.0.0.1")`;
    const worker = await work('quit', `exec '${process.execPath}' -e '${source}'`);
    await service.reeve('submit', 'agent', '--queue', 'quit');
    const [program] = await connected;
    const gone = once(program.on('error', () => undefined).resume(), 'close');
    worker.signal('SIGQUIT');
    expect((await worker.finished).end).toBe(131);
    await gone;
    listener.close();
  });

  it('that is given longer than a timer holds is not killed at once', async () => {
    const late = `trap 'sleep 0.3; echo "{\\"type\\":\\"task.output\\",\\"payload\\":{\\"output\\":\\"last\\"}}"; exit 0' TERM
      echo '{"type":"task.progress","payload":{"progress":0}}'; while :; do sleep 0.05; done`;
    await work('patient', late, '--kill-after', '30d');
    const submit = Cli.start([
      ...['submit', 'agent', '--address', service.address, '--queue', 'patient', '--key', 'patient', '--wait'],
    ]);
    await submit.line(/task\.progress/);
    await service.reeve('cancel', '--key', 'patient', '--wait', 'settled');
    expect((await submit.finished).out).toContain('last');
  });

  it('that outlives a second signal to its worker is killed with it', async () => {
    const stubborn = `trap '' TERM; echo '{"type":"task.progress","payload":{"progress":0}}'; echo "pid $$" >&2; while :; do sleep 0.05; done`;
    const worker = await work('stubborn', stubborn, '--kill-after', '100ms');
    const submit = Cli.start([
      'submit',
      'agent',
      '--address',
      service.address,
      '--queue',
      'stubborn',
      '--wait',
      '--key',
      's',
    ]);
    await submit.line(/task\.progress/);
    worker.signal('SIGTERM');
    await worker.line(/"type":"draining"/);
    worker.signal('SIGTERM');
    expect((await worker.finished).end).toBe(0);
    await submit.line(/reeve\.task\.requeued/);
    await service.reeve('cancel', '--key', 's');
    expect((await submit.finished).end).toBe(6);
  });
});

it.each([
  [['work'], /required option '--kind/],
  [['work', '--kind', 'agent'], /required option '--exec/],
  [['work', '--kind', 'agent', '--exec', ' '], /--exec is empty/],
  [['work', '--kind', 'agent', '--exec', 'true', '--slots', '0'], /from 1 to 10000/],
])('%j is refused', async (args, message) => {
  const { end, err } = await service.reeve(...args);
  expect(end).toBe(2);
  expect(err).toMatch(message);
});
