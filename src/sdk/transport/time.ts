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

export function durationToMs(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  return Number(duration.seconds) * 1000 + Math.floor(duration.nanos / 1_000_000);
}

/** Whole milliseconds; a fraction is rounded down, as the server does. */
export function msToDuration(ms: number): Duration {
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
