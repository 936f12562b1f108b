/**
 * Permits in the memory store: who holds each, who waits for it, and how many hold it, as maps. Finding the first in a
 * line looks at all of it.
 */
import type { PermitState, PermitWish, PermitWrite } from '../permit-rows.js';
import {
  type PermitPlace,
  type PermitRow,
  type PermitRowState,
  type PermitTables,
  alignPermits,
  dissolvePermit,
  limitPermit,
  missingPermit,
} from '../permit-rules.js';

interface Permit {
  limit: number;
  held: number;
  /** By admission order. */
  readonly rows: Map<number, PermitRow>;
}

export class MemoryPermits implements PermitTables {
  private readonly permits = new Map<string, Permit>();
  private readonly namesOf = new Map<number, Set<string>>();

  constructor(
    private readonly orderOf: (taskId: string) => number | null,
    readonly setReady: (task: number, readyOrder: number | null) => void,
  ) {}

  missing(taskId: string, wish: PermitWish): string | null {
    return missingPermit(this, this.orderOf(taskId), wish);
  }

  write(write: PermitWrite): readonly PermitPlace[] {
    switch (write.kind) {
      case 'aligned': {
        const task = this.orderOf(write.taskId);
        return task === null ? [] : alignPermits(this, task, write.readyOrder, write.wish);
      }
      case 'limited':
        return limitPermit(this, write.name, write.limit, write.most);
      case 'dissolved':
        return dissolvePermit(this, write.name, write.most);
    }
  }

  /** In the order of their names, after the one given. */
  states(after: string | null, limit: number): PermitState[] {
    const names = [...this.permits.keys()].filter((name) => after === null || name > after).sort();
    return names.slice(0, limit).map((name) => {
      const { limit: most = 0, held = 0 } = this.permits.get(name) ?? {};
      return { name, limit: most, held, waited: this.firstWaiting(name) !== null };
    });
  }

  holdersOf(name: string): number[] {
    return [...this.places(name, 'running'), ...this.places(name, 'queued')].map(({ task }) => task);
  }

  ahead(name: string, place: PermitPlace): number {
    return this.places(name, 'waiting').findIndex(({ task }) => task === place.task);
  }

  rowsOf(task: number): readonly PermitRow[] {
    return [...(this.namesOf.get(task) ?? [])].flatMap((name) => this.permits.get(name)?.rows.get(task) ?? []);
  }

  put(task: number, row: PermitRow): void {
    this.permits.get(row.name)?.rows.set(task, row);
    const names = this.namesOf.get(task) ?? new Set<string>();
    this.namesOf.set(task, names.add(row.name));
  }

  remove(task: number, name: string): void {
    this.permits.get(name)?.rows.delete(task);
    this.namesOf.get(task)?.delete(name);
    if (this.namesOf.get(task)?.size === 0) this.namesOf.delete(task);
  }

  countOf(name: string): { readonly limit: number; readonly held: number } | null {
    return this.permits.get(name) ?? null;
  }

  setLimit(name: string, limit: number): void {
    const known = this.permits.get(name);
    if (known === undefined) this.permits.set(name, { limit, held: 0, rows: new Map() });
    else known.limit = limit;
  }

  addHeld(name: string, change: number): void {
    const known = this.permits.get(name);
    if (known !== undefined) known.held += change;
  }

  firstWaiting(name: string): PermitPlace | null {
    return this.places(name, 'waiting')[0] ?? null;
  }

  lastQueued(name: string): PermitPlace | null {
    return this.places(name, 'queued').at(-1) ?? null;
  }

  tasksOf(name: string, limit: number): readonly number[] {
    return [...(this.permits.get(name)?.rows.keys() ?? [])].sort((left, right) => left - right).slice(0, limit);
  }

  forgetUnused(name: string): void {
    if (this.permits.get(name)?.rows.size === 0) this.permits.delete(name);
  }

  /** In order. */
  private places(name: string, state: PermitRowState): PermitPlace[] {
    return [...(this.permits.get(name)?.rows ?? [])]
      .filter(([, row]) => row.state === state)
      .map(([task, { readyOrder }]) => ({ task, readyOrder }))
      .sort((left, right) => left.readyOrder - right.readyOrder || left.task - right.task);
  }
}
