/**
 * Shows a task until it ends, for `watch` and `submit --wait`: a live line with outputs above it at a terminal, a line
 * per event elsewhere, WatchResponse messages as JSON lines for machines. The exit code is the task's outcome.
 */
import type { Event } from '../../gen/reeve/v1/event_pb.js';
import { type Task, TaskView as View } from '../../gen/reeve/v1/task_pb.js';
import { GetResponseSchema, WatchResponseSchema } from '../../gen/reeve/v1/task_service_pb.js';
import type { Connection } from '../connection.js';
import { type ExitCode, exitForStatus } from '../exit-codes.js';
import { eventContent, eventLine } from '../render/event-line.js';
import { messageJson } from '../render/message-json.js';
import { clockTime } from '../render/moment.js';
import { taskCard } from '../render/task-card.js';
import type { Terminal } from '../terminal.js';
import { followTask, type FollowOptions } from './follow-task.js';
import { liveLine } from './live-line.js';
import { emptyView, foldView } from './task-view.js';

/** Events that stay on the screen while the live line moves on. */
const KEPT_ABOVE = new Set([
  'task.output',
  'reeve.task.retry_scheduled',
  'reeve.task.suspended',
  'reeve.task.resumed',
  'reeve.task.generation_started',
  'task.cancel.requested',
  'reeve.task.cancel_hastened',
  'reeve.task.cancel_delivered',
  'reeve.task.cancel_acknowledged',
]);

export interface ShowOptions extends FollowOptions {
  readonly json: boolean;
}

/** Throws ReeveError. */
export async function showTask(
  connection: Connection,
  terminal: Terminal,
  taskId: string,
  options: ShowOptions,
): Promise<ExitCode> {
  const show = options.json
    ? undefined
    : terminal.live
      ? liveDisplay(connection, terminal, taskId)
      : lineDisplay(terminal);
  const onInterruption = (reason: string) => terminal.note(`reeve: ${reason}: the stream broke; following again …`);
  for await (const response of followTask(connection, taskId, { ...options, onInterruption })) {
    if (show === undefined) terminal.line(messageJson(WatchResponseSchema, response));
    else if (response.item.case === 'event') show(response.item.value);
  }
  const answer = await connection.call((call) => connection.tasks.get({ taskId, view: View.FULL }, call));
  if (options.json) terminal.line(messageJson(GetResponseSchema, answer));
  else if (answer.task !== undefined) showEnd(terminal, answer.task);
  return answer.task === undefined ? exitForStatus(0) : exitForStatus(answer.task.status);
}

function showEnd(terminal: Terminal, task: Task): void {
  terminal.line('');
  for (const line of taskCard(task, Date.now(), terminal.style)) terminal.line(line);
}

function lineDisplay(terminal: Terminal): (event: Event) => void {
  return (event) => terminal.line(eventLine(event, terminal.style));
}

function liveDisplay(connection: Connection, terminal: Terminal, taskId: string): (event: Event) => void {
  let view = emptyView;
  let maxAttempts = 0;
  let drawing: NodeJS.Immediate | undefined;
  const draw = () => {
    drawing = undefined;
    terminal.redraw(liveLine(view, { style: terminal.style, width: terminal.columns(), maxAttempts }));
  };
  void connection
    .call((call) => connection.tasks.get({ taskId }, call))
    .then(({ task }) => {
      maxAttempts = task?.maxAttempts ?? 0;
    })
    // A number that is missing from the display; the command itself meets the same failure.
    .catch(() => undefined);
  return (event) => {
    view = foldView(view, event);
    if (KEPT_ABOVE.has(event.type)) {
      terminal.line(`${terminal.style('dim', clockTime(event.time))}  ${event.type}  ${eventContent(event)}`.trimEnd());
    }
    // A burst of events is drawn once.
    drawing ??= setImmediate(draw);
  };
}
