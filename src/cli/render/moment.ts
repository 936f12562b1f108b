/**
 * Times for people: local clock time in lines, how long ago in tables.
 */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { formatDuration } from '../options/duration.js';

/** `14:03:07.125`, local time; empty when unset. */
export function clockTime(time: Timestamp | undefined): string {
  if (time === undefined) return '';
  const moment = new Date(timestampMs(time));
  const part = (value: number, width: number) => String(value).padStart(width, '0');
  const clock = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map((value) => part(value, 2));
  return `${clock.join(':')}.${part(moment.getMilliseconds(), 3)}`;
}

/** RFC 3339 in UTC; empty when unset. */
export function isoTime(time: Timestamp | undefined): string {
  return time === undefined ? '' : new Date(timestampMs(time)).toISOString();
}

/** `3.2s ago`, `in 4m00s`; empty when unset. */
export function fromNow(time: Timestamp | undefined, nowMs: number): string {
  if (time === undefined) return '';
  const ms = nowMs - timestampMs(time);
  return ms >= 0 ? `${formatDuration(ms)} ago` : `in ${formatDuration(-ms)}`;
}

/** Between two moments; empty when one is unset. */
export function between(from: Timestamp | undefined, to: Timestamp | undefined): string {
  return from === undefined || to === undefined ? '' : formatDuration(timestampMs(to) - timestampMs(from));
}
