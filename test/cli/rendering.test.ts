// What people see, piece by piece.

import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { liveLine } from '../../src/cli/follow/live-line.js';
import { emptyView, foldView } from '../../src/cli/follow/task-view.js';
import { eventLine } from '../../src/cli/render/event-line.js';
import { clipText, plainText, shortId } from '../../src/cli/render/plain-text.js';
import { percentage, progressBar } from '../../src/cli/render/progress-bar.js';
import { chooseStyle, colourStyle, plainStyle } from '../../src/cli/render/style.js';
import { renderTable } from '../../src/cli/render/table.js';
import { taskCard } from '../../src/cli/render/task-card.js';
import { type Event, EventSchema } from '../../src/gen/reeve/v1/event_pb.js';
import { TaskSchema, TaskStatus } from '../../src/gen/reeve/v1/task_pb.js';

describe('foreign text', () => {
  it.each([
    ['a\nb', 'a b'],
    ['\u001b[2Jgone', '[2Jgone'],
    ['\u202egpj.exe', 'gpj.exe'],
    ['a\u0000\u009b\u2028b', 'a b'],
    ['plain ä 😀', 'plain ä 😀'],
  ])('%j becomes %j', (text, plain) => {
    expect(plainText(text)).toBe(plain);
  });

  it('is cut between characters', () => {
    expect(clipText('😀😀😀', 2)).toBe('😀…');
    expect(clipText('abc', 3)).toBe('abc');
    expect(clipText('abc', 0)).toBe('');
  });

  it('ids are told apart by their end when they are UUIDs', () => {
    expect(shortId('01a22e2f-7bbc-7000-800b-ec6cfaa59cbd')).toBe('…faa59cbd');
    expect(shortId('order-17')).toBe('order-17');
  });
});

describe('a progress bar', () => {
  it.each([
    [undefined, '[----]     '],
    [0, '[----]   0%'],
    [0.5, '[##--]  50%'],
    [0.999, '[####]  99%'],
    [1, '[####] 100%'],
    [7, '[####] 100%'],
    [-1, '[----]   0%'],
  ])('of %s is %j', (fraction, bar) => {
    expect(progressBar(fraction, 4)).toBe(bar);
  });

  it('says 100% only when it is done', () => {
    expect(percentage(0.9999999)).toBe(' 99%');
  });
});

describe('a table', () => {
  const columns = [{ title: 'A' }, { title: 'N', align: 'right' as const }, { title: 'TEXT' }];

  it('is as wide as its content and has no trailing blanks', () => {
    expect(
      renderTable(
        columns,
        [
          ['x', '10', 'some text'],
          ['long', '9', ''],
        ],
        0,
      ),
    ).toEqual(['A      N  TEXT', 'x     10  some text', 'long   9']);
  });

  it('cuts the last column at the edge of the terminal', () => {
    const [, row = ''] = renderTable(columns, [['x', '1', 'y'.repeat(100)]], 30);
    expect(row).toHaveLength(30);
    expect(row.endsWith('…')).toBe(true);
  });

  it('measures before it paints', () => {
    const cell = { text: 'x', paint: (text: string) => colourStyle('red', text) };
    const [, row] = renderTable([{ title: 'AAA' }, { title: 'B' }], [[cell, 'b']], 0);
    expect(row).toBe('\u001b[31mx\u001b[39m    b');
  });

  it('cannot be broken by a cell', () => {
    expect(renderTable([{ title: 'A' }], [['a\nb']], 0)).toEqual(['A', 'a b']);
  });
});

describe('colour', () => {
  it.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
    [false, { FORCE_COLOR: '1' }, true],
    [false, { FORCE_COLOR: '0' }, false],
    [true, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  ])('on a terminal: %s, with %j: %s', (isTerminal, env, coloured) => {
    expect(chooseStyle(isTerminal, env)).toBe(coloured ? colourStyle : plainStyle);
  });
});

function event(
  type: string,
  payload: object,
  fields: Partial<Pick<Event, 'fromStatus' | 'toStatus' | 'inferred'>> = {},
): Event {
  return create(EventSchema, { type, payloadJson: JSON.stringify(payload), eventNumber: 3n, ...fields });
}

