/**
 * Permits in the memory store: who runs with each, who stands in which line for it, and how many do, as maps.
 */
import type { PermitState, PermitWish, PermitWrite } from '../permit-rows.js';
import {
  type LineCount,
  type PermitChanges,
  type PermitPlace,
  type PermitRow,
  type PermitRowState,
  type PermitTables,
  applyPermitWrite,
  missingPermit,
} from '../permit-rules.js';
import { MemoryLines } from './memory-lines.js';

interface Permit {
  limit: number;
  running: number;
  /** By admission order. */
  readonly rows: Map<number, PermitRow>;
  /** The same rows, in order. */
  readonly places: MemoryLines;
  /** By route. */
  readonly lines: Map<number, LineCount>;
}

export class MemoryPermits implements PermitTables {
  private readonly permits = new Map<string, Permit>();
  private readonly namesOf = new Map<number, Set<string>>();

  constructor(
    private readonly orderOf: (taskId: string) => number | null,
    readonly routeOf: (task: number) => number,
    readonly setReady: (task: number, readyOrder: number | null) => void,
  ) {}

  missing(taskId: string, wish: PermitWish): string | null {
    return missingPermit(this, this.orderOf(taskId), wish);
  }

  write(write: PermitWrite): PermitChanges {
    return applyPermitWrite(this, this.orderOf, write);
  }

  /** In the order of their names, after the one given. */
  states(after: string | null, limit: number): PermitState[] {
    const names = [...this.permits.keys()].filter((name) => after === null || name > after).sort();
    return names.slice(0, limit).flatMap((name) => {
      const permit = this.permits.get(name);
      if (permit === undefined) return [];
      const { limit: most, running, lines, places } = permit;
      const room = Math.max(most - running, 0);
      const settled = this.linesBeyond(name, room, 1).length + this.linesShort(name, room, 1).length === 0;
      return [{ name, limit: most, running, queued: lines.size > 0, settled, aside: places.isAnybody('aside') }];
    });
  }

  holdersOf(name: string): number[] {
    return (
      this.permits
        .get(name)
        ?.places.all('running')
        .map(({ task }) => task) ?? []
    );
  }

  ahead({ name, route, readyOrder }: PermitRow, task: number): number {
    const places = this.permits.get(name)?.places;
    if (places === undefined) return 0;
    const place = { task, readyOrder };
    return places.ahead('passed', route, place) + places.ahead('waiting', route, place);
  }

  rowsOf(task: number): readonly PermitRow[] {
    return [...(this.namesOf.get(task) ?? [])].flatMap((name) => this.permits.get(name)?.rows.get(task) ?? []);
  }

  put(task: number, row: PermitRow): void {
    const permit = this.permits.get(row.name);
    const before = permit?.rows.get(task);
    if (before !== undefined) permit?.places.remove(task, before);
    permit?.rows.set(task, row);
    permit?.places.add(task, row);
    const names = this.namesOf.get(task) ?? new Set<string>();
    this.namesOf.set(task, names.add(row.name));
  }

  remove(task: number, name: string): void {
    const permit = this.permits.get(name);
    const row = permit?.rows.get(task);
    if (row !== undefined) permit?.places.remove(task, row);
    permit?.rows.delete(task);
    this.namesOf.get(task)?.delete(name);
    if (this.namesOf.get(task)?.size === 0) this.namesOf.delete(task);
  }

  countOf(name: string): { readonly limit: number; readonly running: number } | null {
    return this.permits.get(name) ?? null;
  }

  setLimit(name: string, limit: number): void {
    const known = this.permits.get(name);
    if (known !== undefined) known.limit = limit;
    else {
      this.permits.set(name, { limit, running: 0, rows: new Map(), places: new MemoryLines(), lines: new Map() });
    }
  }

  addRunning(name: string, change: number): void {
    const known = this.permits.get(name);
    if (known !== undefined) known.running += change;
  }

  lineOf(name: string, route: number): LineCount {
    return this.permits.get(name)?.lines.get(route) ?? EMPTY_LINE;
  }

  addToLine(name: string, route: number, change: LineCount): void {
    const { passed, waiting } = this.lineOf(name, route);
    const line = { passed: passed + change.passed, waiting: waiting + change.waiting };
    const lines = this.permits.get(name)?.lines;
    if (line.passed === 0 && line.waiting === 0) lines?.delete(route);
    else lines?.set(route, line);
  }

  linesBeyond(name: string, room: number, most: number): readonly number[] {
    return this.linesWhere(name, most, ({ passed }) => passed > room);
  }

  linesShort(name: string, room: number, most: number): readonly number[] {
    return this.linesWhere(name, most, ({ passed, waiting }) => waiting > 0 && passed < room);
  }

  firstWaiting(name: string, route: number): PermitPlace | null {
    return this.permits.get(name)?.places.first('waiting', route) ?? null;
  }

  lastPassed(name: string, route: number): PermitPlace | null {
    return this.permits.get(name)?.places.last('passed', route) ?? null;
  }

  tasksOf(name: string, limit: number, state?: PermitRowState): readonly number[] {
    const rows = [...(this.permits.get(name)?.rows ?? [])].filter(
      ([, row]) => state === undefined || row.state === state,
    );
    return rows
      .map(([task]) => task)
      .sort((left, right) => left - right)
      .slice(0, limit);
  }

  recount(name: string): void {
    const permit = this.permits.get(name);
    if (permit === undefined) return;
    const { places, lines } = permit;
    permit.running = places.all('running').length;
    lines.clear();
    for (const [route, passed] of places.counts('passed')) this.addToLine(name, route, { passed, waiting: 0 });
    for (const [route, waiting] of places.counts('waiting')) this.addToLine(name, route, { passed: 0, waiting });
  }

  /** A row here is always of a permit that there is. */
  dropOrphans(): void {
    return;
  }

  forgetUnused(name: string): void {
    if (this.permits.get(name)?.rows.size === 0) this.permits.delete(name);
  }

  private linesWhere(name: string, most: number, wanted: (line: LineCount) => boolean): number[] {
    const lines = [...(this.permits.get(name)?.lines ?? [])].filter(([, line]) => wanted(line));
    return lines.map(([route]) => route).slice(0, most);
  }
}

const EMPTY_LINE: LineCount = { passed: 0, waiting: 0 };
