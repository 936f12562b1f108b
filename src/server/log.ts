/**
 * The log: JSON lines on standard output, by level. Owns what never gets into it: request bodies, tokens, secrets.
 */
import { type Logger, pino } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal'>;

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Written at once, so that the last line before an exit is not lost. */
export function openLog(level: LogLevel): Log {
  return pino({ level, base: null }, pino.destination({ fd: 1, sync: true }));
}
