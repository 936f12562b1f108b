/**
 * The int64 numbers of the work stream: epochs, event numbers, marks. What a double cannot hold exactly is refused and
 * never rounded: a rounded epoch is another claim's, a rounded mark passes over events that nobody judged.
 */
import { malformedField } from './refusal-error.js';

/** The epoch of a claim or the number of an event, from 1. `[]` in `field` stands for the place in its list. */
export function readEpoch(field: string, value: bigint, index?: number): number {
  return readWhole(field, value, 1, index);
}

/** How far something is settled, from 0: nothing of it. */
export function readMark(field: string, value: bigint, index?: number): number {
  return readWhole(field, value, 0, index);
}

function readWhole(field: string, value: bigint, least: number, index: number | undefined): number {
  const number = Number(value);
  if (number >= least && Number.isSafeInteger(number)) return number;
  const path = index === undefined ? field : field.replace('[]', `[${index}]`);
  throw malformedField(path, `must be from ${least} to ${Number.MAX_SAFE_INTEGER}`);
}
