// Child programs of every sort: well-behaved, silent, deaf, endless, stubborn, broken.

import { describe, expect, it } from 'vitest';
import { MAX_LINE_BYTES, MAX_REJECTED_LINES } from '../../src/cli/exec/saying.js';
import { JsonText } from '../../src/sdk/transport/json.js';
import {
  CancelTask,
  Completion,
  NonRetryable,
  OutOfTime,
  Suspend,
  TaskFailure,
} from '../../src/sdk/worker/outcomes.js';
import { CancelRequested, Draining, LeaseLost } from '../../src/sdk/worker/stop-reasons.js';
import { node, runAttempt, startAttempt } from './attempt-rig.js';

const progress = '{"type":"task.progress","payload":{"progress":0.5}}';
const completed = '{"type":"task.completed","payload":{"result":{"n":1}}}';

/** Prints the text; `LONG` in it stands for more than a line may have. */
function printing(text: string): string {
  const source = JSON.stringify(text);
  return node(`process.stdout.write(${source}.replace("LONG", "x".repeat(${MAX_LINE_BYTES})))`);
}

describe('the claim', () => {
  it('comes as one JSON line and in the environment', async () => {
    const echo = `read -r line; printf '{"type":"task.output","payload":{"output":[%s,%s,"%s"]}}' "$line" "$REEVE_EPOCH" "$REEVE_TASK_ID"`;
    const { said, end } = await runAttempt(echo, {}, { text: 'a\nb', n: 1.5 });
    expect(said).toEqual([
      [
        'output',
        [
          {
            type: 'reeve.claim',
            task_id: 'task-1',
            generation: 2,
            epoch: 7,
            attempt: 1,
            max_attempts: 3,
            kind: 'agent',
            namespace: 'default',
            queue: 'default',
            args: { text: 'a\nb', n: 1.5 },
            checkpoint: null,
            resume_input: null,
            deadline: null,
            labels: {},
          },
          7,
          'task-1',
        ],
      ],
    ]);
    expect(end).toBeInstanceOf(Completion);
  });

  it('brings what was saved and what was resumed with as the texts that they are', async () => {
    const saved = '{"n":9007199254740993,"h":1e400,"d":1.50}';
    const resumed = '[12345678901234567890,-0]';
    const echo = `read -r line; printf '%s' "$line" >&2; exit 3`;
    const { end } = await runAttempt(echo, {}, {}, { checkpointJson: saved, resumeInputJson: resumed });
    const { errorDetail } = (end as TaskFailure).input;
    expect(errorDetail).toContain(`"checkpoint":${saved},`);
    expect(errorDetail).toContain(`"resume_input":${resumed},`);
  });

  it('can be read to the end of stdin when that is wished', async () => {
    const { end } = await runAttempt('cat >/dev/null', { closeStdin: true });
    expect(end).toEqual(new Completion({ exitCode: 0 }));
  });
});

describe('what it says', () => {
  it('is passed on in order', async () => {
    const lines = [
      progress,
      '{"type":"task.output","payload":{"output":"x"}}',
      '{"type":"task.blocked","payload":{"reason":"tea"}}',
      '{"type":"task.started"}',
      '{"type":"reeve.task.checkpoint","payload":{"checkpoint":3}}',
      completed,
    ];
    const { said, rejected, end } = await runAttempt(lines.map((line) => `echo '${line}'`).join(';'));
    expect(said).toEqual([
      ['progress', 0.5, undefined],
      ['output', 'x'],
      ['blocked', 'tea'],
      ['unblocked'],
      ['checkpoint', 3],
    ]);
    expect(rejected).toEqual([]);
    expect(end).toEqual(new Completion({ exitCode: 0, result: new JsonText('{"n":1}') }));
  });

  it('is answered on stdin when it is refused', async () => {
    const program = `read -r claim; echo '{"type":"nonsense","id":"e9"}'; read -r answer; echo "{\\"type\\":\\"task.output\\",\\"payload\\":{\\"output\\":$answer}}"`;
    const { said } = await runAttempt(program);
    expect(said).toEqual([
      [
        'output',
        {
          type: 'event.rejected',
          task_id: 'task-1',
          payload: {
            task_id: 'task-1',
            acknowledged_event_id: 'e9',
            line: 1,
            error: {
              code: 'UNSUPPORTED',
              message: 'no event of this type is known here',
              retryable: false,
              details: { field: 'type' },
            },
          },
        },
      ],
    ]);
  });

  it('may be garbage, and the rest still counts', async () => {
    const { said, rejected, end } = await runAttempt(
      `printf '\\377\\376\\000garbage\\n\\n  \\nhello\\n'; echo '${progress}'; echo '${completed}'`,
    );
    expect(rejected.map(({ lineNumber }) => lineNumber)).toEqual([1, 4]);
    expect(said).toHaveLength(1);
    expect(end).toBeInstanceOf(Completion);
  });

  it('may be one endless line', async () => {
    const { rejected, end } = await runAttempt(
      node(`process.stdout.write("x".repeat(${3 * MAX_LINE_BYTES}) + "\\n" + JSON.stringify(${completed}))`),
    );
    expect(rejected).toMatchObject([{ lineNumber: 1, code: 'MALFORMED' }]);
    expect(end).toEqual(new Completion({ exitCode: 0, result: new JsonText('{"n":1}') }));
  });

  it('may be nothing at all, without ever reading', async () => {
    const { said, end } = await runAttempt('exec <&-; exit 0', {}, { large: 'x'.repeat(900_000) });
    expect(said).toEqual([]);
    expect(end).toEqual(new Completion({ exitCode: 0 }));
  });

  it('may be thousands of refused lines from a program that does not read', async () => {
    const { rejected, end } = await runAttempt(node('for (let i = 0; i < 5000; i++) console.log("no JSON " + i)'));
    expect(rejected).toHaveLength(5_000);
    expect(end).toBeInstanceOf(Completion);
  });
});

