/**
 * Spans as people write them, `90s`, `1h30m`, `250ms`, to milliseconds and back. A bare number is refused, because
 * nobody can tell whether it means seconds or milliseconds; only 0 needs no unit.
 */
import { InvalidArgumentError } from 'commander';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNIT_MS;

/** The longest span anywhere in Reeve: 10 years of 365 days. */
export const MAX_DURATION_MS = 3_650 * UNIT_MS.d;

const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/y;

/** Whole milliseconds, fractions rounded down. Throws commander's InvalidArgumentError. */
export function parseDuration(text: string): number {
  const trimmed = text.trim();
  if (trimmed === '0') return 0;
  let total = 0;
  let at = 0;
  while (at < trimmed.length) {
    PART.lastIndex = at;
    const match = PART.exec(trimmed);
    if (match === null) throw notADuration(text);
    const [part, amount, unit] = match;
    total += Number(amount) * UNIT_MS[unit as Unit];
    at += part.length;
  }
  if (at === 0) throw notADuration(text);
  if (total > MAX_DURATION_MS) throw new InvalidArgumentError('At most 3650d.');
  return Math.floor(total);
}

/** As parseDuration, within bounds; `bounds` is how they are told. */
export function durationBetween(minMs: number, maxMs: number, bounds: string): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms < minMs || ms > maxMs) throw new InvalidArgumentError(`Must be ${bounds}.`);
    return ms;
  };
}

function notADuration(text: string): InvalidArgumentError {
  const hint = /^\d+(\.\d+)?$/.test(text.trim()) ? ` Did you mean ${text.trim()}s?` : '';
  return new InvalidArgumentError(`A duration has units: 250ms, 30s, 5m, 1h30m, 2d.${hint}`);
}

/** Short, for people: `412ms`, `3.2s`, `2m05s`, `1h02m`, `3d04h`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < UNIT_MS.s) return `${whole}ms`;
  if (whole < 59_950) return `${(whole / 1_000).toFixed(1)}s`;
  const seconds = Math.round(whole / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${twoDigits(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${twoDigits(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${twoDigits(hours % 24)}h`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
