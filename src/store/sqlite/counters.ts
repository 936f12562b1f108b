/**
 * What the writer counts: the next sequence, the next place in the order of admission, the routes by number, and how far
 * purges have come. Only the last are stored by themselves; the rest follows from the rows. All of it is read at the start
 * and after a roll-back.
 */
import type { Database } from 'better-sqlite3';
import { decoded } from '../decode-guards.js';
import { countEvents } from '../history-codec.js';
import { StoreError } from '../store-error.js';

/** When the last history row can't be read, this many sequences are left out: more than one row could hold. */
const EVENTS_OF_DAMAGED_ROW = 1_000_000;

export class Counters {
  nextSequence = 1;
  nextOrder = 1;
  /** Events up to here may have been purged. */
  horizon = 0;
  /** How many tasks were ever purged. */
  purges = 0;
  readonly routes = new Map<string, number>();

  constructor(private readonly db: Database) {
    this.reload();
  }

  reload(): void {
    const last = this.db
      .prepare<[], [number, string]>('SELECT first_sequence, events FROM history ORDER BY first_sequence DESC LIMIT 1')
      .raw()
      .get();
    this.horizon = this.stored('horizon');
    this.purges = this.stored('purges');
    // The last events may be those of a purged task: a sequence is never given twice.
    this.nextSequence = Math.max(last === undefined ? 1 : last[0] + eventsIn(last[1]), this.horizon + 1);
    // Also what is left of a task whose own row is lost: another must not come to stand on it.
    const order = this.db
      .prepare<[], number | null>(
        `SELECT max(task_order) FROM (
           SELECT max(task_order) AS task_order FROM tasks
           UNION ALL SELECT max(task_order) FROM admissions
           UNION ALL SELECT max(task_order) FROM history
           UNION ALL SELECT max(task_order) FROM tombstones)`,
      )
      .pluck()
      .get();
    this.nextOrder = (order ?? 0) + 1;
    this.routes.clear();
    const routes = this.db.prepare<[], [string, number]>('SELECT route_key, route_id FROM routes').raw();
    for (const [key, id] of routes.iterate()) this.routes.set(key, id);
  }

  /** The first sequence of the next batch: above the horizon, which a repair may have raised over all that was given. */
  beginBatch(): number {
    this.nextSequence = Math.max(this.nextSequence, this.horizon + 1);
    return this.nextSequence;
  }

  private stored(name: 'horizon' | 'purges'): number {
    const text = this.db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name) ?? '0';
    const value = Number(text);
    // Sequences would be given again, or none at all.
    if (!Number.isSafeInteger(value) || value < 0) throw new StoreError('fatal', `meta.${name} cannot be read`);
    return value;
  }
}

function eventsIn(row: string): number {
  const count = decoded(() => countEvents(row));
  return count.ok ? count.value : EVENTS_OF_DAMAGED_ROW;
}