describe('a program that prints without end what is no event', () => {
  it('is stopped after so many lines, and fails for good', async () => {
    const { rejected, end } = await runAttempt('yes no JSON');
    expect(rejected).toHaveLength(MAX_REJECTED_LINES + 1);
    expect(end).toMatchObject({ input: { code: 'too_many_rejected_lines', retryable: false } });
  });

  it('keeps the end that it told before', async () => {
    const { end } = await runAttempt(`echo '${completed}'; exec yes no JSON`);
    expect(end).toMatchObject({ input: { result: new JsonText('{"n":1}') } });
  });

  it.each(['no JSON', '{"type":"nonsense"}'])('lets others have their turn: %s', async (line) => {
    let seen = 0;
    let seenBefore: number | undefined;
    await runAttempt(printing(`${line}\n`.repeat(200)), {
      onRejected: () => {
        seen += 1;
        if (seen === 1) setImmediate(() => (seenBefore = seen));
        // All of them come in one piece, and each takes its time.
        for (const until = performance.now() + 1; performance.now() < until;);
      },
    });
    expect(seen).toBe(200);
    expect(seenBefore).toBeLessThan(100);
  });
});

describe('its end', () => {
  it.each([
    ['exit 3', new NonRetryable('the program ended with exit code 3', { code: 'exit_code', exitCode: 3 })],
    ['exit 75', new TaskFailure('the program asked for another attempt', { code: 'temporary_failure', exitCode: 75 })],
    // A shell that runs it and is not replaced by it tells so in its exit code.
    [
      `exec 2>&-; sh -c 'kill -9 $$'; exit $?`,
      new TaskFailure('the program was killed by SIGKILL', { code: 'killed', exitCode: 137 }),
    ],
    ['exit 190', new TaskFailure('the program was killed by signal 62', { code: 'killed', exitCode: 190 })],
    ['exit 128', new NonRetryable('the program ended with exit code 128', { code: 'exit_code', exitCode: 128 })],
    ['exit 193', new NonRetryable('the program ended with exit code 193', { code: 'exit_code', exitCode: 193 })],
    ['kill -9 $$', new TaskFailure('the program was killed by SIGKILL', { code: 'killed', exitCode: 137 })],
    [
      `echo '{"type":"task.failed","payload":{"error":{"code":"odd","message":"m","retryable":false}}}'; exit 1`,
      new TaskFailure('m', { code: 'odd', message: 'm', retryable: false, exitCode: 1 }),
    ],
    [`echo '{"type":"task.cancelled","payload":{"reason":"enough"}}'`, new CancelTask('enough', { exitCode: 0 })],
    [`echo '{"type":"task.timed_out"}'`, new OutOfTime('the program ran out of time', { exitCode: 0 })],
    [`echo '{"type":"reeve.task.suspended","payload":{"reason":"tea"}}'`, new Suspend('tea')],
    [`echo '${completed}'; exit 9`, new Completion({ exitCode: 9, result: new JsonText('{"n":1}') })],
  ])('%s', async (command, expected) => {
    const { end } = await runAttempt(command);
    expect(end).toEqual(expected);
    expect(end).toMatchObject({ ...expected });
  });

  it('well, after a last word that was refused, is a failure', async () => {
    const { end } = await runAttempt(`echo '{"type":"task.completed","task_id":"another","payload":{"result":1}}'`);
    expect(end).toMatchObject({ input: { code: 'ending_rejected', retryable: false } });
  });

  it.each([
    ['a result in a line that is too long', '{"type":"task.completed","payload":{"result":"LONG"}}'],
    ['the same, and words after it', `{"type":"task.completed","payload":{"result":"LONG"}}\n${progress}`],
    ['an ending that was cut off', '{"type":"task.completed","payload":{"result":1'],
    ['an ending that is misspelt', '{"type":"task.complete","payload":{"result":1}}'],
    ['an ending without its type, and blank lines', '{"payload":{"result":1}}\n\n  \n'],
    ['an ending where none may come', '{"type":"task.blocked"}\n{"type":"task.completed"}'],
  ])('well, after %s, is a failure', async (_what, text) => {
    const { end } = await runAttempt(printing(text));
    expect(end).toMatchObject({ input: { code: 'ending_rejected', retryable: false, exitCode: 0 } });
  });

  it.each([
    ['text that was never meant as an event', 'all tests passed'],
    ['a mistake, and an event after it', `{"type":"task.complete"}\n${progress}`],
    ['a mistake, and a true word that changes nothing after it', '{"type":"task.complete"}\n{"type":"task.started"}'],
  ])('well, after %s, is a completion', async (_what, text) => {
    const { end } = await runAttempt(printing(text));
    expect(end).toEqual(new Completion({ exitCode: 0 }));
  });

  it('carries the last 8 KiB of stderr when it failed', async () => {
    const { end } = await runAttempt(
      node('process.stderr.write("a".repeat(50_000) + "the end", () => process.exit(2))'),
    );
    const { errorDetail } = (end as TaskFailure).input;
    expect(errorDetail).toHaveLength(8 * 1_024);
    expect(errorDetail?.endsWith('aathe end')).toBe(true);
  });

  it('does not wait for what it left running', async () => {
    const { end } = await runAttempt(`sleep 1000 & echo '${completed}'`);
    expect(end).toBeInstanceOf(Completion);
  });

  it('comes although a stranger holds its pipes', async () => {
    const escape = `require("node:child_process").spawn("sleep", ["5"], { detached: true, stdio: ["ignore", "inherit", "inherit"] }).unref()`;
    const { end } = await runAttempt(node(escape));
    expect(end).toBeInstanceOf(Completion);
  });
});

