// Options as they are written: words, pairs, numbers, moments, texts from elsewhere.

import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import {
  collectEnum,
  collectList,
  collectPair,
  enumNumber,
  enumWord,
  enumWords,
  integerBetween,
  numberBetween,
  parseMoment,
} from '../../src/cli/options/argument-parsers.js';
import { policyOf } from '../../src/cli/options/policy-options.js';
import { MAX_TEXT_BYTES, readText } from '../../src/cli/options/text-source.js';
import { UsageError } from '../../src/cli/usage-error.js';
import { Cli } from './cli-rig.js';
import { DependencyCondition, TaskStatus, TaskStatusSchema } from '../../src/gen/reeve/v1/task_pb.js';

describe('enum words', () => {
  it('are lower case, without prefix and without the zero value', () => {
    expect(enumWords(TaskStatusSchema)).toContain('retry_wait');
    expect(enumWords(TaskStatusSchema)).toHaveLength(10);
    expect(enumWord(TaskStatusSchema, TaskStatus.TIMED_OUT)).toBe('timed_out');
    expect(enumWord(TaskStatusSchema, 99)).toBe('99');
  });

  it('are read with dashes too', () => {
    expect(enumNumber(TaskStatusSchema)('Timed-Out')).toBe(TaskStatus.TIMED_OUT);
    expect(() => enumNumber(TaskStatusSchema)('unspecified')).toThrow('One of');
    expect(collectEnum(TaskStatusSchema)('queued,running', [TaskStatus.FAILED])).toEqual([
      TaskStatus.FAILED,
      TaskStatus.QUEUED,
      TaskStatus.RUNNING,
    ]);
  });
});

describe('values', () => {
  it('lists and pairs collect', () => {
    expect(collectList('a, b', ['z'])).toEqual(['z', 'a', 'b']);
    expect(() => collectList('a,,b', [])).toThrow();
    expect(collectPair('k=a=b', { z: '1' })).toEqual({ z: '1', k: 'a=b' });
    expect(collectPair('k=', undefined)).toEqual({ k: '' });
    expect(() => collectPair('=v', undefined)).toThrow();
  });

  it.each(['', ' ', '1.5', '11', '-1', 'x', '1e1', '0x1'])('%j is no whole number from 0 to 10', (text) => {
    expect(() => integerBetween(0, 10)(text)).toThrow('from 0 to 10');
  });

  it.each(['', 'x', '2', 'NaN', 'Infinity'])('%j is no number from 0 to 1', (text) => {
    expect(() => numberBetween(0, 1)(text)).toThrow();
  });

  it('moments need their zone', () => {
    expect(parseMoment('2026-05-01T08:00:00+02:00').toISOString()).toBe('2026-05-01T06:00:00.000Z');
    for (const text of ['2026-05-01', '2026-05-01T08:00:00', 'tomorrow', '2026-99-01T08:00:00Z']) {
      expect(() => parseMoment(text)).toThrow('zone');
    }
  });
});

describe('what could not work is a mistake of the command line', () => {
  it.each([
    [['get', 'x', '--address', 'foo'], '--address must be host:port'],
    [['get', 'x', '--address', 'foo:bar'], '--address must be host:port'],
    [['work', '--kind', 'a', '--exec', 'true', '--ttl', '1s'], 'Must be from 2s to 10m'],
    [['cancel', 'x', '--wait', 'settled', '--wait-timeout', '6m'], 'Must be at most 5m'],
    [['dev', '--sqlite', '--store', 'memory:'], '--sqlite is a temporary file'],
    [['watch'], 'a task id, --key, --subtree, --queue or --everything'],
    [['serve', '--drain-grace', '30'], '5m, 1h30m, 30d'],
  ])('%j', async (args, why) => {
    const { end, err } = await Cli.run(args);
    expect(err).toContain(why);
    expect(end).toBe(2);
  });
});

describe('a text', () => {
  const stdin = (text: string | Buffer) => Readable.from([Buffer.from(text)]);

  it('is literal unless it says otherwise', async () => {
    expect(await readText('{"a":1}', stdin(''))).toBe('{"a":1}');
    expect(await readText('-', stdin('from stdin'))).toBe('from stdin');
  });

  it.each([
    [stdin(Buffer.from([0xff])), 'UTF-8'],
    [stdin(Buffer.alloc(MAX_TEXT_BYTES + 1)), 'more than'],
  ])('is refused %#', async (input, why) => {
    await expect(readText('-', input)).rejects.toThrow(why);
  });

  it('that cannot be read is a mistake of the command line', async () => {
    await expect(readText('@/nowhere', stdin(''))).rejects.toBeInstanceOf(UsageError);
    await expect(readText('@/', stdin(''))).rejects.toBeInstanceOf(UsageError);
  });
});

describe('a policy', () => {
  it('holds what was said and nothing else', () => {
    expect(policyOf({})).toBeUndefined();
    expect(policyOf({ priority: 0 })).toEqual({ priority: 0 });
    expect(policyOf({ maxAttempts: 1 })).toEqual({ retry: { maxAttempts: 1 } });
  });

  it('joins both sorts of dependencies', () => {
    expect(policyOf({ dependsOn: ['a'], dependsOnEnd: ['b'] })).toEqual({
      dependsOn: [
        { taskId: 'a', condition: DependencyCondition.SUCCEEDED },
        { taskId: 'b', condition: DependencyCondition.TERMINAL },
      ],
    });
  });
});
