/**
 * `reeve events`: a task's history, from its admission on.
 */
import type { Command } from 'commander';
import { type Event, EventSchema } from '../../gen/reeve/v1/event_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import type { Connection } from '../connection.js';
import { EXIT } from '../exit-codes.js';
import { integerBetween } from '../options/argument-parsers.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { eventLine } from '../render/event-line.js';
import { messageJson } from '../render/message-json.js';

const PAGE_SIZE = 1_000;

interface EventsOptions {
  readonly key?: string;
  readonly after: number;
  readonly limit: number;
  readonly aep?: boolean;
}

export function addEvents(program: Command, host: CommandHost): void {
  const command = program
    .command('events')
    .summary("show a task's history")
    .description("Shows a task's history, oldest first. --json prints one Event message per line.")
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--after <number>', 'only events with a greater number', integerBetween(0, Number.MAX_SAFE_INTEGER), 0)
    .option('--limit <n>', 'how many at most; 0: all', integerBetween(0, 10_000_000), 0)
    .option('--aep', 'only what AEP consumers see');
  onConnection<EventsOptions>(command, host, async (connection, options, [taskId]) => {
    const { terminal } = host;
    const id = await resolveTaskId(connection, taskNameOf(taskId, options));
    for await (const event of history(connection, id, options)) {
      terminal.line(options.json ? messageJson(EventSchema, event) : eventLine(event, terminal.style));
    }
    return EXIT.ok;
  });
}

export interface HistoryRange {
  readonly after: number;
  /** 0: all. */
  readonly limit: number;
  readonly aep?: boolean;
}

/** Page after page. Throws ReeveError. */
export async function* history(connection: Connection, taskId: string, range: HistoryRange): AsyncGenerator<Event> {
  let afterEventNumber = BigInt(range.after);
  let left = range.limit === 0 ? Number.POSITIVE_INFINITY : range.limit;
  for (;;) {
    const request = { taskId, afterEventNumber, pageSize: Math.min(PAGE_SIZE, left), aepOnly: range.aep === true };
    const { events, hasMore } = await connection.call((call) => connection.tasks.listEvents(request, call));
    yield* events;
    left -= events.length;
    const last = events.at(-1);
    if (!hasMore || last === undefined || left <= 0) return;
    afterEventNumber = last.eventNumber;
  }
}
