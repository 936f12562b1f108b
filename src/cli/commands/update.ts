/**
 * `reeve update`: change how a live task is treated.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { ConflictSchema, UpdatePolicyResponseSchema } from '../../gen/reeve/v1/task_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { collectList, enumWord, integerBetween } from '../options/argument-parsers.js';
import { addChangeablePolicyOptions, type PolicyOptions, policyOf } from '../options/policy-options.js';
import { KEY_FLAG, KEY_HELP, resolveTaskId, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { messageJson } from '../render/message-json.js';
import { taskCard } from '../render/task-card.js';
import { UsageError } from '../usage-error.js';

/** The flag's words, without the dashes, and their fields. */
const CLEARABLE: ReadonlyMap<string, string> = new Map([
  ['priority', 'priority'],
  ['labels', 'labels'],
  ['description', 'description'],
  ['timeout', 'timeout'],
  ['start-by', 'start_by'],
  ['not-before', 'not_before'],
  ['attempt-timeout', 'attempt_timeout'],
  ['progress-timeout', 'progress_timeout'],
  ['retry', 'retry'],
  ['retention', 'retention'],
]);

const FIELD_OF: Readonly<Record<string, string>> = {
  startBy: 'start_by',
  notBefore: 'not_before',
  attemptTimeout: 'attempt_timeout',
  progressTimeout: 'progress_timeout',
};

interface UpdateOptions extends ActorOptions, PolicyOptions {
  readonly key?: string;
  readonly requestKey?: string;
  readonly generation?: string;
  readonly revision?: number;
  readonly clear?: readonly string[];
}

export function addUpdate(program: Command, host: CommandHost): void {
  const command = program
    .command('update')
    .summary('change how a task is treated')
    .description(
      'Changes the policy of a task that is not over: what is given, and nothing else. Its timers and its place in ' +
        'the queue follow at once. Labels and the retry settings change as a whole. --json prints an ' +
        'UpdatePolicyResponse message.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--request-key <key>', 'names this request, for a safe repetition; made unless given')
    .option('--generation <id>', 'only if this generation is the current one')
    .option('--revision <n>', 'only if the task has this revision', integerBetween(1, Number.MAX_SAFE_INTEGER))
    .option('--clear <field>', `back to its default; repeatable: ${[...CLEARABLE.keys()].join(', ')}`, collectFields);
  addActorOption(command);
  addChangeablePolicyOptions(command);
  onConnection<UpdateOptions>(command, host, async (connection, options, [given]) => {
    const { terminal } = host;
    const { clear = [], generation, revision } = options;
    const policy = policyOf(options) ?? {};
    const set = Object.keys(policy).map((name) => FIELD_OF[name] ?? name);
    const paths = [...set, ...clear];
    if (paths.length === 0) throw new UsageError('say what to change');
    const taskId = await resolveTaskId(connection, taskNameOf(given, options));
    const request = {
      taskId,
      idempotencyKey: options.requestKey ?? uuidV7(),
      policy,
      updateMask: { paths },
      cause: { actor: operatorOf(options), source: 'cli' },
      ...(generation !== undefined && { generationId: generation }),
      ...(revision !== undefined && { expectedRevision: BigInt(revision) }),
    };
    const answer = await connection.call((call) => connection.tasks.updatePolicy(request, call));
    if (options.json) terminal.line(messageJson(UpdatePolicyResponseSchema, answer));
    if (!answer.applied) {
      terminal.note(`reeve: the guard on ${enumWord(ConflictSchema, answer.conflict)} does not hold`);
      return EXIT.refused;
    }
    if (!options.json) {
      terminal.line(`changed   ${paths.join(', ')}${answer.replayed ? ' (replayed)' : ''}`);
      if (answer.task !== undefined) {
        for (const line of taskCard(answer.task, Date.now(), terminal.style)) terminal.line(line);
      }
    }
    return EXIT.ok;
  });
}

function collectFields(text: string, previous: readonly string[] | undefined): readonly string[] {
  const fields = collectList(text, undefined).map((word) => {
    const field = CLEARABLE.get(word.replaceAll('_', '-'));
    if (field === undefined) throw new InvalidArgumentError(`One of: ${[...CLEARABLE.keys()].join(', ')}.`);
    return field;
  });
  return [...(previous ?? []), ...fields];
}
