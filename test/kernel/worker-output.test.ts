// The limits on an attempt's outputs (quality.md, "Wire limits"): beyond them one truncated mark, then silence.

import { describe, expect, it } from 'vitest';
import type { OutputData } from '../../src/kernel/event.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { Draft } from '../../src/kernel/draft.js';
import { MAX_OUTPUT_BYTES_PER_ATTEMPT, MAX_OUTPUTS_PER_ATTEMPT } from '../../src/kernel/worker-report.js';
import { T0, TaskWorld } from './task-world.js';

function text(outputJson: string): { readonly kind: 'output'; readonly output: OutputData } {
  return { kind: 'output', output: { outputJson, binaryBase64: null, contentType: null, truncated: false } };
}

function binary(binaryBase64: string): { readonly kind: 'output'; readonly output: OutputData } {
  return { kind: 'output', output: { outputJson: null, binaryBase64, contentType: 'image/png', truncated: false } };
}

/** A started attempt that has put out so much already. */
function worldWith(outputs: number, outputBytes: number): TaskWorld {
  const world = TaskWorld.admit({ retry: { initialMs: 0 } })
    .claim()
    .say('accepted', 'started');
  const { record } = world;
  if (record.lease === null) throw new Error('it was just claimed');
  const filled: TaskRecord = { ...record, lease: { ...record.lease, outputs, outputBytes } };
  world.draft = Draft.of(filled, T0 + 1);
  return world;
}

describe('the limits', () => {
  it('are those that are documented', () => {
    expect(MAX_OUTPUTS_PER_ATTEMPT).toBe(10_000);
    expect(MAX_OUTPUT_BYTES_PER_ATTEMPT).toBe(16 * 1024 * 1024);
  });
});

describe('outputs', () => {
  it('are counted, with their size', () => {
    const world = worldWith(0, 0).say(text('"12"'), binary('AAAA'));
    expect(world.record.lease).toMatchObject({ outputs: 2, outputBytes: 8, outputTruncated: false });
    expect(world.record.outputTruncated).toBe(false);
  });

  it('up to the last permitted one are kept', () => {
    const world = worldWith(MAX_OUTPUTS_PER_ATTEMPT - 1, 0).say(text('"last"'));
    expect(world.draft.events[0]?.data).toMatchObject({ outputJson: '"last"', truncated: false });
    expect(world.record.outputTruncated).toBe(false);
  });

  it.each([
    ['one too many', worldWith(MAX_OUTPUTS_PER_ATTEMPT, 0), text('"x"')],
    ['a byte too many', worldWith(1, MAX_OUTPUT_BYTES_PER_ATTEMPT - 2), text('"x"')],
    ['a byte too many in base64', worldWith(1, MAX_OUTPUT_BYTES_PER_ATTEMPT - 3), binary('AAAA')],
  ])('%s leaves a mark without its payload, and the task says so', (_name, world, output) => {
    world.say(output);
    expect(world.eventTypes).toEqual(['task.output']);
    expect(world.draft.events[0]?.data).toMatchObject({ outputJson: null, binaryBase64: null, truncated: true });
    expect(world.record.outputTruncated).toBe(true);
    expect(world.record.lease?.outputTruncated).toBe(true);
    expect(world.record.status).toBe('running');
  });

  it('that exactly fill the limit are kept', () => {
    const world = worldWith(1, MAX_OUTPUT_BYTES_PER_ATTEMPT - 3).say(text('"x"'));
    expect(world.draft.events[0]?.data).toMatchObject({ outputJson: '"x"', truncated: false });
  });

  it('after the mark are answered and dropped, and the attempt goes on', () => {
    const world = worldWith(MAX_OUTPUTS_PER_ATTEMPT, 0).say(text('"a"'));
    const { answer } = world.hear(text('"b"'), text('"c"'), 'progress', text('"d"'), 'completed');
    expect(answer).toEqual({ judgedThrough: 8, refused: [] });
    expect(world.eventTypes).toEqual(['task.output', 'task.progress', 'task.completed']);
    expect(world.record).toMatchObject({ status: 'completed', outputTruncated: true });
  });

  it('of the next attempt are counted afresh', () => {
    const world = worldWith(MAX_OUTPUTS_PER_ATTEMPT, 0).say(text('"a"'), 'failed').tick();
    world.claim().say('accepted', 'started', text('"b"'));
    expect(world.record.lease).toMatchObject({ outputs: 1, outputTruncated: false });
    expect(world.record.outputTruncated).toBe(false);
  });
});
