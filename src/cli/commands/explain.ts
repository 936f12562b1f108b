/**
 * `reeve explain`: why a task is not running, or not ending, and what happens next by itself.
 */
import type { Command } from 'commander';
import { TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import {
  type Blocker,
  BlockerKindSchema,
  ExplainResponseSchema,
  TimerKindSchema,
} from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { enumWord } from '../options/argument-parsers.js';
import { KEY_FLAG, KEY_HELP, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { messageJson } from '../render/message-json.js';
import { fromNow } from '../render/moment.js';
import { plainText } from '../render/plain-text.js';

interface ExplainOptions {
  readonly key?: string;
}

export function addExplain(program: Command, host: CommandHost): void {
  const command = program
    .command('explain')
    .summary('tell why a task is not running, or not ending')
    .description(
      'Tells what stands between a task and its next move, who holds it, and what happens next by itself. ' +
        '--json prints an ExplainResponse message.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP);
  onConnection<ExplainOptions>(command, host, async (connection, options, [taskId]) => {
    const name = taskNameOf(taskId, options);
    const answer = await connection.call((call) => connection.tasks.explain(name, call));
    const { terminal } = host;
    if (options.json) {
      terminal.line(messageJson(ExplainResponseSchema, answer));
      return EXIT.ok;
    }
    const { task, blockers, nextTimer } = answer;
    const now = Date.now();
    if (task !== undefined) {
      terminal.line(`task     ${plainText(task.taskId)}`);
      terminal.line(`status   ${enumWord(TaskStatusSchema, task.status)}`);
    }
    for (const blocker of blockers) terminal.line(`because  ${because(blocker, now)}`);
    const next = nextTimer && `${enumWord(TimerKindSchema, nextTimer.kind)}, ${fromNow(nextTimer.dueTime, now)}`;
    terminal.line(`next     ${next ?? 'nothing by itself'}`);
    return EXIT.ok;
  });
}

function because({ kind, detail, holders, holderCount, until }: Blocker, now: number): string {
  const parts = [`${enumWord(BlockerKindSchema, kind)}: ${plainText(detail)}`];
  const names = holders.map(({ taskId, workerName, sessionAlias }) =>
    plainText(taskId === '' ? `${workerName} (${sessionAlias})` : taskId),
  );
  const more = holderCount - holders.length;
  if (names.length > 0) parts.push(`held by ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`);
  if (until !== undefined) parts.push(`until ${fromNow(until, now)}`);
  return parts.join('; ');
}
