/**
 * `reeve watch`: follow one task to its end.
 */
import type { Command } from 'commander';
import { type CommandHost, onConnection } from '../command-host.js';
import { showTask } from '../follow/show-task.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';

interface WatchOptions {
  readonly key?: string;
  readonly fromNow?: boolean;
  readonly aep?: boolean;
}

export function addWatch(program: Command, host: CommandHost): void {
  const command = program
    .command('watch')
    .summary('follow a task to its end')
    .description(
      'Follows a task until it ends: a live line at a terminal, a line per event elsewhere. The exit code is the ' +
        "task's outcome. --json prints WatchResponse messages, at last a GetResponse.",
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--from-now', 'leave out what has happened already')
    .option('--aep', 'only what AEP consumers see');
  onConnection<WatchOptions>(command, host, async (connection, options, [taskId]) => {
    const id = await resolveTaskId(connection, taskNameOf(taskId, options));
    return showTask(connection, host.terminal, id, {
      json: options.json,
      fromNow: options.fromNow === true,
      aepOnly: options.aep === true,
    });
  });
}
