/**
 * `reeve watch`: follow one task to its end, or many for as long as one looks.
 */
import type { Command } from 'commander';
import { type CommandHost, onConnection } from '../command-host.js';
import type { WatchScope } from '../follow/follow-task.js';
import { showScope } from '../follow/show-scope.js';
import { showTask } from '../follow/show-task.js';
import type { GlobalOptions } from '../command-host.js';
import { UsageError } from '../usage-error.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';

interface WatchOptions {
  readonly key?: string;
  readonly subtree?: string;
  readonly queue?: string;
  readonly everything?: boolean;
  readonly fromNow?: boolean;
  readonly aep?: boolean;
}

export function addWatch(program: Command, host: CommandHost): void {
  const command = program
    .command('watch')
    .summary('follow a task to its end, or many')
    .description(
      'Follows a task until it ends: a live line at a terminal, a line per event elsewhere. The exit code is the ' +
        "task's outcome. Many tasks are followed until it is interrupted, a line per event. --json prints WatchResponse " +
        'messages, of one task at last a GetResponse.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--subtree <task-id>', 'this task and all below it')
    .option('--queue <name>', 'all tasks of this queue')
    .option('--everything', 'all tasks of the namespace')
    .option('--from-now', 'leave out what has happened already')
    .option('--aep', 'only what AEP consumers see');
  onConnection<WatchOptions>(command, host, async (connection, options, [taskId]) => {
    const shown = { json: options.json, fromNow: options.fromNow === true, aepOnly: options.aep === true };
    const scope = scopeOf(options);
    if (scope !== null) {
      if (taskId !== undefined || options.key !== undefined) throw new UsageError('name one task, or say which many');
      return showScope(connection, host.terminal, scope, shown);
    }
    if (taskId === undefined && options.key === undefined) {
      throw new UsageError('say what to watch: a task id, --key, --subtree, --queue or --everything');
    }
    const id = await resolveTaskId(connection, taskNameOf(taskId, options));
    return showTask(connection, host.terminal, id, shown);
  });
}

/** Null: one task is meant. Throws UsageError. */
function scopeOf({ subtree, queue, everything, namespace }: WatchOptions & GlobalOptions): WatchScope | null {
  const scopes: WatchScope[] = [];
  if (subtree !== undefined) scopes.push({ case: 'subtreeOf', value: subtree });
  if (queue !== undefined) scopes.push({ case: 'queue', value: { namespace, queue } });
  if (everything === true) scopes.push({ case: 'namespace', value: namespace });
  const [scope = null, second] = scopes;
  if (second !== undefined) throw new UsageError('say one of --subtree, --queue and --everything');
  return scope;
}
