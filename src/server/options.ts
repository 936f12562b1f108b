/**
 * Every option of the server, once: its flag, its environment variable, its key in reeve.yaml, its default and unit.
 * `serve --help`, the environment, the file and the documentation are all read from this table.
 */
import { DEFAULT_ACCEPT_TIMEOUT_MS } from '../authority/authority.js';
import type { KeyLimit } from '../kernel/permits.js';
import type { CapabilityClasses } from '../kernel/placement.js';
import type { RetentionDefaults } from '../kernel/retention.js';
import { type ActionKindSetting, readActionKinds } from '../deployment/action-kind-setting.js';
import { readCapabilityClasses } from '../deployment/capability-setting.js';
import { readKeyLimits } from '../deployment/concurrency-setting.js';
import { LOG_LEVELS, type LogLevel } from './log.js';
import {
  type ReadOption,
  readChoice,
  readHostPort,
  readOptionalText,
  readSpan,
  readText,
  readWhole,
} from '../deployment/option-values.js';
import { readRetention } from '../deployment/retention-option.js';

export interface ServerConfig {
  /** `host:port`; port 0 takes a free one. */
  readonly listen: string;
  /** `sqlite:PATH`, or `memory:` under `reeve dev` only. */
  readonly store: string;
  readonly logLevel: LogLevel;
  /** Kinds beside the built-in ones, and more about those. */
  readonly actionKinds: readonly ActionKindSetting[];
  /** Classes of capability labels; a label that is not in it is one of eligibility. */
  readonly capabilityClasses: CapabilityClasses;
  /** How many tasks of a concurrency key may run at once. */
  readonly concurrency: readonly KeyLimit[];
  readonly acceptTimeoutMs: number;
  readonly drainGraceMs: number;
  readonly drainReconnectMs: number;
  readonly connectionAgeMs: number;
  readonly connectionAgeGraceMs: number;
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  readonly cacheMib: number;
  /** A file with the key of the hash chains; null: they are made without one. */
  readonly chainKeyFile: string | null;
  /** Of tasks that name none of their own, by how they ended. */
  readonly retention: RetentionDefaults;
}

export interface OptionSpec<Value> {
  /** With its dashes, `--drain-grace`. */
  readonly flag: string;
  readonly env: string;
  readonly yaml: string;
  /** What stands for the value in help: `<span>`, `<host:port>`. */
  readonly placeholder: string;
  /** The default, as it would be written. */
  readonly default: string;
  readonly description: string;
  readonly read: ReadOption<Value>;
}

export type OptionTable = { readonly [Name in keyof ServerConfig]: OptionSpec<ServerConfig[Name]> };

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const OPTIONS: OptionTable = {
  listen: {
    ...named('listen', '<host:port>', '127.0.0.1:7450', 'Where to listen for gRPC; port 0 takes a free one'),
    read: readHostPort,
  },
  store: {
    ...named('store', '<url>', 'sqlite:./reeve.db', 'The store: sqlite:PATH (memory: with reeve dev only)'),
    read: readText,
  },
  logLevel: {
    ...named('log-level', '<level>', 'info', `What to log, as JSON lines on standard output: ${LOG_LEVELS.join(', ')}`),
    read: readChoice(LOG_LEVELS),
  },
  actionKinds: {
    ...named(
      'action-kinds',
      '<kinds>',
      '',
      'Action kinds beside the built-in ones, separated by commas; the file may say more about each',
    ),
    read: readActionKinds,
  },
  capabilityClasses: {
    ...named(
      'capabilities',
      '<classes>',
      '',
      'Classes of capability labels, as label=class separated by commas: affinity is preferred and never required, ' +
        'of serialization one task that requires it runs at a time, eligibility is the default. In the file: a mapping',
    ),
    read: readCapabilityClasses,
  },
  concurrency: {
    ...named(
      'concurrency',
      '<limits>',
      '',
      'How many tasks of a concurrency key run at once, as pattern=number separated by commas, tenant-*=4 for example; ' +
        'the first pattern that fits counts, and a key that none fits runs one. In the file: a list of {key, limit}',
    ),
    read: readKeyLimits,
  },
  acceptTimeoutMs: {
    ...named(
      'accept-timeout',
      '<span>',
      `${DEFAULT_ACCEPT_TIMEOUT_MS / SECOND_MS}s`,
      'How long a worker may take to accept a claim before it is handed back',
    ),
    read: readSpan(100, HOUR_MS),
  },
  drainGraceMs: {
    ...named(
      'drain-grace',
      '<span>',
      '25s',
      'How long a stopping server keeps its streams, so that workers can finish or move',
    ),
    read: readSpan(0, DAY_MS),
  },
  drainReconnectMs: {
    ...named(
      'drain-reconnect',
      '<span>',
      '1s',
      'How long workers wait at least before they reconnect elsewhere, when the server is going',
    ),
    read: readSpan(0, HOUR_MS),
  },
  connectionAgeMs: {
    ...named(
      'connection-age',
      '<span>',
      '30m',
      'How old a connection may get, ± 10 % by chance, before its client is told to make another',
    ),
    read: readSpan(SECOND_MS, 24 * DAY_MS),
  },
  connectionAgeGraceMs: {
    ...named('connection-age-grace', '<span>', '5m', 'How long calls of an old connection may go on after that'),
    read: readSpan(SECOND_MS, 24 * DAY_MS),
  },
  keepaliveMs: {
    ...named('keepalive', '<span>', '20s', 'How often a silent connection is asked whether its peer is alive'),
    read: readSpan(SECOND_MS, HOUR_MS),
  },
  keepaliveTimeoutMs: {
    ...named(
      'keepalive-timeout',
      '<span>',
      '10s',
      'How long the peer may take to answer before the connection is closed',
    ),
    read: readSpan(SECOND_MS, HOUR_MS),
  },
  cacheMib: {
    ...named('cache', '<MiB>', '256', 'Memory for records of live tasks'),
    read: readWhole(8, 65_536),
  },
  chainKeyFile: {
    ...named(
      'chain-key-file',
      '<path>',
      '',
      'A file with the secret key of the hash chains, at least 32 bytes; for the whole life of a store, or never',
    ),
    read: readOptionalText,
  },
  retention: {
    ...named(
      'retention',
      '<spans>',
      'never',
      'How long finished tasks are kept that name no retention of their own: never, 30d, or by status 30d,failed=90d',
    ),
    read: readRetention,
  },
};

function named(
  name: string,
  placeholder: string,
  standard: string,
  description: string,
): Omit<OptionSpec<never>, 'read'> {
  const snake = name.replaceAll('-', '_');
  return {
    flag: `--${name}`,
    env: `REEVE_${snake.toUpperCase()}`,
    yaml: snake,
    placeholder,
    default: standard,
    description,
  };
}
