/**
 * `reeve dev`: a service to try things with, gone without a trace when it ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { StartOptions } from '../../server/start-server.js';
import { type CommandHost, optionsOf } from '../command-host.js';
import { tryOutLines } from '../render/try-out.js';
import { UsageError } from '../usage-error.js';
import { addServerOptions, serverFlags } from './server-options.js';

const MEMORY = 'memory:';

export function addDev(program: Command, host: CommandHost): void {
  const command = program
    .command('dev')
    .summary('run a service to try things with')
    .description(
      'Runs a service that forgets everything when it ends, unless --store names a file, and says how to talk to it. ' +
        'The store and the log level come from flags, and from REEVE_LOG_LEVEL: what a file or REEVE_STORE says is for ' +
        '`reeve serve`.',
    )
    .configureHelp({ showGlobalOptions: false })
    .option('--sqlite', 'keep tasks in a temporary SQLite file instead of memory, as durable as the real thing');
  addServerOptions(command, { store: MEMORY, logLevel: 'warn' });
  command.action(async () => {
    const { runServer, serverConfig } = await import('./run-server.js');
    const options = optionsOf<Readonly<Record<string, unknown>>>(command);
    const flags = serverFlags(options);
    if (options['sqlite'] === true && flags.store !== undefined) {
      throw new UsageError('--sqlite is a temporary file; with --store say sqlite:<file> there');
    }
    const folder = options['sqlite'] === true ? mkdtempSync(join(tmpdir(), 'reeve-dev-')) : undefined;
    const store = flags.store ?? (folder === undefined ? MEMORY : `sqlite:${join(folder, 'reeve.db')}`);
    const logLevel = flags.logLevel ?? (host.env['REEVE_LOG_LEVEL'] || 'warn');
    try {
      const config = serverConfig({ ...flags, store, logLevel }, options['config'], host.env);
      const { terminal } = host;
      const code = await runServer(config, terminal, await storeOf(config.store), ({ address }) => {
        terminal.line(`reeve dev is listening on ${address}, store ${store}; Ctrl-C ends it\n`);
        for (const line of tryOutLines(address)) terminal.line(line);
      });
      host.end(code);
    } finally {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** The memory store is loaded here and nowhere else: no other command may forget what it was told. */
async function storeOf(url: string): Promise<StartOptions> {
  if (url !== MEMORY) return {};
  const { openMemoryStore } = await import('../../store/memory/memory-store.js');
  return { store: openMemoryStore() };
}
