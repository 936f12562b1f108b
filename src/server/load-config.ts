/**
 * The configuration of a server from its four sources: flags before environment before reeve.yaml before defaults.
 * Refuses what it does not know: a misspelt key would otherwise be a setting that silently does nothing.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { parse } from 'yaml';
import { ConfigError, type ReadDocument } from '../deployment/option-values.js';
import { OPTIONS, type OptionSpec, type ServerConfig } from './options.js';

export const DEFAULT_CONFIG_FILE = 'reeve.yaml';
/** Names the file itself; not an option of the file. */
export const CONFIG_ENV = 'REEVE_CONFIG';

export interface ConfigSources {
  /** By option, as written on the command line. */
  readonly flags?: { readonly [Name in keyof ServerConfig]?: string | undefined };
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A file that must exist; without it reeve.yaml in the working directory is read if it is there. */
  readonly file?: string | undefined;
}

/** Throws ConfigError with the option and where it was written. */
export function loadConfig(sources: ConfigSources = {}): ServerConfig {
  const { flags = {}, env = {} } = sources;
  const path = configPath(sources.file ?? env[CONFIG_ENV]);
  const file = path === undefined ? {} : readConfigFile(path);
  refuseUnknown(file);
  const besideFile = path === undefined ? besideCwd : documentsBeside(dirname(path));
  const value = <Name extends keyof ServerConfig>(name: Name): ServerConfig[Name] => {
    const spec: OptionSpec<ServerConfig[Name]> = OPTIONS[name];
    const flag = flags[name];
    if (flag !== undefined) return read(spec, spec.flag, flag, besideCwd);
    const variable = env[spec.env];
    // A variable that is set and empty counts as unset, as shells make it easy to set one so.
    if (variable !== undefined && variable !== '') return read(spec, spec.env, variable, besideCwd);
    const written = file[spec.yaml];
    if (written !== undefined && written !== null) return read(spec, spec.yaml, written, besideFile);
    return spec.read(spec.default, besideCwd);
  };
  return {
    listen: value('listen'),
    store: value('store'),
    logLevel: value('logLevel'),
    actionKinds: value('actionKinds'),
    concurrency: value('concurrency'),
    capabilityClasses: value('capabilityClasses'),
    acceptTimeoutMs: value('acceptTimeoutMs'),
    drainGraceMs: value('drainGraceMs'),
    drainReconnectMs: value('drainReconnectMs'),
    connectionAgeMs: value('connectionAgeMs'),
    connectionAgeGraceMs: value('connectionAgeGraceMs'),
    keepaliveMs: value('keepaliveMs'),
    keepaliveTimeoutMs: value('keepaliveTimeoutMs'),
    cacheMib: value('cacheMib'),
    chainKeyFile: value('chainKeyFile'),
    retention: value('retention'),
  };
}

function read<Value>(spec: OptionSpec<Value>, place: string, written: unknown, documents: ReadDocument): Value {
  try {
    return spec.read(written, documents);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${place}: ${error.message}`);
    throw error;
  }
}

/** Undefined: none was named, and there is none by the usual name. */
function configPath(named: string | undefined): string | undefined {
  const path = named === undefined || named === '' ? DEFAULT_CONFIG_FILE : named;
  return path === DEFAULT_CONFIG_FILE && !existsSync(path) ? undefined : path;
}

function readConfigFile(path: string): Readonly<Record<string, unknown>> {
  const document = readDocument(path, path);
  if (document === null || document === undefined) return {};
  if (typeof document !== 'object' || Array.isArray(document))
    throw new ConfigError(`${path}: must be a mapping of options`);
  return { ...document };
}

const DOCUMENTS: ReadonlySet<string> = new Set(['.json', '.yaml', '.yml']);

function documentsBeside(folder: string): ReadDocument {
  return (path) => {
    if (!DOCUMENTS.has(extname(path))) throw new ConfigError(`${path}: must be a .json or .yaml file`);
    return readDocument(resolve(folder, path), path);
  };
}

const besideCwd: ReadDocument = (path) => documentsBeside(process.cwd())(path);

/** JSON is YAML. `named` is what messages call the file. */
function readDocument(path: string, named: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError(`${named}: ${error instanceof Error ? error.message : 'cannot be read'}`);
  }
}

function refuseUnknown(file: Readonly<Record<string, unknown>>): void {
  const known = new Set(Object.values(OPTIONS).map((spec) => spec.yaml));
  for (const key of Object.keys(file)) {
    if (!known.has(key)) throw new ConfigError(`${key}: no such option; there are ${[...known].join(', ')}`);
  }
}
