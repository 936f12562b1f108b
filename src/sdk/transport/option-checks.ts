/**
 * What users hand to the SDK, checked when it is handed over: a wrong value is told with the name of its option, and
 * never surfaces later as something else. It must not judge what only the server can (which queues exist, limits of
 * the contract).
 */
import { Metadata } from '@grpc/grpc-js';
import type { RpcOptions, TlsOptions } from './rpc.js';

/** The longest wait that a timer takes, 24.8 days: setTimeout fires at once beyond it. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** An option that means nothing, found before anything was started or sent. */
export class OptionError extends TypeError {
  override readonly name = 'OptionError';

  /** @param option by its path, `handlers.agent`. */
  constructor(
    readonly option: string,
    problem: string,
  ) {
    super(`${option} ${problem}`);
  }
}

/** A wait in ms. What no timer can hold, Infinity for example, waits as long as one can: MAX_TIMER_MS. */
export function requireSpanMs(option: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0) return Math.min(value, MAX_TIMER_MS);
  throw mismatch(option, 'must be a number of milliseconds, 0 or more', value);
}

/** The same, where nothing may be said. */
export function optionalSpanMs(option: string, value: unknown): number | undefined {
  return value === undefined ? undefined : requireSpanMs(option, value);
}

export function requireWhole(option: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw mismatch(option, `must be a whole number from ${least} to ${most}`, value);
}

export function requireAtLeast(option: string, value: unknown, least: number): number {
  if (typeof value === 'number' && value >= least) return value;
  throw mismatch(option, `must be a number of at least ${least}`, value);
}

export function requireText(option: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw mismatch(option, 'must be a string', value);
}

/** A string is no list of strings, though it can be spread into one. */
export function requireTexts(option: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw mismatch(option, 'must be an array of strings', value);
  return value.map((each: unknown, index) => requireText(`${option}[${index}]`, each));
}

export function requireOneOf<Word extends string>(option: string, value: unknown, words: readonly Word[]): Word {
  const word = words.find((each) => each === value);
  if (word !== undefined) return word;
  throw mismatch(option, `must be one of ${words.map((each) => `'${each}'`).join(', ')}`, value);
}

export function requireObject(option: string, value: unknown): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw mismatch(option, 'must be an object', value);
}

export function optionalFunction(option: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw mismatch(option, 'must be a function', value);
}

/** `host:port`, `[v6]:port`, or another target of gRPC: `dns:…`, `unix:…`, `ipv4:…`, `scheme://…`. */
export function requireAddress(option: string, value: unknown): string {
  const address = requireText(option, value);
  if (/^https?:\/\//i.test(address)) {
    throw mismatch(option, 'must be host:port without a scheme (`tls` turns TLS on)', address);
  }
  if (/^(dns|ipv4|ipv6|unix|unix-abstract|xds):\S/.test(address) || /^[a-z][a-z0-9+.-]*:\/\/\S/i.test(address)) {
    return address;
  }
  const [, , port] = /^(\[[^\s[\]]+\]|[^\s:/[\]]+):(\d+)$/.exec(address) ?? [];
  if (port !== undefined && Number(port) > 0 && Number(port) <= MAX_PORT) return address;
  throw mismatch(option, "must be host:port, '127.0.0.1:7450' for example", address);
}

/** What a connection is made of; otherwise a thread would fail with it, far from the one who said it. */
export function requireRpcOptions({ tls, headers }: RpcOptions): void {
  if (tls !== undefined) requireTls(tls);
  if (headers === undefined) return;
  for (const [name, value] of Object.entries(requireObject('headers', headers))) {
    const text = requireText(`headers.${name}`, value);
    try {
      new Metadata().set(name, text);
    } catch (error) {
      throw new OptionError(`headers.${name}`, `cannot be sent: ${error instanceof Error ? error.message : ''}`);
    }
  }
}

/** What was expected, and what came instead. */
export function mismatch(option: string, expected: string, value: unknown): OptionError {
  return new OptionError(option, `${expected}, not ${shown(value)}`);
}

const MAX_PORT = 65_535;
/** Of a wrong value in an error. */
const SHOWN_LENGTH = 80;

function requireTls(tls: TlsOptions): void {
  requireObject('tls', tls);
  for (const name of ['ca', 'cert', 'key'] as const) {
    const value: unknown = tls[name];
    if (value === undefined || typeof value === 'string' || value instanceof Uint8Array) continue;
    throw mismatch(`tls.${name}`, 'must be PEM as a string or bytes', value);
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw new OptionError('tls', 'must have both cert and key, or neither');
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, SHOWN_LENGTH)}'`;
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}
