/**
 * Times and spans between proto and JavaScript: Timestamp ↔ Date, Duration ↔ milliseconds.
 */
import { create } from '@bufbuild/protobuf';
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  timestampFromDate,
  timestampDate,
} from '@bufbuild/protobuf/wkt';
import { mismatch } from './option-checks.js';

export function durationToMs(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  return Number(duration.seconds) * 1000 + Math.floor(duration.nanos / 1_000_000);
}

/**
 * Whole milliseconds; a fraction is rounded down, as the server does.
 *
 * @param option what it is called where users say it. @throws OptionError for what is no span of time.
 */
export function msToDuration(ms: number, option = 'a span of time'): Duration {
  if (!Number.isFinite(ms)) throw mismatch(option, 'must be a number of milliseconds', ms);
  const whole = Math.floor(ms);
  const seconds = Math.trunc(whole / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: (whole - seconds * 1000) * 1_000_000 });
}

export function toDate(timestamp: Timestamp | undefined): Date | undefined {
  return timestamp === undefined ? undefined : timestampDate(timestamp);
}

export function toTimestamp(date: Date): Timestamp {
  return timestampFromDate(date);
}
