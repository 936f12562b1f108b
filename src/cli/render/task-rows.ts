/**
 * Many tasks as a table: what a person scans for.
 */
import { type Task, TaskStatus, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { enumWord } from '../options/argument-parsers.js';
import { fromNow } from './moment.js';
import { percentage } from './progress-bar.js';
import { type Style, tintOfStatus } from './style.js';
import { type Cell, type Column, renderTable } from './table.js';

const COLUMNS: readonly Column[] = [
  { title: 'TASK', maxWidth: 128 },
  { title: 'STATUS' },
  { title: 'KIND', maxWidth: 24 },
  { title: 'QUEUE', maxWidth: 24 },
  { title: 'ATTEMPT', align: 'right' },
  { title: 'CREATED', align: 'right' },
  { title: 'DETAIL', maxWidth: 80 },
];

export function taskRows(tasks: readonly Task[], nowMs: number, style: Style, width: number): readonly string[] {
  return renderTable(
    COLUMNS,
    tasks.map((task) => [
      task.taskId,
      statusCell(task, style),
      task.application?.actionKind ?? '',
      task.queue,
      `${task.attempt}/${task.maxAttempts}`,
      fromNow(task.createTime, nowMs),
      detailOf(task),
    ]),
    width,
  );
}

export function statusCell(task: Task, style: Style): Cell {
  return {
    text: enumWord(TaskStatusSchema, task.status),
    paint: (text) => style(tintOfStatus(task.status), text),
  };
}

function detailOf(task: Task): string {
  const { lease, phase, error, reason } = task;
  if (task.status === TaskStatus.RUNNING) {
    const parts = [percentage(phase?.progress).trim(), lease?.workerName ?? '', phase?.message ?? ''];
    return parts.filter((part) => part !== '').join(' ');
  }
  if (error !== undefined) return `${error.code}: ${error.message}`;
  return reason?.code ?? '';
}
