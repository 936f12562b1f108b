/**
 * `reeve drain-worker`: let a worker finish what it holds and give it nothing more.
 */
import type { Command } from 'commander';
import { v7 as uuidV7 } from 'uuid';
import { DrainWorkerResponseSchema } from '../../gen/reeve/v1/worker_service_pb.js';
import { type CommandHost, onConnection } from '../command-host.js';
import { EXIT } from '../exit-codes.js';
import { addActorOption, type ActorOptions, operatorOf } from '../options/actor-option.js';
import { messageJson } from '../render/message-json.js';
import { workerRows } from '../render/worker-rows.js';
import { UsageError } from '../usage-error.js';

interface DrainOptions extends ActorOptions {
  readonly session?: string;
  readonly requestKey?: string;
  readonly reason?: string;
}

export function addDrainWorker(program: Command, host: CommandHost): void {
  const command = program
    .command('drain-worker')
    .summary('let a worker finish and give it nothing more')
    .description(
      'Every session of the name, or the one session, keeps what it holds and gets no more claims. It cannot be taken ' +
        'back: a worker that is to go on is started anew. --json prints a DrainWorkerResponse message.',
    )
    .argument('[worker-name]')
    .option('--session <alias>', 'one session, as `reeve workers` names it')
    .option('--request-key <key>', 'names this request, for a safe repetition; made unless given')
    .option('--reason <text>', 'why, for the log');
  addActorOption(command, 'log');
  onConnection<DrainOptions>(command, host, async (connection, options, [workerName = '']) => {
    const { terminal } = host;
    const { session: sessionAlias = '', reason } = options;
    if ((workerName === '') === (sessionAlias === '')) throw new UsageError('say which: a worker name, or --session');
    const request = {
      workerName,
      sessionAlias,
      idempotencyKey: options.requestKey ?? uuidV7(),
      actor: operatorOf(options),
      ...(reason !== undefined && { reason: { code: 'app.cli.drain', summary: reason } }),
    };
    const answer = await connection.call((call) => connection.workers.drainWorker(request, call));
    if (options.json) terminal.line(messageJson(DrainWorkerResponseSchema, answer));
    else for (const line of workerRows(answer.workers, Date.now(), terminal.columns())) terminal.line(line);
    return EXIT.ok;
  });
}
