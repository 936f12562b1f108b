/**
 * Repairs of what is left of purged tasks in SQLite, because an operator said so, guarded by the tombstone as it was
 * seen. Never brings anything back: at most a name is led to its tombstone again.
 */
import type { Database } from 'better-sqlite3';
import type { TombstoneRepair } from '../purge-rows.js';
import { encodeGivenUp } from '../tombstone-codec.js';
import { tombstoneFingerprint } from './audit-reads.js';
import type { Rederiving } from './rederiving.js';

type Order = number;

export class TombstoneRepairs {
  private readonly statements: ReturnType<typeof repairStatements>;

  constructor(
    db: Database,
    private readonly rederiving: Rederiving,
  ) {
    this.statements = repairStatements(db);
  }

  fits({ taskId, fingerprint }: TombstoneRepair): boolean {
    const seen = this.statements.seen.get(taskId);
    return seen !== undefined && tombstoneFingerprint(seen[0], taskId, seen[1]) === fingerprint;
  }

  /** All but the horizon. The repair was found to fit. */
  write({ taskId, giveUpAt, key, clear }: TombstoneRepair): void {
    const { statements } = this;
    const order = statements.seen.get(taskId)?.[0];
    if (order === undefined) throw new Error(`a checked repair of ${taskId} has no tombstone`);
    if (giveUpAt !== null) statements.giveUp.run(encodeGivenUp(giveUpAt), order);
    if (key !== null) this.rederiving.key(order, key);
    if (!clear) return;
    for (const left of statements.clear) left.run(order);
    statements.sweep.run(order);
  }
}

function repairStatements(db: Database) {
  return {
    seen: db.prepare<[string], [Order, string]>('SELECT task_order, tombstone FROM tombstones WHERE task_id = ?').raw(),
    giveUp: db.prepare<[string, Order]>('UPDATE tombstones SET tombstone = ? WHERE task_order = ?'),
    clear: [
      db.prepare<[Order]>('DELETE FROM children WHERE child_order = ?'),
      db.prepare<[Order]>('DELETE FROM family_counts WHERE task_order = ?'),
      db.prepare<[Order]>('DELETE FROM dependencies WHERE waiter_order = ?'),
      db.prepare<[Order]>('DELETE FROM propagations WHERE task_order = ?'),
    ],
    sweep: db.prepare<[Order]>('INSERT OR IGNORE INTO purging (task_order) VALUES (?)'),
  };
}
