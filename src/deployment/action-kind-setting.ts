/**
 * How action kinds are written in the configuration: a name, or a mapping that says more about a kind, built-in ones
 * included. Owns the form only; schemas are compiled where the registry is made, so that `--help` stays light.
 */
import { MAX_DURATION_MS } from '../kernel/admission/policy-bounds.js';
import { ConfigError, type ReadDocument, readList, readSpan } from './option-values.js';

export interface ActionKindSetting {
  /** The kind's name, `crawl`; a built-in one (`agent`, …) is configured and not added. */
  readonly name: string;
  /** A JSON Schema (draft 2020-12) that args must satisfy. Default: any object is fine. */
  readonly argsSchema?: object | undefined;
  /** The file that it was read from, for messages. */
  readonly argsSchemaFile?: string | undefined;
  /** Whether `{}` is fine whatever the schema says of it. Default: true. */
  readonly allowEmptyArgs?: boolean | undefined;
  /** The total time-out, in ms, of tasks whose submission states none: 1 to 10 years. Default: none. */
  readonly timeoutMs?: number | undefined;
}

const KEYS = ['name', 'args_schema', 'allow_empty_args', 'timeout'] as const;
const readTimeout = readSpan(1, MAX_DURATION_MS);

/** `crawl,index`, or in a file a list of names and mappings. Paths are relative to the file. */
export function readActionKinds(written: unknown, readDocument: ReadDocument): readonly ActionKindSetting[] {
  if (!Array.isArray(written)) return readList(written).map((name) => ({ name }));
  const entries: readonly unknown[] = written;
  return entries.map((entry, index) => {
    try {
      return typeof entry === 'string' ? { name: entry } : readMapping(entry, readDocument);
    } catch (error) {
      if (error instanceof ConfigError) throw new ConfigError(`[${index}]${nameIn(entry)}: ${error.message}`);
      throw error;
    }
  });
}

function readMapping(entry: unknown, readDocument: ReadDocument): ActionKindSetting {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    throw new ConfigError('must be a name, or a mapping with a name');
  }
  const { name, args_schema, allow_empty_args, timeout, ...others }: Partial<Record<string, unknown>> = { ...entry };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new ConfigError(`${unknown}: no such key; there are ${KEYS.join(', ')}`);
  if (typeof name !== 'string') throw new ConfigError('name: is required');
  if (allow_empty_args !== undefined && typeof allow_empty_args !== 'boolean') {
    throw new ConfigError('allow_empty_args: must be true or false');
  }
  return {
    name,
    ...schemaOf(args_schema, readDocument),
    allowEmptyArgs: allow_empty_args,
    timeoutMs: timeout === undefined ? undefined : within('timeout', () => readTimeout(timeout)),
  };
}

function schemaOf(
  written: unknown,
  readDocument: ReadDocument,
): Pick<ActionKindSetting, 'argsSchema' | 'argsSchemaFile'> {
  if (written === undefined) return {};
  const place = typeof written === 'string' ? `args_schema: ${written}` : 'args_schema';
  const schema = typeof written === 'string' ? within('args_schema', () => readDocument(written)) : written;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new ConfigError(`${place}: must be a JSON Schema, or the path of a .json or .yaml file that holds one`);
  }
  return { argsSchema: schema, argsSchemaFile: typeof written === 'string' ? written : undefined };
}

function within<Value>(key: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${key}: ${error.message}`);
    throw error;
  }
}

function nameIn(entry: unknown): string {
  const named = typeof entry === 'object' && entry !== null && 'name' in entry && typeof entry.name === 'string';
  return named ? ` ${String(entry.name)}` : '';
}
