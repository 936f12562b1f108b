// The lines of a child program: what is read from them and what is refused.

import { describe, expect, it } from 'vitest';
import { AttemptState } from '../../src/cli/exec/attempt-state.js';
import { MAX_CONTENT_BYTES, readLine, type Saying } from '../../src/cli/exec/saying.js';
import { JsonText } from '../../src/sdk/transport/json.js';

const TASK = 'task-1';

function read(line: unknown) {
  return readLine(Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)), TASK);
}

function sayingOf(line: unknown): Saying {
  const result = read(line);
  if (!result.ok) throw new Error(result.rejected.message);
  return result.saying;
}

describe('a line that is an event', () => {
  it.each([
    [{ type: 'task.accepted' }, { kind: 'accepted' }],
    [{ type: 'task.started', payload: {} }, { kind: 'started' }],
    [
      { type: 'task.progress', payload: { progress: 0.4, message: 'm' } },
      { kind: 'progress', fraction: 0.4, message: 'm' },
    ],
    [{ type: 'task.progress' }, { kind: 'progress', fraction: undefined, message: undefined }],
    [
      { type: 'task.output', payload: { output: null } },
      { kind: 'output', output: new JsonText('null') },
    ],
    [
      { type: 'task.blocked', payload: { reason: 'r' } },
      { kind: 'blocked', reason: 'r' },
    ],
    [
      { type: 'reeve.task.checkpoint', payload: { checkpoint: [1] } },
      { kind: 'checkpoint', checkpoint: new JsonText('[1]') },
    ],
    [
      { type: 'task.completed', payload: { result: { a: 1 }, result_ref: 's3://x' } },
      { kind: 'completed', result: new JsonText('{"a":1}'), resultRef: 's3://x' },
    ],
    [{ type: 'task.completed' }, { kind: 'completed', result: undefined, resultRef: undefined }],
    [
      { type: 'task.failed', payload: { error: { code: 'c', message: 'm', retryable: false }, retry_after_ms: 5 } },
      {
        kind: 'failed',
        error: { code: 'c', message: 'm', retryable: false, details: undefined },
        retryAfterMs: 5,
      },
    ],
    [
      { type: 'task.cancelled', payload: { reason: 'r' } },
      { kind: 'cancelled', reason: 'r' },
    ],
    [
      { type: 'task.timed_out', payload: {} },
      { kind: 'timed_out', error: undefined },
    ],
    [
      { type: 'reeve.task.suspended', payload: { reason: 'r' } },
      { kind: 'suspended', reason: 'r' },
    ],
  ])('%j', (line, saying) => {
    expect(sayingOf(line)).toEqual(saying);
  });

  it('keeps its contents as they were written', () => {
    const number = '12345678901234567890';
    const text = `{"n":${number},"h":1e400,"z":-0,"d":1.50,"a":1,"a":2}`;
    const line = (type: string, name: string) => `{"type":"${type}","payload":{"${name}": ${text} }}`;
    expect(sayingOf(line('task.output', 'output'))).toEqual({ kind: 'output', output: new JsonText(text) });
    expect(sayingOf(line('reeve.task.checkpoint', 'checkpoint'))).toMatchObject({ checkpoint: new JsonText(text) });
    expect(sayingOf(line('task.completed', 'result'))).toMatchObject({ result: new JsonText(text) });
    expect(sayingOf(`{"type":"task.failed","payload":{"error":{"code":"c","details":{"n":${number}}}}}`)).toMatchObject(
      { error: { details: new JsonText(`{"n":${number}}`) } },
    );
  });

  it('may be nested so deep, and deeper than that is the fault of the line', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const line = (levels: number) => `{"type":"task.output","payload":{"output":${nested(levels)}}}`;
    expect(sayingOf(line(500))).toMatchObject({ output: { text: nested(500) } });
    for (const levels of [501, 100_000]) {
      expect(read(line(levels))).toMatchObject({
        ok: false,
        rejected: { code: 'MALFORMED', message: 'output is nested deeper than 500 levels' },
      });
    }
  });

  it.each([
    [{ code: 'é'.repeat(100) }, 5, { code: 'é'.repeat(64) }, 5],
    [{ code: 'x'.repeat(127) + 'é' }, 5, { code: 'x'.repeat(127) }, 5],
    [{ code: 'c' }, -1, { code: 'c' }, 0],
    [{ code: 'c' }, 1e12, { code: 'c' }, 315_360_000_000],
  ])('that tells a failure is not lost for its trimmings: %j, %j', (error, retryAfterMs, meant, meantMs) => {
    const line = { type: 'task.failed', payload: { error, retry_after_ms: retryAfterMs } };
    expect(sayingOf(line)).toMatchObject({ error: { ...meant, retryable: true }, retryAfterMs: meantMs });
  });

  it('may name its task, if it is the right one', () => {
    expect(sayingOf({ type: 'task.started', task_id: TASK, payload: { task_id: TASK } })).toEqual({ kind: 'started' });
  });
});

