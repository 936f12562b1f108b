/**
 * A server in this process from its start to its end: the first SIGTERM or SIGINT drains it, the second ends the
 * process at once. Loaded by the commands that need it only: it brings the whole service with it.
 */
import { loadConfig } from '../../server/load-config.js';
import { ConfigError } from '../../deployment/option-values.js';
import { StopError } from '../../server/shutdown.js';
import { ListenError, type RunningServer, type StartOptions, startServer } from '../../server/start-server.js';
import type { ServerConfig } from '../../server/options.js';
import { StoreError } from '../../store/store-error.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import type { Terminal } from '../terminal.js';
import { UsageError } from '../usage-error.js';
import type { ServerFlags } from './server-options.js';

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** After a stop. A peer that went away without a word never closes its end, and its socket would keep the process. */
const END_ANYWAY_MS = 100;

/** Resolves when the server has stopped. Throws UsageError for a configuration that does not work. */
export async function runServer(
  config: ServerConfig,
  terminal: Terminal,
  options: StartOptions = {},
  onReady: (server: RunningServer) => void = () => undefined,
): Promise<ExitCode> {
  // Listening before the start: whoever reads "ready" may send a signal at once.
  const signalled = nextSignal().then(() => {
    void nextSignal().then(() => process.exit(EXIT.interrupted));
  });
  let server: RunningServer;
  try {
    server = await startServer(config, options);
  } catch (error) {
    const why = startFailure(error);
    if (why === null) throw asUsageError(error);
    terminal.note(`reeve: ${why}`);
    return EXIT.failed;
  }
  onReady(server);
  await signalled;
  try {
    await server.stop(config.drainGraceMs);
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof StopError)) throw error;
    terminal.note(`reeve: ${error.message}`);
    return EXIT.failed;
  } finally {
    setTimeout(() => process.exit(), END_ANYWAY_MS).unref();
  }
}

/** What an operator is told of a start that this machine did not let happen; null for any other error. */
function startFailure(error: unknown): string | null {
  if (error instanceof StoreError) return `the store cannot be opened: ${error.message}`;
  return error instanceof ListenError ? error.message : null;
}

/** Throws UsageError. */
export function serverConfig(
  flags: ServerFlags,
  file: unknown,
  env: Readonly<Record<string, string | undefined>>,
): ServerConfig {
  try {
    return loadConfig({ flags, env, file: typeof file === 'string' ? file : undefined });
  } catch (error) {
    throw asUsageError(error);
  }
}

/** A mistake of the configuration is one of the command line; everything else stays what it is. */
function asUsageError(error: unknown): unknown {
  return error instanceof ConfigError ? new UsageError(error.message) : error;
}

function nextSignal(): Promise<void> {
  return new Promise((resolve) => {
    const heard = () => {
      for (const signal of SIGNALS) process.off(signal, heard);
      resolve();
    };
    for (const signal of SIGNALS) process.on(signal, heard);
  });
}
