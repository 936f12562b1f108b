/**
 * Permits in SQLite: who runs with each, who stands in which line for it, and how many do, by the orders of tasks and the
 * numbers of names and routes. The next in a line is one step into its index, however long the line is, and so is a line
 * that wants a move. Only plans of tasks that need a permit come here. Numbers of names are forgotten with their last row
 * and may be given again.
 */
import type { Database } from 'better-sqlite3';
import { PERMIT_STATES, PERMIT_STATE_CODES } from '../code-tables.js';
import type { PermitWait } from '../../kernel/permits.js';
import {
  MAX_AHEAD_COUNTED,
  MAX_HOLDERS_NAMED,
  type PermitState,
  type PermitWish,
  type PermitWrite,
  type PermitsMoved,
  type TaskReady,
} from '../permit-rows.js';
import {
  type LineCount,
  type PermitPlace,
  type PermitRow,
  type PermitRowState,
  type PermitTables as Tables,
  applyPermitWrite,
  missingPermit,
} from '../permit-rules.js';
import type { KnownTasks } from './known-tasks.js';
import { type PermitStatements, permitStatements } from './permit-statements.js';

export class PermitTables implements Tables {
  private readonly statements: PermitStatements;

  constructor(
    db: Database,
    private readonly tasks: KnownTasks,
  ) {
    this.statements = permitStatements(db);
  }

  missing(taskId: string, wish: PermitWish): string | null {
    return missingPermit(this, this.tasks.get(taskId)?.order ?? null, wish);
  }

  write(write: PermitWrite): PermitsMoved {
    const taskOf = (taskId: string): number | null => this.tasks.get(taskId)?.order ?? null;
    const { ready, unready, ...others } = applyPermitWrite(this, taskOf, write);
    const taskAt = (place: PermitPlace): TaskReady[] => this.taskAt(place);
    return { ready: ready.flatMap(taskAt), unready: unready.flatMap(taskAt), ...others };
  }

  /** In the order of their names, after the one given. */
  states(after: string | null, limit: number): PermitState[] {
    return this.statements.states
      .all(PERMIT_STATE_CODES.aside, after ?? '', limit)
      .map(([name, most, running, queued, settled, aside]) => ({
        name,
        limit: most,
        running,
        queued: queued === 1,
        settled: settled === 1,
        aside: aside === 1,
      }));
  }

  /** What a task waits for; null when it waits for no permit. */
  waitOf(taskId: string): PermitWait | null {
    const { statements } = this;
    const task = this.tasks.get(taskId)?.order ?? 0;
    const row = this.rowsOf(task).find(({ state }) => state === 'waiting');
    const count = row === undefined ? null : this.countOf(row.name);
    if (row === undefined || count === null) return null;
    const { name, route, readyOrder } = row;
    const before = (state: PermitRowState): number =>
      statements.ahead.get(name, PERMIT_STATE_CODES[state], route, readyOrder, task, MAX_AHEAD_COUNTED) ?? 0;
    const ahead = Math.min(before('passed') + before('waiting'), MAX_AHEAD_COUNTED);
    return {
      name,
      ...count,
      holders: statements.holders.all(name, PERMIT_STATE_CODES.running, MAX_HOLDERS_NAMED),
      ahead,
      aheadIsAtLeast: ahead === MAX_AHEAD_COUNTED,
    };
  }

  routeOf(task: number): number {
    return this.statements.routeOf.get(task) ?? 0;
  }

  rowsOf(task: number): readonly PermitRow[] {
    return (
      this.statements.rowsOf
        .all(task)
        // What cannot be read has nothing, and is written anew with its task.
        .map(([name, route, state, readyOrder]) => ({
          name,
          route,
          state: PERMIT_STATES[state] ?? 'to_come',
          readyOrder,
        }))
    );
  }

  put(task: number, { name, route, state, readyOrder }: PermitRow): void {
    this.statements.put.run(task, route, PERMIT_STATE_CODES[state], readyOrder, name);
  }

  remove(task: number, name: string): void {
    this.statements.remove.run(task, name);
  }

  countOf(name: string): { readonly limit: number; readonly running: number } | null {
    const row = this.statements.countOf.get(name);
    return row === undefined ? null : { limit: row[0], running: row[1] };
  }

  setLimit(name: string, limit: number): void {
    this.statements.setLimit.run(name, limit);
  }

  addRunning(name: string, change: number): void {
    this.statements.addRunning.run(change, name);
  }

  lineOf(name: string, route: number): LineCount {
    const [passed, waiting] = this.statements.lineOf.get(name, route) ?? [0, 0];
    return { passed, waiting };
  }

  addToLine(name: string, route: number, { passed, waiting }: LineCount): void {
    this.statements.addToLine.run(route, passed, waiting, name);
    if (passed < 0 || waiting < 0) this.statements.dropEmptyLine.run(name, route);
  }

  linesBeyond(name: string, room: number, most: number): readonly number[] {
    return this.statements.linesBeyond.all(name, room, most);
  }

  linesShort(name: string, room: number, most: number): readonly number[] {
    return this.statements.linesShort.all(name, room, most);
  }

  firstWaiting(name: string, route: number): PermitPlace | null {
    return placeOf(this.statements.first.get(name, PERMIT_STATE_CODES.waiting, route));
  }

  lastPassed(name: string, route: number): PermitPlace | null {
    return placeOf(this.statements.last.get(name, PERMIT_STATE_CODES.passed, route));
  }

  tasksOf(name: string, limit: number, state?: PermitRowState): readonly number[] {
    const { tasksIn, tasksOf } = this.statements;
    return state === undefined ? tasksOf.all(name, limit) : tasksIn.all(name, PERMIT_STATE_CODES[state], limit);
  }

  recount(name: string): void {
    this.statements.recount.run(name);
    this.statements.dropLines.run(name);
    this.statements.findLines.run(name);
  }

  dropOrphans(task: number): void {
    this.statements.dropOrphans.run(task);
  }

  forgetUnused(name: string): void {
    this.statements.forgetUnused.run(name);
  }

  setReady(task: number, readyOrder: number | null): void {
    this.statements.setReady.run(readyOrder, task);
  }

  private taskAt({ task, readyOrder }: PermitPlace): TaskReady[] {
    const row = this.statements.nameAndRoute.get(task);
    return row === undefined ? [] : [{ taskId: row[0], routeKey: row[1], readyOrder }];
  }
}

function placeOf(row: [number, number] | undefined): PermitPlace | null {
  return row === undefined ? null : { task: row[0], readyOrder: row[1] };
}
