/**
 * What came of it all: a table of the workers, the sums, and what was wrong.
 */
import { formatDuration } from '../options/duration.js';
import { shortId } from '../render/plain-text.js';
import { renderTable } from '../render/table.js';
import { type Checked, claimants } from './demo-check.js';
import { COUNT_KIND } from './demo-tasks.js';
import type { FileCount } from './source-files.js';

export function summaryLines(checked: readonly Checked[], width: number): readonly string[] {
  const counts = checked.flatMap(({ task }) => (isFileCount(task.result) ? [task.result] : []));
  const special = checked.filter(({ task }) => task.kind !== COUNT_KIND);
  const events = checked.reduce((sum, { task }) => sum + task.lastEventNumber, 0);
  const sum = (of: (count: FileCount) => number) => counts.reduce((total, count) => total + of(count), 0);
  return [
    ...renderTable(
      [{ title: 'WORKER' }, { title: 'CLAIMS', align: 'right' }, { title: 'FINISHED', align: 'right' }],
      workerRows(checked),
      width,
    ),
    '',
    ...renderTable(
      [
        { title: 'TASK' },
        { title: 'KEY' },
        { title: 'STATUS' },
        { title: 'ATTEMPTS', align: 'right' },
        { title: 'EVENTS', align: 'right' },
        { title: 'TOOK', align: 'right' },
        { title: 'REASON' },
      ],
      special.map(({ task }) => [
        shortId(task.id),
        task.key,
        task.status,
        String(task.attempt),
        String(task.lastEventNumber),
        task.startTime && task.finishTime ? formatDuration(task.finishTime.getTime() - task.startTime.getTime()) : '',
        task.reason?.code ?? '',
      ]),
      width,
    ),
    '',
    `${checked.length} tasks, ${events} events; ${counts.length} files with ${sum(({ lines }) => lines)} lines, ` +
      `${sum(({ words }) => words)} words, ${sum(({ bytes }) => bytes)} bytes`,
  ];
}

function workerRows(checked: readonly Checked[]): readonly (readonly string[])[] {
  const claims = new Map<string, number>();
  const finished = new Map<string, number>();
  const add = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const { task, events } of checked) {
    const workers = claimants(events);
    for (const worker of workers) add(claims, worker);
    const last = workers.at(-1);
    if (last !== undefined && task.status === 'completed') add(finished, last);
  }
  return [...claims.keys()].sort().map((name) => [name, String(claims.get(name)), String(finished.get(name) ?? 0)]);
}

function isFileCount(value: unknown): value is FileCount {
  return typeof value === 'object' && value !== null && 'sha256' in value && 'lines' in value;
}
