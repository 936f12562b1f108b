/**
 * Permits in SQLite: who holds each, who waits for it, and how many hold it, by the orders of tasks and the numbers of
 * names. The next in a line is one step into its index, however long the line is. Only plans of tasks that need a permit
 * come here. Numbers of names are forgotten with their last row and may be given again.
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
  type TaskReady,
} from '../permit-rows.js';
import {
  type PermitPlace,
  type PermitRow,
  type PermitTables as Tables,
  alignPermits,
  dissolvePermit,
  limitPermit,
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

  write(write: PermitWrite): readonly TaskReady[] {
    switch (write.kind) {
      case 'aligned': {
        const task = this.tasks.get(write.taskId);
        return task === null ? [] : this.readyTasks(alignPermits(this, task.order, write.readyOrder, write.wish));
      }
      case 'limited':
        return this.readyTasks(limitPermit(this, write.name, write.limit, write.most));
      case 'dissolved':
        return this.readyTasks(dissolvePermit(this, write.name, write.most));
    }
  }

  /** In the order of their names, after the one given. */
  states(after: string | null, limit: number): PermitState[] {
    return this.statements.states
      .all(after ?? '', limit)
      .map(([name, most, held, waited]) => ({ name, limit: most, held, waited: waited === 1 }));
  }

  /** What a task waits for; null when it waits for no permit. */
  waitOf(taskId: string): PermitWait | null {
    const { statements } = this;
    const task = this.tasks.get(taskId)?.order ?? 0;
    const row = this.rowsOf(task).find(({ state }) => state === 'waiting');
    const count = row === undefined ? null : this.countOf(row.name);
    if (row === undefined || count === null) return null;
    const ahead = statements.ahead.get(row.name, row.readyOrder, task, MAX_AHEAD_COUNTED) ?? 0;
    return {
      name: row.name,
      ...count,
      holders: statements.holders.all(row.name, MAX_HOLDERS_NAMED),
      ahead,
      aheadIsAtLeast: ahead === MAX_AHEAD_COUNTED,
    };
  }

  rowsOf(task: number): readonly PermitRow[] {
    return (
      this.statements.rowsOf
        .all(task)
        // What cannot be read has nothing, and stands in line.
        .map(([name, state, readyOrder]) => ({ name, state: PERMIT_STATES[state] ?? 'waiting', readyOrder }))
    );
  }

  put(task: number, { name, state, readyOrder }: PermitRow): void {
    this.statements.put.run(task, PERMIT_STATE_CODES[state], readyOrder, name);
  }

  remove(task: number, name: string): void {
    this.statements.remove.run(task, name);
  }

  countOf(name: string): { readonly limit: number; readonly held: number } | null {
    const row = this.statements.countOf.get(name);
    return row === undefined ? null : { limit: row[0], held: row[1] };
  }

  setLimit(name: string, limit: number): void {
    this.statements.setLimit.run(name, limit);
  }

  addHeld(name: string, change: number): void {
    this.statements.addHeld.run(change, name);
  }

  firstWaiting(name: string): PermitPlace | null {
    return placeOf(this.statements.first.get(name, PERMIT_STATE_CODES.waiting));
  }

  lastQueued(name: string): PermitPlace | null {
    return placeOf(this.statements.last.get(name, PERMIT_STATE_CODES.queued));
  }

  tasksOf(name: string, limit: number): readonly number[] {
    return this.statements.tasksOf.all(name, limit);
  }

  forgetUnused(name: string): void {
    this.statements.forgetUnused.run(name);
  }

  setReady(task: number, readyOrder: number | null): void {
    this.statements.setReady.run(readyOrder, task);
  }

  private readyTasks(places: readonly PermitPlace[]): TaskReady[] {
    return places.flatMap(({ task, readyOrder }) => {
      const row = this.statements.nameAndRoute.get(task);
      return row === undefined ? [] : [{ taskId: row[0], routeKey: row[1], readyOrder }];
    });
  }
}

function placeOf(row: [number, number] | undefined): PermitPlace | null {
  return row === undefined ? null : { task: row[0], readyOrder: row[1] };
}
