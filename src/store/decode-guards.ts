/**
 * Guards for reading stored text: each turns an unknown value into the type expected or reports damage.
 * Decoders throw `Damage` among themselves and never further: `decoded` turns it into a value at their edge, so that
 * one unreadable row is one refused task and not a failed store.
 */

export type Decoded<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly detail: string };

/** What is stored is not what the codec writes. The message says where, never what: stored content stays out of logs. */
export class Damage extends Error {}

export function decoded<T>(read: () => T): Decoded<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof Damage || error instanceof SyntaxError) return { ok: false, detail: error.message };
    throw error;
  }
}

/** Parses JSON; a syntax error is reported without the text around it. */
export function parsed(json: string, what: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new Damage(`${what} is not JSON`);
  }
}

export function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new Damage(`${what} is not a text`);
  return value;
}

export function textOrNull(value: unknown, what: string): string | null {
  return value === null || value === undefined ? null : textOf(value, what);
}

export function textsOf(value: unknown, what: string): readonly string[] {
  return tupleOf(value, what).map((item) => textOf(item, what));
}

/** A map as `quotedMap` writes it; absent, it is empty. */
export function textMapOf(value: unknown, what: string): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  const flat = textsOf(value, what);
  const entries: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) entries.push([textOf(flat[i], what), textOf(flat[i + 1], what)]);
  return Object.fromEntries(entries);
}

export function integerOf(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw new Damage(`${what} is not an integer`);
  return value;
}

export function integerOrNull(value: unknown, what: string): number | null {
  return value === null || value === undefined ? null : integerOf(value, what);
}

/** An integer whose default, the one most rows have, is not written. */
export function integerOr(value: unknown, otherwise: number, what: string): number {
  return value === undefined || value === null ? otherwise : integerOf(value, what);
}

export function numberOf(value: unknown, what: string): number {
  if (typeof value !== 'number') throw new Damage(`${what} is not a number`);
  return value;
}

export function numberOrNull(value: unknown, what: string): number | null {
  return value === null || value === undefined ? null : numberOf(value, what);
}

/** Flags are written as 1 or 0; what is absent is `otherwise`. */
export function flagOf(value: unknown, otherwise: boolean, what: string): boolean {
  if (value === undefined || value === null) return otherwise;
  if (value !== 0 && value !== 1) throw new Damage(`${what} is not a flag`);
  return value === 1;
}

export function tupleOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Damage(`${what} is not a list`);
  return value;
}

export function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new Damage(`${what} is not an object`);
  return value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function nameOf<Name extends string>(names: readonly (Name | undefined)[], code: unknown, what: string): Name {
  const name = typeof code === 'number' ? names[code] : undefined;
  if (name === undefined) throw new Damage(`${what} has no such code`);
  return name;
}
