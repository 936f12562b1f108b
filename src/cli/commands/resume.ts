/**
 * `reeve resume`: let a suspended task go on, or give a finished one another life under the same id.
 */
import type { Command } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { Conflict, ConflictSchema, ResumeResponseSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { showTask } from '../follow/show-task.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { enumWord, integerBetween } from '../options/argument-parsers.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { readText } from '../options/text-source.js';
import { messageJson } from '../render/message-json.js';

interface ResumeOptions extends ActorOptions {
  readonly key?: string;
  readonly requestKey?: string;
  readonly input?: string;
  readonly newGeneration?: string | true;
  readonly generation?: string;
  readonly revision?: number;
  readonly wait?: boolean;
}

export function addResume(program: Command, host: CommandHost): void {
  const command = program
    .command('resume')
    .summary('let a task go on')
    .description(
      'Lets a suspended task go on in its generation; a finished one gets a new generation under the same id. ' +
        '--json prints a ResumeResponse message.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--request-key <key>', 'names this request, for a safe repetition; made unless given')
    .option('--input <json|@file|->', 'input for the next claim, a JSON value')
    .option('--new-generation [id]', 'open a new generation even of a suspended task; its id is made unless given')
    .option('--generation <id>', 'only if this generation is the current one')
    .option('--revision <n>', 'only if the task has this revision', integerBetween(1, Number.MAX_SAFE_INTEGER))
    .option('--wait', 'follow the task to its end; the exit code is its outcome');
  addActorOption(command);
  onConnection<ResumeOptions>(command, host, async (connection, options, [given]) => {
    const { terminal } = host;
    const { input, newGeneration, generation, revision } = options;
    const inputJson = input === undefined ? '' : await readText(input, terminal.stdin);
    const taskId = await resolveTaskId(connection, taskNameOf(given, options));
    const request = {
      taskId,
      idempotencyKey: options.requestKey ?? uuidV7(),
      inputJson,
      cause: { actor: operatorOf(options), source: 'cli' },
      ...(newGeneration !== undefined && { newGenerationId: newGeneration === true ? uuidV7() : newGeneration }),
      ...(generation !== undefined && { generationId: generation }),
      ...(revision !== undefined && { expectedRevision: BigInt(revision) }),
    };
    const answer = await connection.call((call) => connection.tasks.resume(request, call));
    const { task } = answer;
    const applied = answer.applied || answer.replayed;
    if (options.json) {
      terminal.line(messageJson(ResumeResponseSchema, answer));
    } else {
      terminal.line(`task        ${taskId}`);
      terminal.line(`answer      ${applied ? 'resumed' : 'not resumed'}${answer.replayed ? ' (replayed)' : ''}`);
      if (task !== undefined) terminal.line(`status      ${enumWord(TaskStatusSchema, task.status)}`);
      if (task?.generation !== undefined)
        terminal.line(`generation  ${task.generation.number} (${task.generation.id})`);
    }
    if (!applied) {
      if (answer.conflict !== Conflict.NONE) {
        terminal.note(`reeve: the guard on ${enumWord(ConflictSchema, answer.conflict)} does not hold`);
      }
      return EXIT.refused;
    }
    return options.wait ? showTask(connection, terminal, taskId, { json: options.json }) : EXIT.ok;
  });
}
