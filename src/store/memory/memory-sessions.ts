/**
 * Sessions in the memory store: rows by id, and the reads that an index serves in the others. What a write may do was
 * judged before (session-guards.ts).
 */
import { MAX_TASKS_NAMED_AT_END, type SessionRow } from '../commit-plan.js';
import { countedAtEnd } from '../session-guards.js';
import { deepFreeze } from '../../lib/deep-freeze.js';

export class MemorySessions {
  private readonly rows = new Map<string, SessionRow>();

  /** `tasksOf`: whose lease a session holds, in admission order. */
  constructor(private readonly tasksOf: (sessionId: string) => readonly { readonly taskId: string }[]) {}

  get(sessionId: string): SessionRow | undefined {
    return this.rows.get(sessionId);
  }

  put(row: SessionRow): void {
    const counted = countedAtEnd(row, (sessionId) => {
      const held = this.tasksOf(sessionId);
      return { held: held.length, taskIds: held.slice(0, MAX_TASKS_NAMED_AT_END).map(({ taskId }) => taskId) };
    });
    this.rows.set(row.sessionId, deepFreeze(counted));
  }

  /** By id. */
  all(): readonly SessionRow[] {
    return [...this.rows.values()].sort(byId);
  }

  alive(expiredBefore: number | null, limit: number): readonly SessionRow[] {
    return [...this.rows.values()]
      .filter((row) => row.state !== 'gone' && (expiredBefore === null || row.expiresAt < expiredBefore))
      .sort((left, right) => left.expiresAt - right.expiresAt || byId(left, right))
      .slice(0, limit);
  }

  ahead(now: number, limit: number): readonly SessionRow[] {
    return [...this.rows.values()]
      .filter((row) => row.state !== 'gone' && row.expiresAt > now + row.ttlMs)
      .sort((left, right) => right.expiresAt - left.expiresAt || byId(left, right))
      .slice(0, limit);
  }

  gone(afterId: string | null, limit: number): readonly SessionRow[] {
    return [...this.rows.values()]
      .filter(({ state, sessionId }) => state === 'gone' && (afterId === null || sessionId > afterId))
      .sort(byId)
      .slice(0, limit);
  }

  /** All of them in one step: nothing here is large. */
  forget(now: number, most: number): void {
    const gone = [...this.rows.values()].filter(({ state }) => state === 'gone');
    gone.sort((left, right) => forgetAtOf(left) - forgetAtOf(right) || byId(left, right));
    for (const [at, row] of gone.entries()) {
      const may = forgetAtOf(row) <= now || at < gone.length - most;
      if (may && this.tasksOf(row.sessionId).length === 0) this.rows.delete(row.sessionId);
    }
  }
}

function forgetAtOf({ ended }: SessionRow): number {
  return ended?.forgetAt ?? 0;
}

function byId(left: SessionRow, right: SessionRow): number {
  return left.sessionId < right.sessionId ? -1 : 1;
}
