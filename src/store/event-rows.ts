/**
 * Pages of events in scope as the SQL adapters read them, turned into what the port returns. What cannot be read is
 * left out and named: one damaged task must not hide the others.
 */
import type { Admission } from '../kernel/record.js';
import { decodeAdmission } from './admission-codec.js';
import { decoded, textOf } from './decode-guards.js';
import type { EventPage, Purges, ScopedEvent } from './event-pages.js';
import { decodeEvents } from './history-codec.js';
import { historyPage } from './history-page.js';
import type { HistoryRow } from './stored-row.js';

export interface ScopedRows extends Purges {
  /** By task id. */
  readonly rows: readonly (readonly [string, HistoryRow])[];
  /** Of each task in `rows`, without its args; null where there is none. */
  readonly admissions: readonly (readonly [string, string | null])[];
  /** Null: as far as the last of the rows goes. */
  readonly through: number | null;
  readonly more: boolean;
}

export function eventPage(read: ScopedRows, after: number, limit: number, maxBytes: number): EventPage {
  const damaged = new Set<string>();
  const found: ScopedEvent[] = [];
  const admissions = new Map(read.admissions);
  const known = new Map<string, Admission | null>();
  let last = after;
  for (const [taskId, [first, lastNumber, text, link]] of read.rows) {
    const stored = admissions.get(taskId) ?? null;
    const admission = known.has(taskId) ? (known.get(taskId) ?? null) : admissionOf(taskId, stored);
    known.set(taskId, admission);
    const events = decoded(() => decodeEvents(textOf(text, 'history row'), lastNumber));
    if (admission === null || !events.ok) damaged.add(taskId);
    last = Math.max(last, first + (events.ok ? events.value.length : 1) - 1);
    if (admission === null || !events.ok) continue;
    for (const [at, event] of events.value.entries()) {
      const sequence = first + at;
      if (sequence > after) found.push({ sequence, taskId, event, link, admission });
    }
  }
  const { horizon, purges } = read;
  const events = historyPage(found, limit, maxBytes);
  const cut = events.length < found.length;
  const through = cut ? (events.at(-1)?.sequence ?? after) : (read.through ?? last);
  return { events, through, more: cut || read.more, horizon, purges, damaged: [...damaged] };
}

function admissionOf(taskId: string, stored: string | null): Admission | null {
  const admission = decoded(() => decodeAdmission(taskId, textOf(stored, 'admission'), 'without_args'));
  return admission.ok ? admission.value : null;
}
