/**
 * `reeve serve`: the service. Logs JSON lines; the one with `"msg":"ready"` tells the address.
 */
import type { Command } from 'commander';
import { type CommandHost, optionsOf } from '../command-host.js';
import { addServerOptions, serverFlags } from './server-options.js';

export function addServe(program: Command, host: CommandHost): void {
  const command = program
    .command('serve')
    .summary('run the service')
    .description(
      'Runs the service. It is ready when a log line says "ready", with the address. SIGTERM or SIGINT drains: no ' +
        'more claims, workers finish or move, commits are flushed; a second signal ends it at once. Exit codes: 0 ' +
        'drained, 1 the store cannot be opened, the address not be listened on, or the drain did not end well, 2 the configuration is wrong, 70 the store failed beyond repair, 130 ' +
        'a second signal.',
    )
    .configureHelp({ showGlobalOptions: false });
  addServerOptions(command);
  command.action(async () => {
    const { runServer, serverConfig } = await import('./run-server.js');
    const options = optionsOf<Readonly<Record<string, unknown>>>(command);
    const config = serverConfig(serverFlags(options), options['config'], host.env);
    host.end(await runServer(config, host.terminal));
  });
}
