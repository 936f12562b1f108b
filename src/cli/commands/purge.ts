/**
 * `reeve purge`: take finished tasks away, step by step until nothing that fits is left.
 */
import type { Command } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { PurgeResponseSchema } from '../../gen/reeve/v1/admin_service_pb.js';
import { type TaskStatus, TaskStatusSchema } from '../../gen/reeve/v1/task_pb.js';
import { msToDuration } from '../../sdk/transport/time.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { collectEnum } from '../options/argument-parsers.js';
import { parseDuration } from '../options/duration.js';
import { messageJson } from '../render/message-json.js';

interface PurgeOptions {
  readonly olderThan: number;
  readonly status?: readonly TaskStatus[];
  readonly queue?: string;
  readonly dryRun?: boolean;
  readonly reason: string;
}

export function addPurge(program: Command, host: CommandHost): void {
  const command = program
    .command('purge')
    .summary('take finished tasks away')
    .description(
      'Takes finished tasks away with their histories; their keys and ids stay taken for ever. A task that a live ' +
        'parent, child or waiter needs is kept. Of the namespace given with --namespace; `*` means all. --json prints ' +
        'one PurgeResponse message per step.',
    )
    .requiredOption(
      '--older-than <duration>',
      'finished at least so long ago; 0 means all that are finished',
      parseDuration,
    )
    .requiredOption('--reason <text>', 'why, for the log')
    .option(
      '--status <word>',
      'only those that ended so; repeatable: completed, failed, timed_out, cancelled, skipped',
      collectEnum(TaskStatusSchema),
    )
    .option('--queue <name>', 'only of this queue')
    .option('--dry-run', 'count what would go, and take nothing away');
  onConnection<PurgeOptions>(command, host, async (connection, options) => {
    const { terminal } = host;
    const { olderThan, status = [], queue = '', dryRun: validateOnly = false, reason, namespace } = options;
    const scope = { olderThan: msToDuration(olderThan), statuses: [...status], namespace, queue, validateOnly, reason };
    let purged = 0n;
    let kept = 0n;
    let pageToken = '';
    const sums = () =>
      `${validateOnly ? 'would purge' : 'purged'} ${String(purged)}, kept ${String(kept)} that are needed`;
    do {
      const step = { ...scope, pageToken, idempotencyKey: uuidV7() };
      const answer = await connection.call((call) => connection.admin.purge(step, call));
      purged += answer.purged;
      kept += answer.kept;
      pageToken = answer.nextPageToken;
      if (options.json) terminal.line(messageJson(PurgeResponseSchema, answer));
      else if (terminal.live) terminal.redraw(sums());
    } while (pageToken !== '');
    if (!options.json) terminal.line(sums());
    return EXIT.ok;
  });
}
