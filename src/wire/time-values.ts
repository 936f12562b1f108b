/**
 * Times and spans between the wire and the domain: google.protobuf.Timestamp ↔ epoch ms, Duration ↔ ms.
 * Owns what makes one well-formed (sign, nanos, the range of the type); whether a value suits its field is the
 * kernel's to say. Spans are rounded down to ms (task.proto, "Conventions").
 */
import { type Duration, type Timestamp } from '@bufbuild/protobuf/wkt';
import { malformedField } from './refusal-error.js';

/** The range of google.protobuf.Duration: ± about 10,000 years. */
const MAX_DURATION_SECONDS = 315_576_000_000n;
const MIN_TIMESTAMP_SECONDS = -62_135_596_800n;
const MAX_TIMESTAMP_SECONDS = 253_402_300_799n;
const NANOS_PER_MS = 1_000_000;
const MAX_NANOS = 999_999_999;

/** A span in ms, 0 or more. Throws MALFORMED for one that is negative or not a Duration at all. */
export function durationMs(field: string, duration: Duration): number {
  const { seconds, nanos } = duration;
  if (seconds < -MAX_DURATION_SECONDS || seconds > MAX_DURATION_SECONDS) {
    throw malformedField(field, 'seconds are beyond the range of a Duration');
  }
  if (!Number.isInteger(nanos) || Math.abs(nanos) > MAX_NANOS) {
    throw malformedField(field, 'nanos must be from -999,999,999 to 999,999,999');
  }
  if ((seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0)) {
    throw malformedField(field, 'seconds and nanos must have the same sign');
  }
  if (seconds < 0n || nanos < 0) throw malformedField(field, 'must not be negative');
  return Number(seconds) * 1_000 + Math.floor(nanos / NANOS_PER_MS);
}

/** A span of `minMs` to `maxMs`, both included. Throws MALFORMED outside. */
export function durationMsWithin(field: string, duration: Duration, minMs: number, maxMs: number): number {
  const ms = durationMs(field, duration);
  if (ms < minMs || ms > maxMs) throw malformedField(field, `must be from ${minMs} ms to ${maxMs} ms`);
  return ms;
}

/** Epoch ms, rounded down; negative before 1970. Throws MALFORMED for what is not a Timestamp. */
export function timestampMs(field: string, timestamp: Timestamp): number {
  const { seconds, nanos } = timestamp;
  if (seconds < MIN_TIMESTAMP_SECONDS || seconds > MAX_TIMESTAMP_SECONDS) {
    throw malformedField(field, 'seconds are beyond the years 1 to 9999');
  }
  if (!Number.isInteger(nanos) || nanos < 0 || nanos > MAX_NANOS) {
    throw malformedField(field, 'nanos must be from 0 to 999,999,999');
  }
  return Number(seconds) * 1_000 + Math.floor(nanos / NANOS_PER_MS);
}

export function toTimestamp(epochMs: number): Timestamp {
  const seconds = Math.floor(epochMs / 1_000);
  const nanos = (epochMs - seconds * 1_000) * NANOS_PER_MS;
  return { $typeName: 'google.protobuf.Timestamp', seconds: BigInt(seconds), nanos };
}

export function toDuration(ms: number): Duration {
  const seconds = Math.floor(ms / 1_000);
  return {
    $typeName: 'google.protobuf.Duration',
    seconds: BigInt(seconds),
    nanos: (ms - seconds * 1_000) * NANOS_PER_MS,
  };
}