describe('an event as a line', () => {
  it.each([
    [event('task.progress', { progress: 0.4, message: 'four\nof ten' }), /task\.progress +40% {2}four of ten$/],
    [event('task.output', { output: { a: [1] } }), /task\.output +\{"a":\[1\]\}$/],
    [
      { ...event('task.output', {}), payloadJson: '{"output": [\n  1e400,\t12345678901234567890]}' },
      /task\.output +\[ 1e400, 12345678901234567890\]$/,
    ],
    [
      { ...event('task.output', {}), payloadJson: `{"output":${'['.repeat(20_000)}1${']'.repeat(20_000)}}` },
      /task\.output +\[{159}…$/,
    ],
    [event('task.blocked', { reason: 'tea' }), /task\.blocked +tea$/],
    [event('task.failed', { error: { code: 'odd', message: 'm' } }), /task\.failed +odd: m$/],
    [event('reeve.task.claimed', { worker: 'w-1' }), /reeve\.task\.claimed +by w-1$/],
    [event('task.new', 'no object' as unknown as object), /task\.new$/],
    [event('task.started', {}, { inferred: true }), /task\.started +\(inferred\)$/],
    [
      event('task.completed', {}, { fromStatus: TaskStatus.RUNNING, toStatus: TaskStatus.COMPLETED }),
      /task\.completed +running → completed$/,
    ],
  ])('%#', (given, line) => {
    expect(eventLine(given, plainStyle)).toMatch(/^ {3}3 {2}/);
    expect(eventLine(given, plainStyle)).toMatch(line);
  });
});

describe('the live line', () => {
  const history = [
    event('task.submitted', {}, { toStatus: TaskStatus.QUEUED }),
    event('reeve.task.claimed', { worker: 'w-1' }, { toStatus: TaskStatus.RUNNING }),
    event('task.progress', { progress: 0.5, message: 'half way' }),
    event('task.output', { output: 1 }),
  ];
  const at = (events: readonly Event[]) => events.reduce(foldView, emptyView);
  const line = (events: readonly Event[], width = 0) =>
    liveLine(at(events), { style: plainStyle, width, maxAttempts: 3 });

  it('says who does what, and how far it is', () => {
    expect(line(history)).toBe('running  w-1  attempt 1/3  [############------------]  50%  1 output  half way');
    expect(line(history.slice(0, 1))).toBe('queued  ');
  });

  it('fits the terminal', () => {
    expect(line(history, 40).length).toBeLessThanOrEqual(40);
  });

  it('knows a block, its end, and a cancel', () => {
    const blocked = [...history, event('task.blocked', { reason: 'tea' })];
    expect(line(blocked)).toContain('blocked: tea');
    expect(line([...blocked, event('task.started', {})])).not.toContain('tea');
    expect(line([...blocked, event('task.cancel.requested', {})])).toContain('cancel requested');
  });

  it('counts attempts as the service does', () => {
    const lost = event(
      'reeve.task.retry_scheduled',
      { attempt_given_back: false },
      { toStatus: TaskStatus.RETRY_WAIT },
    );
    const back = event('reeve.task.retry_scheduled', { attempt_given_back: true }, { toStatus: TaskStatus.RETRY_WAIT });
    const held = event('reeve.task.suspended', { by_holder: true }, { toStatus: TaskStatus.SUSPENDED });
    const claim = event('reeve.task.claimed', { worker: 'w-2' }, { toStatus: TaskStatus.RUNNING });
    expect(at([...history, lost, claim])).toMatchObject({ attempt: 2, worker: 'w-2', fraction: undefined });
    expect(at([...history, back, claim]).attempt).toBe(1);
    expect(at([...history, held]).attempt).toBe(0);
    expect(at([...history, event('reeve.task.generation_started', {}, { toStatus: TaskStatus.QUEUED })])).toEqual({
      ...emptyView,
      status: TaskStatus.QUEUED,
    });
  });
});

describe('a task as a card', () => {
  it('shows what is set and nothing else', () => {
    const task = create(TaskSchema, {
      taskId: 't-1',
      status: TaskStatus.FAILED,
      attempt: 2,
      maxAttempts: 3,
      exitCode: 0,
      error: { code: 'odd', message: 'it is\nodd' },
      errorDetail: 'line 1\nline 2\n',
      createTime: timestampFromMs(1_000),
      startTime: timestampFromMs(2_000),
      finishTime: timestampFromMs(3_500),
    });
    const lines = taskCard(task, 61_000, plainStyle);
    const text = lines.join('\n');
    expect(text).toMatch(/^task +t-1$/m);
    expect(text).toMatch(/^status +failed, attempt 2 of 3$/m);
    expect(text).toMatch(/^error +odd: it is odd$/m);
    expect(text).toMatch(/^exit code +0$/m);
    expect(text).toMatch(/^created +1970-01-01T00:00:01\.000Z \(1m00s ago\)$/m);
    expect(text).toMatch(/^took +1\.5s$/m);
    expect(text).toMatch(/^error detail\n {2}line 1\n {2}line 2/m);
    expect(text).not.toMatch(/worker|progress|cancellation|priority/);
  });
});
