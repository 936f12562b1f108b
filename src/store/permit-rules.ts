/**
 * Who gets a permit, one truth for all adapters: a mechanical rule over their tables, run in the transaction that makes
 * it necessary. A task stands in line for its permits one after the other, in the order of their names; it holds what
 * it got while it is queued or running, and gives back everything when it is neither. Whoever holds all is ready.
 * Where a permit is full, a waiter takes the place of a holder that is only queued and stands behind it.
 */
import type { PermitWish } from './permit-rows.js';

/** By admission order. */
type Task = number;

/** `to_come`: it is not its turn to stand in line for this one yet. */
export type PermitRowState = 'waiting' | 'queued' | 'running' | 'to_come';

/** One task's standing for one permit. `queued` and `running` hold it. */
export interface PermitRow {
  readonly name: string;
  readonly state: PermitRowState;
  /** Smaller first; then admission order. */
  readonly readyOrder: number;
}

export interface PermitPlace {
  readonly task: Task;
  readonly readyOrder: number;
}

/** The adapter's tables, as the plans before this one left them. */
export interface PermitTables {
  /** In any order. */
  rowsOf(task: Task): readonly PermitRow[];
  /** Writes the row of this task and name, new or not. */
  put(task: Task, row: PermitRow): void;
  remove(task: Task, name: string): void;
  /** Null: nobody holds it, and nobody wants it. */
  countOf(name: string): { readonly limit: number; readonly held: number } | null;
  /** Makes it known, held by nobody, or changes its limit. */
  setLimit(name: string, limit: number): void;
  addHeld(name: string, change: number): void;
  firstWaiting(name: string): PermitPlace | null;
  /** The holder that has the last place of those that do not run. */
  lastQueued(name: string): PermitPlace | null;
  /** Any of those that have a row of it. */
  tasksOf(name: string, limit: number): readonly Task[];
  /** Forgets a name that has no rows. */
  forgetUnused(name: string): void;
  /** Puts the task into the ready index, or takes it out of it. */
  setReady(task: Task, readyOrder: number | null): void;
}

/**
 * Changes of one permit in one transaction that nobody asked for by name: a holder that goes frees one place, so there is
 * mostly one. What is beyond it stays in line until the next change, or until the limits are aligned.
 */
const MAX_MOVES = 16;

/** The first permit that a claim needs and its task does not hold; null when it holds all. Null task: it is new. */
export function missingPermit(tables: PermitTables, task: Task | null, { needs, claims }: PermitWish): string | null {
  if (!claims) return null;
  const rows = task === null ? [] : tables.rowsOf(task);
  const held = new Set(rows.filter(holds).map(({ name }) => name));
  return needs.find(({ name }) => !held.has(name))?.name ?? null;
}

/** Brings a task to where it wants to stand, and whoever is concerned by that. Returns who came to be ready. */
export function alignPermits(
  tables: PermitTables,
  task: Task,
  readyOrder: number | null,
  wish: PermitWish,
): readonly PermitPlace[] {
  const turn = new Turn(tables, MAX_MOVES);
  const needs = wish.stance === 'none' ? [] : wish.needs;
  for (const { name, limit } of needs) if (tables.countOf(name)?.limit !== limit) tables.setLimit(name, limit);
  const rows = new Map(tables.rowsOf(task).map((row) => [row.name, row]));
  for (const row of rows.values()) if (!needs.some(({ name }) => name === row.name)) turn.leave(task, row);
  if (needs.length === 0) return turn.settle();
  if (wish.stance === 'running' || readyOrder === null) {
    // What it runs under and never got (a label that came to be serialized) it holds all the same, beyond the limit.
    for (const { name } of needs) turn.move(task, rows.get(name) ?? blank(name, 0), 'running');
    return turn.settle();
  }
  let inLine = false;
  for (const { name } of needs) {
    const row = { ...(rows.get(name) ?? blank(name, readyOrder)), readyOrder };
    // Nothing is held behind a permit that is waited for: a circle could close over it.
    turn.move(task, row, inLine ? 'to_come' : holds(row) ? 'queued' : 'waiting');
    inLine ||= !holds(row);
  }
  if (inLine) turn.wait(task);
  else turn.ready(task, readyOrder);
  return turn.settle();
}

