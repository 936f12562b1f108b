/**
 * `reeve workers`: who is there to do the work, and what each holds.
 */
import type { Command } from 'commander';
import { type WorkerSession, WorkerSessionSchema } from '../../gen/reeve/v1/worker_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { messageJson } from '../render/message-json.js';
import { workerRows } from '../render/worker-rows.js';

interface WorkersOptions {
  readonly queue?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly gone?: boolean;
}

export function addWorkers(program: Command, host: CommandHost): void {
  const command = program
    .command('workers')
    .summary('list workers')
    .description(
      'Lists the sessions of workers by name: what each serves, how many claims it holds of how many it wants, and ' +
        'when it was last heard. With --gone also those that are gone, for a day: when and why each ended, and the ' +
        'tasks it lost then. --json prints one WorkerSession message per line.',
    )
    .option('--queue <name>', 'that serve this queue')
    .option('--kind <kind>', 'that serve this kind')
    .option('--name <worker>', 'of this name')
    .option('--gone', 'also those that are gone and not yet forgotten');
  onConnection<WorkersOptions>(command, host, async (connection, options) => {
    const { terminal } = host;
    const workers: WorkerSession[] = [];
    const { namespace, queue = '', kind = '', name = '', gone: includeGone = false } = options;
    const conditions = { namespace, queue, actionKind: kind, workerName: name, includeGone, pageSize: 1_000 };
    let pageToken = '';
    do {
      const page = await connection.call((call) => connection.workers.listWorkers({ ...conditions, pageToken }, call));
      if (options.json) for (const worker of page.workers) terminal.line(messageJson(WorkerSessionSchema, worker));
      else workers.push(...page.workers);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    if (!options.json) {
      for (const line of workerRows(workers, Date.now(), terminal.columns())) terminal.line(line);
    }
    return EXIT.ok;
  });
}
