/**
 * Where two applications under one idempotency key differ, for the answer IDEMPOTENCY_CONFLICT.
 *
 * Owns the comparison by JSON pointer (RFC 6901), from the applications themselves or, when one is purged, from field
 * hashes. It shows places and never values: the reader of the answer need not be the writer of the task. The list is
 * bounded in number and in length, because it travels in an error.
 */

import type { Application } from './application.js';
import { APPLICATION_FIELDS } from './application-hash.js';
import type { ApplicationFieldHashes } from './application-hash.js';
import { byCodeUnits } from './canonical-json.js';
import { jsonPointer } from './json-problem.js';

/** Enough to see what went wrong; 32 pointers of 256 code units fit an error's metadata. */
export const MAX_DIFFERENCE_POINTERS = 32;

export interface ApplicationDifference {
  /** Sorted by UTF-16 code units; a place too deep to name is named by its nearest ancestor. */
  readonly pointers: readonly string[];
  /** There are more than are listed. */
  readonly truncated: boolean;
}

/**
 * Compares field by field; inside args member by member and element by element. A member or element that only one side
 * has differs at its own pointer. `required_capabilities` is a set and differs as a whole.
 */
export function applicationDifference(left: Application, right: Application): ApplicationDifference {
  const found = new FoundPointers();
  if (left.actionKind !== right.actionKind) found.add(['action_kind']);
  if (left.executionTarget !== right.executionTarget) found.add(['execution_target']);
  if (left.libraryContentHash !== right.libraryContentHash) found.add(['library_content_hash']);
  if (left.libraryRef !== right.libraryRef) found.add(['library_ref']);
  if (!sameTexts(left.requiredCapabilities, right.requiredCapabilities)) found.add(['required_capabilities']);
  // Last, because only args can fill the list.
  if (left.argsJson !== right.argsJson) {
    compareValues(parsed(left.argsJson), parsed(right.argsJson), ['args'], found);
  }
  return found.difference();
}

/** The fields whose hashes differ, as top-level pointers: all that can be said of a purged application. */
export function applicationDifferenceByHash(
  left: ApplicationFieldHashes,
  right: ApplicationFieldHashes,
): ApplicationDifference {
  const pointers = APPLICATION_FIELDS.filter((field) => left[field] !== right[field]).map((field) => `/${field}`);
  return { pointers, truncated: false };
}

type Path = readonly (string | number)[];

class FoundPointers {
  private readonly pointers = new Set<string>();
  truncated = false;

  add(path: Path): void {
    const pointer = jsonPointer(path);
    if (this.pointers.has(pointer)) return;
    if (this.pointers.size < MAX_DIFFERENCE_POINTERS) this.pointers.add(pointer);
    else this.truncated = true;
  }

  difference(): ApplicationDifference {
    return { pointers: [...this.pointers].sort(byCodeUnits), truncated: this.truncated };
  }
}

/** Depth is bounded by admission (32), so recursion is safe. */
function compareValues(left: unknown, right: unknown, path: Path, found: FoundPointers): void {
  if (found.truncated || left === right) return;
  if (Array.isArray(left) && Array.isArray(right)) {
    compareMembers(membersOf(left), membersOf(right), path, found, Number);
  } else if (isContainer(left) && isContainer(right) && !Array.isArray(left) && !Array.isArray(right)) {
    compareMembers(membersOf(left), membersOf(right), path, found, String);
  } else {
    found.add(path);
  }
}

function compareMembers(
  left: ReadonlyMap<string, unknown>,
  right: ReadonlyMap<string, unknown>,
  path: Path,
  found: FoundPointers,
  step: (name: string) => string | number,
): void {
  for (const name of new Set([...left.keys(), ...right.keys()])) {
    // A missing member reads as undefined, which no JSON value equals.
    compareValues(left.get(name), right.get(name), [...path, step(name)], found);
  }
}

/** Own members only, by way of a map, so that a member named `__proto__` or `constructor` is a member like any other. */
function membersOf(container: object): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>(Object.entries(container));
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function parsed(argsJson: string): unknown {
  return JSON.parse(argsJson);
}

function sameTexts(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((text, index) => text === right[index]);
}
