/**
 * Shows the events of many tasks as they come, until it is interrupted: a line per event with its task in front,
 * WatchResponse messages as JSON lines for machines.
 */
import { WatchResponseSchema } from '../../gen/reeve/v1/task_service_pb.js';
import type { Connection } from '../connection.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { eventLine } from '../render/event-line.js';
import { messageJson } from '../render/message-json.js';
import { plainText } from '../render/plain-text.js';
import type { Terminal } from '../terminal.js';
import { follow, type WatchScope } from './follow-task.js';
import type { ShowOptions } from './show-task.js';

/** Throws ReeveError. */
export async function showScope(
  connection: Connection,
  terminal: Terminal,
  scope: WatchScope,
  options: ShowOptions,
): Promise<ExitCode> {
  const onInterruption = (reason: string): void =>
    terminal.note(
      reason === 'CURSOR_EXPIRED'
        ? 'reeve: events between were purged; going on with what is kept …'
        : `reeve: ${reason}: the stream broke; following again …`,
    );
  for await (const response of follow(connection, scope, { ...options, onInterruption })) {
    if (options.json) terminal.line(messageJson(WatchResponseSchema, response));
    else if (response.item.case === 'event') {
      const { value: event } = response.item;
      terminal.line(`${plainText(event.taskId)}  ${eventLine(event, terminal.style)}`);
    }
  }
  return EXIT.ok;
}
