/**
 * `reeve suspend`: hold a task until it is resumed.
 */
import type { Command } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { ConflictSchema, TransitionResponseSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { enumWord, integerBetween } from '../options/argument-parsers.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { messageJson } from '../render/message-json.js';

interface SuspendOptions extends ActorOptions {
  readonly key?: string;
  readonly requestKey?: string;
  readonly generation?: string;
  readonly revision?: number;
  readonly reason?: string;
  readonly reasonCode: string;
}

export function addSuspend(program: Command, host: CommandHost): void {
  const command = program
    .command('suspend')
    .summary('hold a task')
    .description(
      'Holds a task until it is resumed. A running task is taken from its worker, which is told to stop; its attempt ' +
        'is spent. Refused once a cancel is pending. --json prints a TransitionResponse message.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--request-key <key>', 'names this request, for a safe repetition; made unless given')
    .option('--generation <id>', 'only if this generation is the current one')
    .option('--revision <n>', 'only if the task has this revision', integerBetween(1, Number.MAX_SAFE_INTEGER))
    .option('--reason <text>', 'why, for the history')
    .option(
      '--reason-code <code>',
      'why, for programs: app.<word>.<word>, or one that callers may use',
      'run.suspended.operator',
    );
  addActorOption(command);
  onConnection<SuspendOptions>(command, host, async (connection, options, [given]) => {
    const { terminal } = host;
    const { generation, revision, reasonCode, reason = '' } = options;
    const taskId = await resolveTaskId(connection, taskNameOf(given, options));
    const request = {
      taskId,
      idempotencyKey: options.requestKey ?? uuidV7(),
      cause: { actor: operatorOf(options), source: 'cli', reason: { code: reasonCode, summary: reason } },
      intent: { case: 'suspend' as const, value: {} },
      ...(generation !== undefined && { generationId: generation }),
      ...(revision !== undefined && { expectedRevision: BigInt(revision) }),
    };
    const answer = await connection.call((call) => connection.tasks.transition(request, call));
    if (options.json) terminal.line(messageJson(TransitionResponseSchema, answer));
    if (!answer.applied) {
      terminal.note(`reeve: the guard on ${enumWord(ConflictSchema, answer.conflict)} does not hold`);
      return EXIT.refused;
    }
    if (!options.json) {
      terminal.line(`task    ${taskId}`);
      terminal.line(`answer  suspended${answer.replayed ? ' (replayed)' : ''}`);
      if (answer.task !== undefined) terminal.line(`status  ${enumWord(TaskStatusSchema, answer.task.status)}`);
    }
    return EXIT.ok;
  });
}
