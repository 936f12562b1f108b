/**
 * Values of single options: numbers, words of an enum, `key=value` pairs, moments. Each throws commander's
 * InvalidArgumentError, which names the option for the user.
 */
import { InvalidArgumentError } from 'commander';
import type { DescEnum } from '@bufbuild/protobuf';

/** A parser of whole numbers within bounds, both included. */
export function integerBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^[+-]?\d+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`A whole number from ${least} to ${most}.`);
    }
    return value;
  };
}

export function numberBetween(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (!(value >= least && value <= most)) throw new InvalidArgumentError(`A number from ${least} to ${most}.`);
    return value;
  };
}

/** The lower-case words of an enum, the zero value left out: `timed_out`. */
export function enumWords(schema: DescEnum): readonly string[] {
  return schema.values.filter((value) => value.number !== 0).map((value) => value.localName.toLowerCase());
}

/** The word of one value; a value that this client does not know shows as its number. */
export function enumWord(schema: DescEnum, value: number): string {
  return schema.value[value]?.localName.toLowerCase() ?? String(value);
}

/** A parser from word to number; dashes read as underscores. */
export function enumNumber(schema: DescEnum): (text: string) => number {
  return (text) => {
    const word = text.toLowerCase().replaceAll('-', '_');
    const found = schema.values.find((value) => value.number !== 0 && value.localName.toLowerCase() === word);
    if (found === undefined) throw new InvalidArgumentError(`One of: ${enumWords(schema).join(', ')}.`);
    return found.number;
  };
}

/** Collects a repeatable option; one occurrence may also list several with commas. */
export function collectList(text: string, previous: readonly string[] | undefined): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.some((word) => word === '')) throw new InvalidArgumentError('Empty words are not allowed.');
  return [...(previous ?? []), ...words];
}

/** As `collectList`, of enum words. */
export function collectEnum(
  schema: DescEnum,
): (text: string, previous: readonly number[] | undefined) => readonly number[] {
  const parse = enumNumber(schema);
  return (text, previous) => [...(previous ?? []), ...collectList(text, []).map(parse)];
}

/** Collects `key=value`; the value may hold `=` and may be empty. */
export function collectPair(
  text: string,
  previous: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write key=value.');
  return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
}

/** A moment in RFC 3339, `2026-05-01T08:00:00Z`. The zone is required: a local guess would differ by machine. */
export function parseMoment(text: string): Date {
  const moment = new Date(text);
  if (!/^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/i.test(text) || Number.isNaN(moment.getTime())) {
    throw new InvalidArgumentError('A moment with its zone, such as 2026-05-01T08:00:00Z.');
  }
  return moment;
}
