/**
 * Who may be claimed of those that need a permit, one truth for all adapters: a mechanical rule over their tables, run in
 * the transaction that makes it necessary. Only running tasks hold a permit. Those that queue stand in lines, one per
 * permit and route (tasks of one route suit the same workers); of each line as many pass as the permit has room for, the
 * first of them, and stand in the line of their next permit or, behind the last, in the ready index. Whoever is claimed
 * takes the room, and the surplus of the other lines goes back into line. So a task that nobody serves keeps nobody of
 * another route waiting.
 */
import type { Alignment, PermitRoom, PermitWish, PermitWrite } from './permit-rows.js';

/** By admission order. */
type Task = number;
/** The route of a task, as the adapter numbers it. */
type Route = number;

/**
 * `to_come`: its turn to stand in line for this one has not come. `aside`: its record is damaged, it is in no line until
 * it is repaired. Only `running` holds the permit.
 */
export type PermitRowState = 'waiting' | 'passed' | 'running' | 'to_come' | 'aside';

/** One task's standing for one permit. */
export interface PermitRow {
  readonly name: string;
  readonly route: Route;
  readonly state: PermitRowState;
  /** Smaller first; then admission order. */
  readonly readyOrder: number;
}

export interface PermitPlace {
  readonly task: Task;
  readonly readyOrder: number;
}

/** How many of a line are `passed`, and how many `waiting`. */
export interface LineCount {
  readonly passed: number;
  readonly waiting: number;
}

/** The adapter's tables, as the plans before this one left them. */
export interface PermitTables {
  routeOf(task: Task): Route;
  /** In any order. */
  rowsOf(task: Task): readonly PermitRow[];
  /** Writes the row of this task and name, new or not. */
  put(task: Task, row: PermitRow): void;
  remove(task: Task, name: string): void;
  /** Null: nobody holds it, and nobody wants it. */
  countOf(name: string): { readonly limit: number; readonly running: number } | null;
  /** Makes it known, held by nobody, or changes its limit. */
  setLimit(name: string, limit: number): void;
  addRunning(name: string, change: number): void;
  lineOf(name: string, route: Route): LineCount;
  /** A line that comes to nothing is forgotten. */
  addToLine(name: string, route: Route, change: LineCount): void;
  /** At most `most` lines of which more passed than there is room for. */
  linesBeyond(name: string, room: number, most: number): readonly Route[];
  /** At most `most` lines in which somebody waits though there is room. */
  linesShort(name: string, room: number, most: number): readonly Route[];
  firstWaiting(name: string, route: Route): PermitPlace | null;
  lastPassed(name: string, route: Route): PermitPlace | null;
  /** Any of those that have a row of it, in one state or in all. */
  tasksOf(name: string, limit: number, state?: PermitRowState): readonly Task[];
  /** Counts who runs and who stands in its lines anew, by the rows. */
  recount(name: string): void;
  /** Takes away rows of the task that are of no permit that there is. */
  dropOrphans(task: Task): void;
  /** Forgets a name that has no rows. */
  forgetUnused(name: string): void;
  /** Puts the task into the ready index, or takes it out of it. */
  setReady(task: Task, readyOrder: number | null): void;
}

/** What a plan did, as `PermitsMoved` says it. */
export interface PermitChanges {
  readonly ready: readonly PermitPlace[];
  readonly unready: readonly PermitPlace[];
  readonly rooms: readonly PermitRoom[];
  readonly unsettled: readonly string[];
}

const NO_CHANGES: PermitChanges = { ready: [], unready: [], rooms: [], unsettled: [] };

/**
 * Moves in and out of the lines of one permit in one transaction that nobody asked for by name. A claim or an end makes at
 * most one move in each line; what is beyond that is told (`unsettled`) and done in steps of its own.
 */
const MAX_MOVES = 64;

/** The first permit for which a claim finds no room; null when there is room in all. Null task: it is new. */
export function missingPermit(tables: PermitTables, task: Task | null, { needs, claims }: PermitWish): string | null {
  if (!claims) return null;
  const full = needs.filter(({ name, limit }) => (tables.countOf(name)?.running ?? 0) >= limit);
  if (full.length === 0) return null;
  const rows = task === null ? [] : tables.rowsOf(task);
  const own = new Set(rows.filter(({ state }) => state === 'running').map(({ name }) => name));
  return full.find(({ name }) => !own.has(name))?.name ?? null;
}

/** @param taskOf null where there is no such task: nothing is done. */
export function applyPermitWrite(
  tables: PermitTables,
  taskOf: (taskId: string) => Task | null,
  write: PermitWrite,
): PermitChanges {
  switch (write.kind) {
    case 'aligned': {
      const task = taskOf(write.taskId);
      if (task === null) return NO_CHANGES;
      return alignPermits(tables, task, write.readyOrder, write.wish, write.repair);
    }
    case 'aside': {
      const task = taskOf(write.taskId);
      return task === null ? NO_CHANGES : setAside(tables, task);
    }
    case 'limited':
      return limitPermit(tables, write.name, write.limit, write.most);
    case 'dissolved':
      return dissolvePermit(tables, write.name, write.most);
    case 'recalled':
      return recallAside(tables, write.name, write.most);
  }
}

