/**
 * `reeve list`: tasks by description, page after page up to a limit.
 */
import type { Command } from 'commander';
import { type Task, TaskSchema, TaskView } from '../../gen/reeve/v1/task_pb.js';
import { ListOrder } from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { integerBetween } from '../options/argument-parsers.js';
import { addFilterOptions, filterOf, type FilterOptions } from '../options/filter-options.js';
import { messageJson } from '../render/message-json.js';
import { taskRows } from '../render/task-rows.js';

const MAX_PAGE_SIZE = 1_000;

interface ListOptions extends FilterOptions {
  readonly oldestFirst?: boolean;
  readonly limit: number;
  readonly pageToken: string;
  readonly full?: boolean;
}

export function addList(program: Command, host: CommandHost): void {
  const command = program
    .command('list')
    .summary('list tasks')
    .description("Lists tasks, newest first. --json prints one Task message per line. --namespace '*' is all of them.");
  addFilterOptions(command)
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