/** Changes a limit and lets at most `most` of those who wait have what it now allows. */
export function limitPermit(tables: PermitTables, name: string, limit: number, most: number): readonly PermitPlace[] {
  if (tables.countOf(name) === null) return [];
  tables.setLimit(name, limit);
  const turn = new Turn(tables, most);
  turn.touch(name);
  return turn.settle();
}

/** Frees at most `most` tasks of a permit that nobody needs any more. */
export function dissolvePermit(tables: PermitTables, name: string, most: number): readonly PermitPlace[] {
  const turn = new Turn(tables, MAX_MOVES);
  for (const task of tables.tasksOf(name, most)) {
    const row = tables.rowsOf(task).find((one) => one.name === name);
    if (row === undefined) continue;
    turn.leave(task, row);
    if (row.state === 'waiting') turn.goOn(task, row);
  }
  return turn.settle();
}

function holds({ state }: PermitRow): boolean {
  return state === 'queued' || state === 'running';
}

function blank(name: string, readyOrder: number): PermitRow {
  return { name, state: 'to_come', readyOrder };
}

function comesBefore(one: PermitPlace, other: PermitPlace): boolean {
  return one.readyOrder === other.readyOrder ? one.task < other.task : one.readyOrder < other.readyOrder;
}

/** The moves of one plan, and the names whose lines they concern. */
class Turn {
  private readonly touched = new Set<string>();
  private readonly becameReady = new Map<Task, number>();

  constructor(
    private readonly tables: PermitTables,
    private readonly most: number,
  ) {}

  touch(name: string): void {
    this.touched.add(name);
  }

  move(task: Task, row: PermitRow, state: PermitRowState): void {
    const moved = { ...row, state };
    this.tables.put(task, moved);
    this.count(row, moved);
    this.touch(row.name);
  }

  leave(task: Task, row: PermitRow): void {
    this.tables.remove(task, row.name);
    if (holds(row)) this.tables.addHeld(row.name, -1);
    this.touch(row.name);
  }

  /** Also one that was ready before it needed a permit. */
  wait(task: Task): void {
    this.tables.setReady(task, null);
    this.becameReady.delete(task);
  }

  ready(task: Task, readyOrder: number): void {
    this.tables.setReady(task, readyOrder);
    this.becameReady.set(task, readyOrder);
  }

  /** It is done with this permit: it stands in line for the next, or is ready. */
  goOn(task: Task, { name, readyOrder }: PermitRow): void {
    const next = inOrder(this.tables.rowsOf(task)).find((row) => row.name > name);
    if (next === undefined) this.ready(task, readyOrder);
    else this.move(task, next, 'waiting');
  }

  /**
   * Name after name in their order: what is done for one concerns, beside it, only names that come later, since nobody
   * holds what comes after a permit that it waits for. So each is settled once.
   */
  settle(): readonly PermitPlace[] {
    while (this.touched.size > 0) {
      const name = [...this.touched].reduce((first, other) => (other < first ? other : first));
      this.settleName(name);
      this.touched.delete(name);
      this.tables.forgetUnused(name);
    }
    return [...this.becameReady].map(([task, readyOrder]) => ({ task, readyOrder }));
  }

  private settleName(name: string): void {
    const { tables } = this;
    for (let moves = 0; moves < this.most; moves++) {
      const count = tables.countOf(name);
      const first = count === null ? null : tables.firstWaiting(name);
      if (count === null || first === null) return;
      if (count.held >= count.limit) {
        const last = tables.lastQueued(name);
        if (last === null || !comesBefore(first, last)) return;
        this.putBack(last, name);
      }
      const row: PermitRow = { name, state: 'waiting', readyOrder: first.readyOrder };
      this.move(first.task, row, 'queued');
      this.goOn(first.task, row);
    }
  }

  /** It waits again, and gives back what it holds of later names. */
  private putBack({ task }: PermitPlace, name: string): void {
    this.wait(task);
    for (const row of this.tables.rowsOf(task)) {
      if (row.name === name) this.move(task, row, 'waiting');
      else if (row.name > name && row.state !== 'to_come') this.move(task, row, 'to_come');
    }
  }

  private count(before: PermitRow, after: PermitRow): void {
    const change = Number(holds(after)) - Number(holds(before));
    if (change !== 0) this.tables.addHeld(after.name, change);
  }
}

function inOrder(rows: readonly PermitRow[]): readonly PermitRow[] {
  return [...rows].sort((left, right) => (left.name < right.name ? -1 : 1));
}
