/**
 * Canonical JSON (RFC 8785): the one text of a value, for hashing, storing and comparing.
 *
 * Owns the canonical form of plain JavaScript values, for callers in the process and for google.protobuf.Struct, under
 * the same limits and refusals as text (lifecycle.md section 5). It refuses what JSON.stringify would silently change:
 * NaN to null, undefined to nothing, a Date to text. It never throws.
 */

import { canonicalNumber } from './json-number.js';
import { jsonPointer, MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_JSON_ITEMS } from './json-problem.js';
import type { JsonOutcome, JsonRoot } from './json-problem.js';
import { exceedsUtf8Bytes, hasLoneSurrogate } from './text-rules.js';

/**
 * The canonical text of a plain value: null, booleans, finite numbers within ±(2^53 − 1) when integral, well-formed
 * strings, dense arrays, and objects whose prototype is Object.prototype or null. Limits as for text; the 1 MiB are
 * those of the canonical text, since there is no other.
 */
export function canonicalJson(value: unknown, root: JsonRoot): JsonOutcome {
  const writer = new CanonicalWriter();
  let canonical: string | undefined;
  try {
    canonical = writer.document(value, root);
  } catch {
    // Only the caller's own code can bring us here: a getter or a proxy that throws.
    return { ok: false, problem: { detail: 'reading the value threw an error', pointer: '' } };
  }
  if (canonical === undefined) return { ok: false, problem: writer.problem() };
  if (exceedsUtf8Bytes(canonical, MAX_JSON_BYTES)) {
    return {
      ok: false,
      problem: {
        detail: `the canonical text is longer than ${MAX_JSON_BYTES} bytes of UTF-8`,
        pointer: '',
      },
    };
  }
  return { ok: true, canonical };
}

/** A well-formed string as canonical JSON: ECMAScript's escapes are RFC 8785's (section 3.2.2.2). */
export function canonicalString(value: string): string {
  return JSON.stringify(value);
}

/** Members in canonical order: by UTF-16 code units (RFC 8785 section 3.2.3), as ECMAScript compares strings. */
export function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Methods answer canonical text, or undefined after `fail`; callers then add their step to the path on the way out. */
class CanonicalWriter {
  private depth = 0;
  private items = 0;
  private size = 0;
  private detail = '';
  private readonly pathFromInside: (string | number)[] = [];

  document(value: unknown, root: JsonRoot): string | undefined {
    if (root === 'object' && !isPlainObject(value)) return this.fail('a JSON object is required');
    return this.value(value);
  }

  problem(): { readonly detail: string; readonly pointer: string } {
    return { detail: this.detail, pointer: jsonPointer(this.pathFromInside.toReversed()) };
  }

  private value(value: unknown): string | undefined {
    switch (typeof value) {
      case 'string':
        return this.string(value);
      case 'number':
        return canonicalNumber(value) ?? this.fail(numberRefusal(value));
      case 'boolean':
        return String(value);
      case 'object':
        if (value === null) return 'null';
        if (Array.isArray(value)) return this.array(value);
        if (isPlainObject(value)) return this.object(value);
        return this.fail('only plain objects and arrays have a JSON form');
      default:
        return this.fail(`a value of type ${typeof value} has no JSON form`);
    }
  }

  private string(value: string): string | undefined {
    this.size += value.length;
    if (this.size > MAX_JSON_BYTES) return this.fail(`the value is longer than ${MAX_JSON_BYTES} bytes of UTF-8`);
    return hasLoneSurrogate(value) ? this.fail('a lone surrogate has no UTF-8 form') : canonicalString(value);
  }

  private array(elements: readonly unknown[]): string | undefined {
    if (!this.enter(elements.length)) return undefined;
    let text = '';
    for (let index = 0; index < elements.length; index += 1) {
      const element = this.value(elements[index]);
      if (element === undefined) return this.failedAt(index);
      text += index === 0 ? element : `,${element}`;
    }
    this.depth -= 1;
    return `[${text}]`;
  }

  private object(members: Readonly<Record<string, unknown>>): string | undefined {
    const names = Object.keys(members);
    if (!this.enter(names.length)) return undefined;
    let text = '';
    for (const name of names.sort(byCodeUnits)) {
      const nameText = this.string(name);
      if (nameText === undefined) return undefined;
      const value = this.value(members[name]);
      if (value === undefined) return this.failedAt(name);
      text += `${text === '' ? '' : ','}${nameText}:${value}`;
    }
    this.depth -= 1;
    return `{${text}}`;
  }

  private enter(items: number): boolean {
    this.depth += 1;
    this.items += items;
    if (this.depth > MAX_JSON_DEPTH) this.fail(`nested deeper than ${MAX_JSON_DEPTH} levels`);
    else if (this.items > MAX_JSON_ITEMS) this.fail(`more than ${MAX_JSON_ITEMS} members and elements in all`);
    return this.detail === '';
  }

  private fail(detail: string): undefined {
    this.detail = detail;
    return undefined;
  }

  private failedAt(step: string | number): undefined {
    this.pathFromInside.push(step);
    return undefined;
  }
}

function numberRefusal(value: number): string {
  return Number.isFinite(value)
    ? 'integers beyond ±(2^53 − 1) are not exact for every reader; send it as a string'
    : `${String(value)} has no JSON form`;
}

/** Objects of another realm (a worker, a vm) are refused too: they cannot be told from class instances. */
function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