/** Brings a task to where it wants to stand, and whoever is concerned by that. */
function alignPermits(
  tables: PermitTables,
  task: Task,
  readyOrder: number | null,
  wish: PermitWish,
  repair?: Alignment['repair'],
): PermitChanges {
  const turn = new Turn(tables, MAX_MOVES);
  if (repair !== undefined) {
    tables.dropOrphans(task);
    for (const name of new Set([...wish.needs, ...tables.rowsOf(task)].map((one) => one.name))) {
      if (repair === 'rows_and_counts') tables.recount(name);
      turn.touch(name);
    }
  }
  const needs = wish.stance === 'none' ? [] : wish.needs;
  for (const { name, limit } of needs) turn.limit(name, limit);
  const route = needs.length === 0 ? 0 : tables.routeOf(task);
  const rows = new Map<string, PermitRow>();
  for (const row of tables.rowsOf(task)) {
    const stays = needs.some(({ name }) => name === row.name) && row.route === route;
    if (stays) rows.set(row.name, row);
    else turn.leave(task, row);
  }
  if (wish.stance === 'running' || readyOrder === null) {
    // What it runs under and never stood in line for (a label that came to be serialized) it holds all the same.
    for (const { name } of needs) turn.move(task, rows.get(name) ?? blank(name, route, 0), 'running');
    return turn.settle();
  }
  let inLine = false;
  for (const { name } of needs) {
    const row = rows.get(name) ?? blank(name, route, readyOrder);
    const passed = row.state === 'passed';
    turn.move(task, { ...row, readyOrder }, inLine ? 'to_come' : passed ? 'passed' : 'waiting', row);
    inLine ||= !passed;
    // Ready, and no claim of it can be kept: nobody is to be told of it again before there is room.
    const count = tables.countOf(name);
    if (passed && count !== null && count.running >= count.limit) turn.touch(name);
  }
  if (inLine) turn.wait(task);
  else if (needs.length > 0) turn.ready(task, readyOrder);
  return turn.settle();
}

/** Changes a limit and moves at most `most` tasks in and out of its lines. */
function limitPermit(tables: PermitTables, name: string, limit: number, most: number): PermitChanges {
  const turn = new Turn(tables, most);
  if (tables.countOf(name) !== null) {
    tables.setLimit(name, limit);
    turn.touch(name);
  }
  return turn.settle();
}

/** Frees at most `most` tasks of a permit that nobody needs any more. */
function dissolvePermit(tables: PermitTables, name: string, most: number): PermitChanges {
  const turn = new Turn(tables, MAX_MOVES);
  for (const task of tables.tasksOf(name, most)) {
    const row = tables.rowsOf(task).find((one) => one.name === name);
    if (row === undefined) continue;
    turn.leave(task, row);
    // Of one that was set aside nobody would ever recall that it is to be in line, once no permit names it.
    if (row.state === 'waiting' || row.state === 'aside') turn.goOn(task, row);
  }
  return turn.settle();
}

/** Takes a task that cannot be claimed as it is stored out of its line; what runs goes on to hold what it holds. */
function setAside(tables: PermitTables, task: Task): PermitChanges {
  const turn = new Turn(tables, MAX_MOVES);
  const rows = inOrder(tables.rowsOf(task)).filter(({ state }) => state !== 'running');
  rows.forEach((row, at) => turn.move(task, row, at === 0 ? 'aside' : 'to_come'));
  if (rows.length > 0) turn.wait(task);
  return turn.settle();
}

/** Puts at most `most` of those that were set aside into line again: they may have become readable. */
function recallAside(tables: PermitTables, name: string, most: number): PermitChanges {
  const turn = new Turn(tables, MAX_MOVES);
  for (const task of tables.tasksOf(name, most, 'aside')) {
    const row = tables.rowsOf(task).find((one) => one.name === name);
    if (row !== undefined) turn.move(task, row, 'waiting');
  }
  return turn.settle();
}

function blank(name: string, route: Route, readyOrder: number): PermitRow {
  return { name, route, state: 'to_come', readyOrder };
}

function comesBefore(one: PermitPlace, other: PermitPlace): boolean {
  return one.readyOrder === other.readyOrder ? one.task < other.task : one.readyOrder < other.readyOrder;
}

/** The moves of one plan, and the lines that they concern. */
class Turn {
  /** By name, the lines that somebody came to or left; null: all of them, since there is more room or less. */
  private readonly touched = new Map<string, Set<Route> | null>();
  private readonly becameReady = new Map<Task, number>();
  private readonly unready = new Map<Task, number>();
  private readonly rooms: PermitRoom[] = [];
  private readonly unsettled: string[] = [];

  constructor(
    private readonly tables: PermitTables,
    private readonly most: number,
  ) {}

  /** Everything about this permit may be otherwise. */
  touch(name: string): void {
    this.touched.set(name, null);
  }

  limit(name: string, limit: number): void {
    if (this.tables.countOf(name)?.limit === limit) return;
    this.tables.setLimit(name, limit);
    this.touch(name);
  }

