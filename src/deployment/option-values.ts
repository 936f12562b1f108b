/**
 * How the value of an option is written, in flags, environment and reeve.yaml alike.
 * Each reader takes what was written and answers a value or throws ConfigError with a sentence for the operator.
 */

export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}

/** A JSON or YAML file that an option names, parsed. Throws ConfigError. */
export type ReadDocument = (path: string) => unknown;

/** Reads a value as text (flags, environment) or as YAML gave it; a path in it is relative to where it was written. */
export type ReadOption<Value> = (written: unknown, readDocument: ReadDocument) => Value;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SPAN_PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;

const NO_DURATION = 'a duration has units: 250ms, 30s, 5m, 1h30m, 30d';

/** `250ms`, `30s`, `1h30m`; ms from `minMs` to `maxMs`. A bare number is refused: nobody can tell its unit. */
export function readSpan(minMs: number, maxMs: number): (written: unknown) => number {
  return (written) => {
    const text = textOf(written);
    let total = 0;
    let at = 0;
    while (at < text.length) {
      SPAN_PART.lastIndex = at;
      const match = SPAN_PART.exec(text);
      if (match === null) throw new ConfigError(NO_DURATION);
      total += Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? 0);
      at += match[0].length;
    }
    if (at === 0) throw new ConfigError(NO_DURATION);
    if (total < minMs || total > maxMs) throw new ConfigError(`must be from ${minMs} ms to ${maxMs} ms`);
    return Math.floor(total);
  };
}

export function readWhole(least: number, most: number): (written: unknown) => number {
  return (written) => {
    const value = typeof written === 'number' ? written : Number(textOf(written));
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new ConfigError(`must be a whole number from ${least} to ${most}`);
  };
}

export function readText(written: unknown): string {
  const text = textOf(written);
  if (text === '') throw new ConfigError('must not be empty');
  return text;
}

/** Nothing written is null. */
export function readOptionalText(written: unknown): string | null {
  const text = textOf(written);
  return text === '' ? null : text;
}

const MAX_PORT = 65_535;

/** `host:port`, `[::1]:port`; the port is never guessed. */
export function readHostPort(written: unknown): string {
  const text = textOf(written);
  const { host, port } = /^(?<host>\[[0-9A-Fa-f:.%]+\]|[^\s:/]+):(?<port>\d{1,5})$/.exec(text)?.groups ?? {};
  if (host === undefined || Number(port) > MAX_PORT) {
    throw new ConfigError('must be host:port, 127.0.0.1:7450 for example');
  }
  return text;
}

export function readChoice<Word extends string>(words: readonly Word[]): ReadOption<Word> {
  return (written) => {
    const word = words.find((known) => known === written);
    if (word === undefined) throw new ConfigError(`must be one of ${words.join(', ')}`);
    return word;
  };
}

/** A list: of YAML, or separated by commas. */
export function readList(written: unknown): readonly string[] {
  if (Array.isArray(written)) return written.map((item) => readText(item));
  return textOf(written)
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function textOf(written: unknown): string {
  if (typeof written === 'string') return written.trim();
  if (typeof written === 'number' || typeof written === 'boolean') return String(written);
  throw new ConfigError('must be a single value');
}
