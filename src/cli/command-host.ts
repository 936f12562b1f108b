/**
 * What every command is given and what it may ask: the terminal, the options that all commands share, a connection
 * that is closed when the command is over. A command returns its exit code; it never ends the process.
 */
import { type Command, Option } from 'commander';
import { type Connection, openConnection } from './connection.js';
import type { ExitCode } from './exit-codes.js';
import { OptionError, requireAddress } from '../sdk/transport/option-checks.js';
import type { Terminal } from './terminal.js';
import { UsageError } from './usage-error.js';

export const DEFAULT_ADDRESS = '127.0.0.1:7450';

export interface GlobalOptions {
  readonly address: string;
  readonly json: boolean;
  /** Empty: the default namespace. */
  readonly namespace: string;
}

export interface CommandHost {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called once, by the command that ran. */
  end(code: ExitCode): void;
}

export function addGlobalOptions(program: Command): void {
  program
    .addOption(
      new Option('--address <host:port>', 'where the service is').env('REEVE_ADDRESS').default(DEFAULT_ADDRESS),
    )
    .addOption(new Option('--namespace <name>', 'namespace of tasks, keys and queues').env('REEVE_NAMESPACE'))
    .addOption(new Option('--json', 'print JSON for machines, one message per line, names as in the proto files'));
}

/** The command's own options with the shared ones. A variable that is set and empty counts as unset. */
export function optionsOf<Own extends object>(command: Command): Own & GlobalOptions {
  const given = command.optsWithGlobals<Own & Partial<GlobalOptions>>();
  const { address = '', namespace = '', json = false } = given;
  return { ...given, address: address === '' ? DEFAULT_ADDRESS : address, namespace, json };
}

/** Throws UsageError for what is no address: nothing would ever answer there. */
function addressOf(written: string): string {
  try {
    return requireAddress('--address', written);
  } catch (error) {
    throw error instanceof OptionError ? new UsageError(error.message) : error;
  }
}

/** Makes `act` the command's action, with a connection for as long as it runs. */
export function onConnection<Own extends object>(
  command: Command,
  host: CommandHost,
  act: (connection: Connection, options: Own & GlobalOptions, words: readonly string[]) => Promise<ExitCode>,
): void {
  command.action(async () => {
    const options = optionsOf<Own>(command);
    const connection = openConnection(addressOf(options.address));
    try {
      host.end(await act(connection, options, command.args));
    } finally {
      connection.close();
    }
  });
}
