/**
 * `reeve submit`: admit one application. A key that is not given is made, and shown, so that the same submission can
 * be repeated whatever becomes of the answer.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { ExecutionTarget, ExecutionTargetSchema, ParentAttachment } from '../../gen/reeve/v1/task_pb.js';
import {
  type SubmitRequestSchema,
  type SubmitResponse,
  SubmitOutcome,
  SubmitResponseSchema,
} from '../../gen/reeve/v1/task_service_pb.js';
import { ReeveError, toReeveError } from '../../sdk/transport/reeve-error.js';
import { type CommandHost, type GlobalOptions, onConnection } from '../command-host.js';
import type { Connection } from '../connection.js';
import { EXIT, exitForGrpc } from '../exit-codes.js';
import { showTask } from '../follow/show-task.js';
import { addActorOption, type ActorOptions, producerOf } from '../options/actor-option.js';
import { collectList, enumNumber, enumWords } from '../options/argument-parsers.js';
import { addPolicyOptions, policyOf, type PolicyOptions } from '../options/policy-options.js';
import { readText } from '../options/text-source.js';
import { messageJson } from '../render/message-json.js';
import type { Terminal } from '../terminal.js';

interface SubmitOptions extends PolicyOptions, ActorOptions {
  readonly args?: string;
  readonly key?: string;
  readonly queue?: string;
  readonly taskId?: string;
  readonly target: ExecutionTarget;
  readonly capability?: readonly string[];
  readonly libraryRef?: string;
  readonly libraryHash?: string;
  readonly parent?: string;
  readonly parentGeneration?: string;
  readonly detached?: boolean;
  readonly wait?: boolean;
}

export function addSubmit(program: Command, host: CommandHost): void {
  const command = program
    .command('submit')
    .summary('admit a task')
    .description(
      'Admits one application, once: the same key with the same content returns the same task. --json prints a ' +
        'SubmitResponse message, with --wait followed by what `watch --json` prints.',
    )
    .argument('<kind>', 'a registered action kind, such as agent')
    .option('--args <json|@file|->', 'the arguments, a JSON object: as text, from a file, from stdin')
    .option('--key <key>', 'names this submission for ever; made (UUIDv7) and shown unless given')
    .option('--queue <name>', 'the queue to wait in')
    .option('--task-id <id>', "the task's id; made by the service unless given")
    .addOption(
      new Option('--target <word>', enumWords(ExecutionTargetSchema).join(' | '))
        .argParser(enumNumber(ExecutionTargetSchema))
        .default(ExecutionTarget.HOST, 'host'),
    )
    .option('--capability <word>', 'what a worker must have; repeatable', collectList)
    .option('--library-ref <ref>', 'the library entry the work comes from')
    .option('--library-hash <hash>', 'its content hash, sha256:…')
    .option('--parent <task-id>', 'the parent task, followed closely unless --detached')
    .option('--parent-generation <id>', "the parent's generation; the current one unless given")
    .option('--detached', 'only remember the parent')
    .option('--wait', 'follow the task to its end; the exit code is its outcome');
  addActorOption(command);
  addPolicyOptions(command);
  onConnection<SubmitOptions>(command, host, async (connection, options, [kind = '']) => {
    const { terminal } = host;
    const key = options.key ?? uuidV7();
    const request = await requestOf(connection, kind, key, options, terminal);
    const answer = await connection
      .call((call) => connection.tasks.submit(request, call))
      .catch((error: unknown) => Promise.reject(options.key === undefined ? withKey(error, key) : toReeveError(error)));
    if (options.json) terminal.line(messageJson(SubmitResponseSchema, answer));
    else showAnswer(terminal, answer, options.key === undefined ? key : undefined);
    if (!options.wait || answer.task === undefined) return EXIT.ok;
    return showTask(connection, terminal, answer.task.taskId, { json: options.json });
  });
}

async function requestOf(
  connection: Connection,
  kind: string,
  key: string,
  options: SubmitOptions & GlobalOptions,
  terminal: Terminal,
): Promise<MessageInitShape<typeof SubmitRequestSchema>> {
  const argsJson = options.args === undefined ? '{}' : await readText(options.args, terminal.stdin);
  const policy = policyOf(options);
  const parent = options.parent === undefined ? undefined : await parentOf(connection, options.parent, options);
  return {
    idempotencyKey: key,
    actionKind: kind,
    argsForm: { case: 'argsJson', value: argsJson },
    executionTarget: options.target,
    queue: options.queue ?? '',
    namespace: options.namespace,
    taskId: options.taskId ?? '',
    requiredCapabilities: [...(options.capability ?? [])],
    ...(options.libraryRef !== undefined && { libraryRef: options.libraryRef }),
    ...(options.libraryHash !== undefined && { libraryContentHash: options.libraryHash }),
    ...((policy !== undefined || parent !== undefined) && { policy: { ...policy, ...(parent && { parent }) } }),
    actor: producerOf(options),
  };
}

/** It may have been admitted; without the key that was made for it nobody could ever tell. */
function withKey(error: unknown, key: string): ReeveError {
  const known = toReeveError(error);
  const exit = exitForGrpc(known.code);
  if (exit !== EXIT.unavailable && exit !== EXIT.internal) return known;
  const { reason, code, message, retryable, retryAfterMs } = known;
  const metadata = { ...known.metadata, idempotency_key: key };
  return new ReeveError({ reason, code, message, metadata, retryable, retryAfterMs });
}

/** An attached child names its parent's generation; a person means the current one. */
async function parentOf(connection: Connection, taskId: string, options: SubmitOptions) {
  const attachment = options.detached ? ParentAttachment.DETACHED : ParentAttachment.ATTACHED;
  if (options.detached || options.parentGeneration !== undefined) {
    return { taskId, generationId: options.parentGeneration ?? '', attachment };
  }
  const { task } = await connection.call((call) => connection.tasks.get({ taskId }, call));
  return { taskId, generationId: task?.generation?.id ?? '', attachment };
}

function showAnswer(terminal: Terminal, answer: SubmitResponse, madeKey: string | undefined): void {
  const replayed = answer.outcome === SubmitOutcome.REPLAYED;
  const purged = answer.task?.purged === true ? '; the task was purged since' : '';
  terminal.line(`task     ${answer.task?.taskId ?? ''}`);
  terminal.line(`outcome  ${replayed ? `replayed (the key was known; nothing was changed${purged})` : 'created'}`);
  if (madeKey !== undefined) terminal.line(`key      ${madeKey}`);
  if (answer.ignoredPolicyFields.length > 0) {
    terminal.note(`not applied, the task keeps its own: ${answer.ignoredPolicyFields.join(', ')}`);
  }
}
