/**
 * `reeve list`: tasks by description, page after page up to a limit.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, InvalidArgumentError } from 'commander';
import { type Task, TaskSchema, type TaskStatus, TaskStatusSchema, TaskView } from '../../gen/reeve/v1/task_pb.js';
import { ListOrder, type TaskFilterSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, type GlobalOptions, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import {
  collectEnum,
  collectList,
  collectPair,
  enumWords,
  integerBetween,
  parseMoment,
} from '../options/argument-parsers.js';
import { parseDuration } from '../options/duration.js';
import { messageJson } from '../render/message-json.js';
import { taskRows } from '../render/task-rows.js';

const MAX_PAGE_SIZE = 1_000;

interface ListOptions {
  readonly queue?: string;
  readonly status?: readonly TaskStatus[];
  readonly kind?: readonly string[];
  readonly label?: Readonly<Record<string, string>>;
  readonly parent?: string;
  readonly concurrencyKey?: string;
  readonly schedule?: string;
  readonly since?: Date;
  readonly before?: Date;
  readonly oldestFirst?: boolean;
  readonly limit: number;
  readonly pageToken: string;
  readonly full?: boolean;
}

export function addList(program: Command, host: CommandHost): void {
  const command = program
    .command('list')
    .summary('list tasks')
    .description("Lists tasks, newest first. --json prints one Task message per line. --namespace '*' is all of them.")
    .option('--queue <name>', 'of this queue')
    .option('--status <word>', `repeatable: ${enumWords(TaskStatusSchema).join(', ')}`, collectEnum(TaskStatusSchema))
    .option('--kind <kind>', 'of this kind; repeatable', collectList)
    .option('--label <key=value>', 'with this label; repeatable', collectPair)
    .option('--parent <task-id>', 'children of this task')
    .option('--concurrency-key <key>', 'under this key')
    .option('--schedule <id>', 'made by this schedule')
    .option('--since <moment|duration>', 'admitted since; a duration counts back from now', momentOrAgo)
    .option('--before <moment|duration>', 'admitted before', momentOrAgo)
    .option('--oldest-first', 'turn the order round')
    .option('--limit <n>', 'how many at most; 0: all', integerBetween(0, 10_000_000), 50)
    .option('--page-token <token>', 'go on where an earlier list stopped', '')
    .option('--full', 'with args and results (for --json)');
  onConnection<ListOptions>(command, host, async (connection, options) => {
    const { terminal } = host;
    const tasks: Task[] = [];
    let pageToken = options.pageToken;
    let left = options.limit === 0 ? Number.POSITIVE_INFINITY : options.limit;
    do {
      const page = await connection.call((call) =>
        connection.tasks.list(
          {
            filter: filterOf(options),
            order: options.oldestFirst ? ListOrder.OLDEST_FIRST : ListOrder.NEWEST_FIRST,
            pageSize: Math.min(MAX_PAGE_SIZE, left),
            pageToken,
            view: options.full ? TaskView.FULL : TaskView.BASIC,
          },
          call,
        ),
      );
      // Machines get each page as it comes; a table needs all rows to know its widths.
      if (options.json) for (const task of page.tasks) terminal.line(messageJson(TaskSchema, task));
      else tasks.push(...page.tasks);
      left -= page.tasks.length;
      pageToken = page.nextPageToken;
    } while (pageToken !== '' && left > 0);
    if (!options.json) {
      for (const line of taskRows(tasks, Date.now(), terminal.style, terminal.columns())) terminal.line(line);
    }
    if (pageToken !== '') terminal.note(`more: --page-token ${pageToken}`);
    return EXIT.ok;
  });
}

function filterOf(options: ListOptions & GlobalOptions): MessageInitShape<typeof TaskFilterSchema> {
  return {
    namespace: options.namespace,
    queue: options.queue ?? '',
    statuses: [...(options.status ?? [])],
    actionKinds: [...(options.kind ?? [])],
    labels: { ...options.label },
    parentTaskId: options.parent ?? '',
    concurrencyKey: options.concurrencyKey ?? '',
    scheduleId: options.schedule ?? '',
    ...(options.since !== undefined && { createdFrom: timestampFromDate(options.since) }),
    ...(options.before !== undefined && { createdBefore: timestampFromDate(options.before) }),
  };
}

/** A moment, or a duration back from now. */
function momentOrAgo(text: string): Date {
  if (text.includes('T')) return parseMoment(text);
  try {
    return new Date(Date.now() - parseDuration(text));
  } catch {
    throw new InvalidArgumentError('A moment (2026-05-01T08:00:00Z) or a duration back from now (90m).');
  }
}