describe('a stop', () => {
  const untilTerm = `trap 'echo stopping >&2; exit 143' TERM; echo '${progress}'; while :; do sleep 0.05; done`;
  const stubborn = `trap '' TERM; echo '${progress}'; while :; do sleep 0.05; done`;

  it('by a cancel ends it with SIGTERM and cancels the task', async () => {
    const attempt = startAttempt(untilTerm);
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('run.cancelled.user', 'no longer needed', undefined));
    // The shell may also say that its `sleep` was terminated: the signal reaches the whole group.
    const errorDetail = expect.stringContaining('stopping') as string;
    expect(await attempt.end).toMatchObject({ reason: 'no longer needed', detail: { exitCode: 143, errorDetail } });
  });

  it('leaves it its last word', async () => {
    const attempt = startAttempt(
      `trap 'echo "{\\"type\\":\\"task.completed\\"}"; exit 0' TERM; echo '${progress}'; while :; do sleep 0.05; done`,
    );
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('', '', undefined));
    expect(await attempt.end).toEqual(new Completion({ exitCode: 0 }));
  });

  it.each([
    ['its own patience', 50, undefined],
    ['the grace of the cancel', 60_000, 50],
  ])('ends in SIGKILL after %s', async (_whose, killAfterMs, graceMs) => {
    const attempt = startAttempt(stubborn, { killAfterMs });
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('', '', graceMs));
    expect(await attempt.end).toBeInstanceOf(CancelTask);
  });

  it('gives those behind the shell their time as well', async () => {
    const inner = `trap 'echo cleaned up >&2; exit 0' TERM; echo '${progress}'; while :; do sleep 0.05; done`;
    const attempt = startAttempt(`(${inner}) & wait`);
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('', '', undefined));
    expect(await attempt.end).toMatchObject({
      detail: { errorDetail: expect.stringContaining('cleaned up') as string },
    });
  });

  it('for a lost lease does not wait', async () => {
    const attempt = startAttempt(stubborn, { killAfterMs: 60_000 });
    await attempt.heard('progress');
    const reason = new LeaseLost('session_expired');
    attempt.stop(reason);
    expect(await attempt.end).toBe(reason);
  });

  it('for a drain lets the reason out, so that the task is handed back', async () => {
    const attempt = startAttempt(untilTerm);
    await attempt.heard('progress');
    const reason = new Draining();
    attempt.stop(reason);
    expect(await attempt.end).toBe(reason);
  });

  it('comes on stdin as well', async () => {
    const reads = `trap '' TERM; read -r claim; echo '${progress}'; read -r stop; echo "{\\"type\\":\\"task.output\\",\\"payload\\":{\\"output\\":$stop}}"`;
    const attempt = startAttempt(reads);
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('', 'enough', undefined));
    await attempt.end;
    expect(attempt.said.at(-1)).toEqual([
      'output',
      { type: 'task.cancel.requested', task_id: 'task-1', payload: { task_id: 'task-1', reason: 'enough' } },
    ]);
  });

  it('reaches the whole of a pipeline', async () => {
    const attempt = startAttempt(`(trap '' TERM; echo '${progress}'; exec sleep 1000) | cat`, { killAfterMs: 50 });
    await attempt.heard('progress');
    attempt.stop(new CancelRequested('', '', undefined));
    expect(await attempt.end).toBeInstanceOf(CancelTask);
  });
});
