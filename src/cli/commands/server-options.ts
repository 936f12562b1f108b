/**
 * The server's own table of options as flags of `serve` and `dev`. Nothing about an option is said here: not its
 * default, not its unit, not its bounds. Light to load: every `--help` needs it.
 */
import { type Command, Option } from 'commander';
import { OPTIONS, type ServerConfig } from '../../server/options.js';

type Name = keyof ServerConfig;
export type ServerFlags = { readonly [N in Name]?: string };

/** Adds every option of the table. @param defaults where this command has another one, as text for --help. */
export function addServerOptions(command: Command, defaults: { readonly [N in Name]?: string } = {}): Command {
  command.optionsGroup('Server options (a flag before the variable before the key in the file before the default):');
  for (const name of optionNames()) {
    const { flag, placeholder, description, env, yaml, default: standard } = OPTIONS[name];
    const otherwise = defaults[name] ?? (standard === '' ? 'none' : standard);
    command.addOption(new Option(`${flag} ${placeholder}`, `${description} (default: ${otherwise}; ${env}; ${yaml})`));
  }
  return command.option(
    '--config <file>',
    'read options from this file; reeve.yaml is read if it is there (REEVE_CONFIG)',
  );
}

/** What was given on the command line. */
export function serverFlags(options: Readonly<Record<string, unknown>>): ServerFlags {
  const given = optionNames().flatMap((name) => {
    const value = options[new Option(`${OPTIONS[name].flag} <value>`).attributeName()];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(given);
}

function optionNames(): readonly Name[] {
  // The table has exactly the members of the configuration.
  return Object.keys(OPTIONS) as Name[];
}
