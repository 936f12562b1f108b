// Every way to fail has one line and one exit code.

import { status } from '@grpc/grpc-js';
import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { EXIT, EXIT_MEANINGS, exitCodeHelp, exitForGrpc, exitForStatus } from '../../src/cli/exit-codes.js';
import { describeFailure } from '../../src/cli/render/failure.js';
import { UsageError } from '../../src/cli/usage-error.js';
import { TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';
import { OptionError } from '../../src/sdk/transport/option-checks.js';
import { ReeveError } from '../../src/sdk/transport/reeve-error.js';

const at = '127.0.0.1:7450';

describe('exit codes', () => {
  it('are distinct, and all told in --help', () => {
    const codes = Object.values(EXIT);
    expect(new Set(codes).size).toBe(codes.length);
    expect(EXIT_MEANINGS.map(([code]) => code)).toEqual([...codes].sort((a, b) => a - b));
    for (const code of codes) expect(exitCodeHelp()).toMatch(new RegExp(`^ +${code} {2}\\S`, 'm'));
  });

  it.each([
    [TaskStatus.COMPLETED, 0],
    [TaskStatus.FAILED, 1],
    [TaskStatus.CANCELLED, 6],
    [TaskStatus.SKIPPED, 6],
    [TaskStatus.TIMED_OUT, 7],
    [TaskStatus.RUNNING, 8],
    [TaskStatus.SUSPENDED, 8],
  ])('of status %d is %d', (taskStatus, code) => {
    expect(exitForStatus(taskStatus)).toBe(code);
  });

  it.each([
    [status.INVALID_ARGUMENT, 2],
    [status.NOT_FOUND, 3],
    [status.ALREADY_EXISTS, 4],
    [status.FAILED_PRECONDITION, 4],
    [status.OUT_OF_RANGE, 4],
    [status.UNIMPLEMENTED, 4],
    [status.ABORTED, 5],
    [status.UNAVAILABLE, 5],
    [status.RESOURCE_EXHAUSTED, 5],
    [status.DEADLINE_EXCEEDED, 5],
    [status.DATA_LOSS, 70],
    [status.INTERNAL, 70],
  ])('of gRPC status %d is %d', (code, exit) => {
    expect(exitForGrpc(code)).toBe(exit);
  });
});

describe('a failure', () => {
  it('of the service is its reason, its sentence and its values', () => {
    const error = new ReeveError({
      reason: 'IDEMPOTENCY_CONFLICT',
      code: status.ALREADY_EXISTS,
      message: 'the key names\nsomething else',
      metadata: { task_id: 't-1', pointers: '["/args/a","/action_kind"]' },
    });
    const { line, exit, json } = describeFailure(error, at);
    expect(exit).toBe(4);
    expect(line).toBe(
      'reeve: IDEMPOTENCY_CONFLICT: the key names something else (task_id=t-1, differs at /args/a, /action_kind)',
    );
    expect(JSON.parse(json)).toEqual({
      error: {
        reason: 'IDEMPOTENCY_CONFLICT',
        code: 6,
        message: 'the key names\nsomething else',
        metadata: { task_id: 't-1', pointers: '["/args/a","/action_kind"]' },
        retryable: false,
      },
    });
  });

  it('to reach it says where it was looked for', () => {
    const message = 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:7450';
    const error = new ReeveError({ reason: 'UNAVAILABLE', code: status.UNAVAILABLE, message });
    expect(describeFailure(error, at)).toMatchObject({
      exit: 5,
      line: expect.stringContaining('nothing answers at 127.0.0.1:7450') as string,
    });
  });

  it.each([
    [new UsageError('name the task'), 2, 'reeve: name the task'],
    [new OptionError('address', 'must be host:port'), 2, 'reeve: address must be host:port'],
    [new Error('a defect'), 70, 'reeve: a defect'],
    ['thrown text', 70, 'reeve: thrown text'],
    [new CommanderError(1, 'commander.unknownOption', 'said already'), 2, undefined],
    [new CommanderError(0, 'commander.help', '(outputHelp)'), 0, undefined],
  ])('%s', (error, exit, line) => {
    expect(describeFailure(error, at)).toMatchObject({ exit, line });
  });

  it('cannot write to the terminal what it likes', () => {
    const error = new ReeveError({
      reason: 'MALFORMED',
      code: status.INVALID_ARGUMENT,
      message: 'x\u001b[2J',
      metadata: { field: 'a\u0007' },
    });
    expect(describeFailure(error, at).line).toBe('reeve: MALFORMED: x [2J (field=a)');
  });
});
