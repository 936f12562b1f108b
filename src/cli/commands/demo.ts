/**
 * `reeve demo`: the main job on real input, in half a minute, with its own proof.
 */
import type { Command } from 'commander';
import { type CommandHost, optionsOf } from '../command-host.js';
import { integerBetween } from '../options/argument-parsers.js';

interface DemoCommandOptions {
  readonly workers: number;
  readonly listen: string;
  readonly stay?: boolean;
}

export function addDemo(program: Command, host: CommandHost): void {
  const command = program
    .command('demo')
    .summary('see it at work, in half a minute')
    .description(
      'Starts a service on a fresh SQLite file and workers in processes of their own, lets them count 300 source ' +
        'files of this package, repeats a key, cancels a task, kills a worker, and checks every task and its history. ' +
        'Exit code 0 only if everything ended as it should.',
    )
    .configureHelp({ showGlobalOptions: false })
    .option('--workers <n>', 'how many worker processes', integerBetween(2, 16), 3)
    .option('--listen <host:port>', 'where the service listens; port 0 takes a free one', '127.0.0.1:0')
    .option('--stay', 'keep the service up at the end, to look around');
  command.action(async () => {
    const { runDemo } = await import('../demo/run-demo.js');
    const options = optionsOf<DemoCommandOptions>(command);
    host.end(await runDemo(host.terminal, { ...options, stay: options.stay === true }));
  });
}
