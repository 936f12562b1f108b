/**
 * `reeve get`: one task as the service has it now.
 */
import type { Command } from 'commander';
import { TaskSchema, TaskView } from '../../gen/reeve/v1/task_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { KEY_FLAG, KEY_HELP, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { messageJson } from '../render/message-json.js';
import { taskCard } from '../render/task-card.js';

interface GetOptions {
  readonly key?: string;
}

export function addGet(program: Command, host: CommandHost): void {
  const command = program
    .command('get')
    .summary('show one task')
    .description('Shows one task with its args, result and error. --json prints one Task message.')
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP);
  onConnection<GetOptions>(command, host, async (connection, options, [taskId]) => {
    const name = taskNameOf(taskId, options);
    const { task } = await connection.call((call) => connection.tasks.get({ ...name, view: TaskView.FULL }, call));
    if (task === undefined) return EXIT.internal;
    const { terminal } = host;
    if (options.json) terminal.line(messageJson(TaskSchema, task));
    else for (const line of taskCard(task, Date.now(), terminal.style)) terminal.line(line);
    return EXIT.ok;
  });
}