  /** @param before the row as it is stored, where `row` has another place. */
  move(task: Task, row: PermitRow, state: PermitRowState, before: PermitRow = row): void {
    const same = state === before.state && row.readyOrder === before.readyOrder;
    if (same && state !== 'to_come') return;
    const moved = { ...row, state };
    this.tables.put(task, moved);
    this.count(before, -1);
    this.count(moved, 1);
  }

  leave(task: Task, row: PermitRow): void {
    this.tables.remove(task, row.name);
    this.count(row, -1);
    this.touchLine(row.name, row.route);
  }

  /** Also one that was ready before it needed a permit. */
  wait(task: Task): void {
    this.tables.setReady(task, null);
    this.becameReady.delete(task);
  }

  ready(task: Task, readyOrder: number): void {
    this.tables.setReady(task, readyOrder);
    this.becameReady.set(task, readyOrder);
    this.unready.delete(task);
  }

  /** It is past this permit: it stands in line for the next, or is ready. */
  goOn(task: Task, { name, readyOrder }: PermitRow): void {
    const next = inOrder(this.tables.rowsOf(task)).find((row) => row.name > name);
    if (next === undefined) this.ready(task, readyOrder);
    else this.move(task, next, 'waiting');
  }

  /**
   * Name after name in their order: what is done for one concerns, beside it, only lines of names that come later. So each
   * is settled once.
   */
  settle(): PermitChanges {
    while (this.touched.size > 0) {
      const name = [...this.touched.keys()].reduce((first, other) => (other < first ? other : first));
      this.settleName(name);
      this.touched.delete(name);
      this.tables.forgetUnused(name);
    }
    const ready = placesOf(this.becameReady);
    // Whoever tells workers of them tells of the first one first: nobody is passed over for ever for its route.
    ready.sort((one, other) => (comesBefore(one, other) ? -1 : 1));
    return { ready, unready: placesOf(this.unready), rooms: this.rooms, unsettled: this.unsettled };
  }

  private settleName(name: string): void {
    const { tables, most } = this;
    const count = tables.countOf(name);
    if (count === null) return;
    const room = Math.max(count.limit - count.running, 0);
    const touched = this.touched.get(name) ?? null;
    let left = most;
    for (const route of touched ?? tables.linesBeyond(name, room, most))
      left = this.settleLine(name, route, room, left);
    if (touched !== null) {
      // No moves are left: whether there was more to do than that, the next step finds.
      if (left === 0) this.unsettled.push(name);
      return;
    }
    this.rooms.push({ name, room });
    for (const route of tables.linesShort(name, room, most)) left = this.settleLine(name, route, room, left);
    const open = tables.linesBeyond(name, room, 1).length + tables.linesShort(name, room, 1).length;
    // Where nothing could be moved the counts are wrong: another step would move nothing either.
    if (open > 0 && left < most) this.unsettled.push(name);
  }

  /** Returns how many of the moves are left. */
  private settleLine(name: string, route: Route, room: number, moves: number): number {
    const { tables } = this;
    for (let left = moves; left > 0; left--) {
      const { passed, waiting } = tables.lineOf(name, route);
      const last = passed === 0 ? null : tables.lastPassed(name, route);
      const first = waiting === 0 ? null : tables.firstWaiting(name, route);
      if (last !== null && (passed > room || (first !== null && passed === room && comesBefore(first, last)))) {
        this.putBack(last, name);
      } else if (first !== null && passed < room) {
        const row: PermitRow = { name, route, state: 'waiting', readyOrder: first.readyOrder };
        this.move(first.task, row, 'passed');
        this.goOn(first.task, row);
      } else return left;
    }
    return 0;
  }

  /** It waits again, and leaves the lines of later names. */
  private putBack({ task, readyOrder }: PermitPlace, name: string): void {
    const rows = this.tables.rowsOf(task);
    if (rows.every(({ state }) => state === 'passed')) this.unready.set(task, readyOrder);
    this.wait(task);
    for (const row of rows) {
      if (row.name === name) this.move(task, row, 'waiting');
      else if (row.name > name && row.state !== 'to_come') this.move(task, row, 'to_come');
    }
  }

  private count({ name, route, state }: PermitRow, by: 1 | -1): void {
    if (state === 'running') {
      this.tables.addRunning(name, by);
      this.touch(name);
    } else if (state === 'passed' || state === 'waiting') {
      const change = state === 'passed' ? { passed: by, waiting: 0 } : { passed: 0, waiting: by };
      this.tables.addToLine(name, route, change);
      this.touchLine(name, route);
    }
  }

  private touchLine(name: string, route: Route): void {
    const lines = this.touched.get(name);
    if (lines === null) return;
    if (lines === undefined) this.touched.set(name, new Set([route]));
    else lines.add(route);
  }
}

function placesOf(places: ReadonlyMap<Task, number>): PermitPlace[] {
  return [...places].map(([task, readyOrder]) => ({ task, readyOrder }));
}

function inOrder(rows: readonly PermitRow[]): readonly PermitRow[] {
  return [...rows].sort((left, right) => (left.name < right.name ? -1 : 1));
}
