/**
 * `reeve repair`: mend what is stored of one task, or take a payload out of its history.
 */
import { type Command, Option } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { RepairKindSchema, RepairResponseSchema } from '../../gen/reeve/v1/admin_service_pb.js';
import { TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { enumNumber, enumWord, enumWords, integerBetween } from '../options/argument-parsers.js';
import { findingRows } from '../render/finding-rows.js';
import { messageJson } from '../render/message-json.js';

/** Long histories are read whole before anything is written. */
const REPAIR_EXTRA_MS = 105_000;

interface RepairOptions {
  readonly kind: number;
  readonly reason: string;
  readonly event?: number;
  readonly dryRun?: boolean;
  readonly requestKey?: string;
}

export function addRepair(program: Command, host: CommandHost): void {
  const command = program
    .command('repair')
    .summary('mend a damaged task')
    .description(
      'Mends what is stored of a task, by an event in its history that says who did what and why. What is sound is ' +
        'left alone. `reeve verify <task-id>` tells what is wrong. --json prints a RepairResponse message.',
    )
    .argument('<task-id>')
    .addOption(
      new Option('--kind <kind>', `how: ${enumWords(RepairKindSchema).join(' | ')}`)
        .argParser(enumNumber(RepairKindSchema))
        .makeOptionMandatory(),
    )
    .requiredOption('--reason <text>', 'why; kept in the history')
    .option('--event <n>', 'redact_payload: the number of the event', integerBetween(1, Number.MAX_SAFE_INTEGER))
    .option('--dry-run', 'say what would be done, and do nothing')
    .option('--request-key <key>', 'names this request, for a safe repetition; made unless given');
  onConnection<RepairOptions>(command, host, async (connection, options, [taskId = '']) => {
    const { terminal } = host;
    const request = {
      taskId,
      kind: options.kind,
      reason: options.reason,
      eventNumber: BigInt(options.event ?? 0),
      validateOnly: options.dryRun === true,
      idempotencyKey: options.requestKey ?? uuidV7(),
    };
    const answer = await connection.call((call) => connection.admin.repair(request, call), REPAIR_EXTRA_MS);
    if (options.json) {
      terminal.line(messageJson(RepairResponseSchema, answer));
      return EXIT.ok;
    }
    const { applied, replayed, findings, task } = answer;
    if (findings.length > 0) for (const line of findingRows(findings, terminal.columns())) terminal.line(line);
    const done = applied ? 'repaired' : options.dryRun === true ? 'nothing was done (--dry-run)' : 'nothing to repair';
    terminal.line(`${done}${replayed ? ' (replayed)' : ''}`);
    terminal.line(`status    ${task === undefined ? 'damaged' : enumWord(TaskStatusSchema, task.status)}`);
    return EXIT.ok;
  });
}
