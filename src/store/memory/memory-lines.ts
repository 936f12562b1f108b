/**
 * The lines of one permit in the memory store: who of which route stands in which state, kept in order, so that who comes
 * first and who last is at hand however long the line is.
 */
import type { PermitPlace, PermitRow, PermitRowState } from '../permit-rules.js';

type Line = PermitPlace[];

export class MemoryLines {
  /** By state, then by route; none is empty. */
  private readonly lines = new Map<PermitRowState, Map<number, Line>>();

  add(task: number, { state, route, readyOrder }: PermitRow): void {
    const routes = this.lines.get(state) ?? new Map<number, Line>();
    this.lines.set(state, routes);
    const line = routes.get(route) ?? [];
    routes.set(route, line);
    const place = { task, readyOrder };
    line.splice(firstFrom(line, place), 0, place);
  }

  remove(task: number, { state, route, readyOrder }: PermitRow): void {
    const line = this.of(state, route);
    const at = firstFrom(line, { task, readyOrder });
    if (line[at]?.task === task) line.splice(at, 1);
    if (line.length === 0) this.lines.get(state)?.delete(route);
  }

  first(state: PermitRowState, route: number): PermitPlace | null {
    return this.of(state, route)[0] ?? null;
  }

  last(state: PermitRowState, route: number): PermitPlace | null {
    return this.of(state, route).at(-1) ?? null;
  }

  /** How many stand before this place. */
  ahead(state: PermitRowState, route: number, place: PermitPlace): number {
    return firstFrom(this.of(state, route), place);
  }

  isAnybody(state: PermitRowState): boolean {
    return (this.lines.get(state)?.size ?? 0) > 0;
  }

  /** Of all routes, in order. */
  all(state: PermitRowState): readonly PermitPlace[] {
    return [...(this.lines.get(state)?.values() ?? [])].flat().sort(comparePlaces);
  }

  /** How many stand there, by route. */
  counts(state: PermitRowState): readonly (readonly [number, number])[] {
    return [...(this.lines.get(state) ?? [])].map(([route, line]) => [route, line.length]);
  }

  private of(state: PermitRowState, route: number): Line {
    return this.lines.get(state)?.get(route) ?? [];
  }
}

/** Where the first stands that comes not before this place. */
function firstFrom(line: Line, place: PermitPlace): number {
  let [from, to] = [0, line.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const one = line[middle];
    if (one !== undefined && comparePlaces(one, place) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function comparePlaces(left: PermitPlace, right: PermitPlace): number {
  return left.readyOrder - right.readyOrder || left.task - right.task;
}
