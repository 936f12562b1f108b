/**
 * `reeve cancel`: ask a task to stop, and optionally wait until that has got through.
 */
import { type Command, Option } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { ReceiptKind, ReceiptKindSchema, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import {
  CancelResponseSchema,
  type CancelResponse,
  CancelState,
  CancelStateSchema,
} from '../../gen/reeve/v1/task_service_pb.js';
import { msToDuration } from '../../sdk/transport/time.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { enumNumber, enumWord, enumWords } from '../options/argument-parsers.js';
import { durationBetween, parseDuration } from '../options/duration.js';
import { KEY_FLAG, KEY_HELP, TASK_ARGUMENT, taskNameOf } from '../options/task-name.js';
import { messageJson } from '../render/message-json.js';
import type { Terminal } from '../terminal.js';

/** The service waits at most so long in one call. */
const MAX_WAIT_MS = 300_000;
const DEFAULT_WAIT_MS = 30_000;

interface CancelOptions extends ActorOptions {
  readonly key?: string;
  readonly requestId?: string;
  readonly generation?: string;
  readonly reason?: string;
  readonly reasonCode: string;
  readonly grace?: number;
  readonly wait?: ReceiptKind;
  readonly waitTimeout: number;
}

export function addCancel(program: Command, host: CommandHost): void {
  const command = program
    .command('cancel')
    .summary('ask a task to stop')
    .description(
      'Asks a task to stop. What is not running is cancelled at once; a running task ends when its worker stops, or ' +
        'when the grace passes. Exit code 8 when --wait ran out. --json prints a CancelResponse message.',
    )
    .argument(TASK_ARGUMENT)
    .option(KEY_FLAG, KEY_HELP)
    .option('--request-id <id>', 'names this request, for a safe repetition; made unless given')
    .option('--generation <id>', 'only if this generation is the current one')
    .option('--reason <text>', 'why; reaches the worker')
    .option(
      '--reason-code <code>',
      'why, for programs: app.<word>.<word>, or one that callers may use',
      'run.cancelled.user',
    )
    .option(
      '--grace <duration>',
      'enforce it after this; otherwise the worker takes as long as it takes',
      parseDuration,
    )
    .addOption(
      new Option('--wait <receipt>', `wait for: ${enumWords(ReceiptKindSchema).join(' | ')}`).argParser(
        enumNumber(ReceiptKindSchema),
      ),
    )
    .addOption(
      new Option('--wait-timeout <duration>', 'how long to wait, at most 5m')
        .argParser(durationBetween(0, MAX_WAIT_MS, 'at most 5m'))
        .default(DEFAULT_WAIT_MS, '30s'),
    );
  addActorOption(command);
  onConnection<CancelOptions>(command, host, async (connection, options, [taskId]) => {
    const waitMs = options.wait === undefined ? 0 : options.waitTimeout;
    const request = {
      ...taskNameOf(taskId, options),
      requestId: options.requestId ?? uuidV7(),
      reason: { code: options.reasonCode, summary: options.reason ?? '' },
      actor: operatorOf(options),
      ...(options.generation !== undefined && { generationId: options.generation }),
      ...(options.grace !== undefined && { grace: msToDuration(options.grace) }),
      ...(options.wait !== undefined && { waitFor: options.wait, waitTimeout: msToDuration(waitMs) }),
    };
    const answer = await connection.call((call) => connection.tasks.cancel(request, call), waitMs);
    if (options.json) host.terminal.line(messageJson(CancelResponseSchema, answer));
    else showAnswer(host.terminal, answer);
    return exitFor(answer, options.wait);
  });
}

function exitFor({ receipts, state }: CancelResponse, wait: ReceiptKind | undefined): ExitCode {
  if (wait === undefined || state !== CancelState.CANCELLATION_REQUESTED) return EXIT.ok;
  const settled = receipts?.settledTime;
  const acknowledged = receipts?.acknowledgedTime ?? settled;
  const delivered = receipts?.deliveredTime ?? acknowledged;
  const inTime = wait === ReceiptKind.SETTLED ? settled : wait === ReceiptKind.ACKNOWLEDGED ? acknowledged : delivered;
  return inTime === undefined ? EXIT.stillGoing : EXIT.ok;
}

function showAnswer(terminal: Terminal, answer: CancelResponse): void {
  const { task, receipts } = answer;
  terminal.line(`task      ${task?.taskId ?? ''}`);
  terminal.line(`answer    ${enumWord(CancelStateSchema, answer.state)}${answer.replayed ? ' (replayed)' : ''}`);
  if (task !== undefined) terminal.line(`status    ${enumWord(TaskStatusSchema, task.status)}`);
  const told = [
    ['delivered', receipts?.deliveredTime],
    ['acknowledged', receipts?.acknowledgedTime],
    ['settled', receipts?.settledTime],
  ] as const;
  const words = told.filter(([, time]) => time !== undefined).map(([word]) => word);
  if (words.length > 0) terminal.line(`receipts  ${words.join(', ')}`);
}