describe('a line is refused', () => {
  it.each([
    ['hello world', undefined],
    ['[1]', undefined],
    ['null', undefined],
    ['"task.progress"', undefined],
    [{ payload: {} }, 'type'],
    [{ type: 'task.progress', payload: [] }, undefined],
    [{ type: 'task.progress', task_id: 'another' }, 'task_id'],
    [{ type: 'task.progress', payload: { task_id: 'another' } }, 'payload.task_id'],
    [{ type: 'task.progress', task_id: 7 }, 'task_id'],
    [{ type: 'task.progress', payload: { progress: 1.01 } }, 'payload.progress'],
    [{ type: 'task.progress', payload: { progress: '0.5' } }, 'payload.progress'],
    ['{"type":"task.progress","payload":{"progress":1e999}}', 'payload.progress'],
    [{ type: 'task.progress', payload: { message: 5 } }, 'payload.message'],
    [{ type: 'task.output', payload: {} }, 'payload.output'],
    [{ type: 'task.failed', payload: {} }, 'payload.error'],
    [{ type: 'task.failed', payload: { error: { code: '' } } }, 'payload.error.code'],
    [{ type: 'task.failed', payload: { error: { code: 'x', retryable: 'no' } } }, 'payload.error.retryable'],
    [{ type: 'task.completed', payload: { result: 'x'.repeat(MAX_CONTENT_BYTES) } }, 'payload.result'],
  ])('%j', (line, field) => {
    const result = read(line);
    expect(result).toMatchObject({ ok: false, rejected: { code: 'MALFORMED' } });
    if (!result.ok) expect(result.rejected.details?.['field']).toBe(field);
  });

  it('when its type is unknown, and its id is told', () => {
    expect(read({ type: 'task.submitted', id: 'e-1' })).toMatchObject({
      ok: false,
      eventId: 'e-1',
      rejected: { code: 'UNSUPPORTED' },
    });
  });

  it('when its bytes are no UTF-8', () => {
    expect(readLine(Buffer.from([0x22, 0xff, 0xfe, 0x22]), TASK)).toMatchObject({ ok: false });
  });

  it('whatever reading it throws', () => {
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    for (const payload of [deep, `{"error":${deep}}`, `{"error":{"code":${deep}}}`]) {
      expect(read(`{"type":"task.failed","payload":${payload}}`)).toMatchObject({ ok: false, wasEnding: true });
    }
  });

  it('and one that was to end the task is known as such', () => {
    expect(read({ type: 'task.completed', task_id: 'another' })).toMatchObject({ ok: false, wasEnding: true });
    expect(read({ type: 'task.output' })).toMatchObject({ ok: false, wasEnding: false });
  });
});

describe('the state of an attempt', () => {
  const saying = (type: string): Saying =>
    sayingOf({ type, payload: { output: 1, checkpoint: 1, error: { code: 'c' }, reason: 'r' } });

  function judgements(...types: string[]): string[] {
    const state = new AttemptState();
    return types.map((type) => {
      const judgement = state.judge(saying(type));
      return typeof judgement === 'string' ? judgement : judgement.code;
    });
  }

  it('takes accepted and started as said', () => {
    expect(judgements('task.accepted', 'task.started', 'task.progress', 'task.started')).toEqual([
      'said',
      'said',
      'say',
      'said',
    ]);
  });

  it('wants a block ended before anything else', () => {
    expect(judgements('task.blocked', 'task.output', 'task.completed', 'task.started', 'task.output')).toEqual([
      'say',
      'ILLEGAL_EVENT',
      'ILLEGAL_EVENT',
      'say',
      'say',
    ]);
    expect(judgements('task.blocked', 'task.progress', 'task.completed')).toEqual(['say', 'say', 'say']);
  });

  it.each(['task.completed', 'task.failed', 'task.cancelled', 'task.timed_out', 'reeve.task.suspended'])(
    'takes nothing after %s',
    (ending) => {
      expect(judgements(ending, 'task.progress', 'task.started', 'reeve.task.checkpoint', ending)).toEqual([
        'say',
        'ILLEGAL_EVENT',
        'ILLEGAL_EVENT',
        'ILLEGAL_EVENT',
        'ILLEGAL_EVENT',
      ]);
    },
  );
});
