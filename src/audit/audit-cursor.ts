/**
 * Where an audit of a store goes on: among the tasks, then among the keys, the sessions and the permits. As text it is what a
 * page token carries; nobody else makes one.
 */
import type { KeyName } from '../store/audit-rows.js';
import { integerOf, integerOrNull, parsed, textOf, tupleOf } from '../store/decode-guards.js';
import type { Tally } from './tally.js';

export type AuditCursor =
  /** `after`: an admission order, or how many of those named were looked at. `tally`: of a whole store. */
  | { readonly part: 'tasks'; readonly after: number; readonly tally: Tally | null }
  | { readonly part: 'keys'; readonly after: KeyName | null }
  | { readonly part: 'sessions' | 'permits'; readonly after: string | null };

export function encodeCursor(cursor: AuditCursor): string {
  switch (cursor.part) {
    case 'tasks': {
      const { after, tally } = cursor;
      return JSON.stringify([
        'tasks',
        after,
        tally && [tally.horizon, tally.purges, tally.tombstones, tally.events, tally.highest],
      ]);
    }
    case 'keys':
      return JSON.stringify(['keys', cursor.after && [cursor.after.namespace, cursor.after.idempotencyKey]]);
    case 'sessions':
    case 'permits':
      return JSON.stringify([cursor.part, cursor.after]);
  }
}

/** Throws `Damage` for what `encodeCursor` did not make. */
export function decodeCursor(text: string): AuditCursor {
  const [part, after, tally = null] = tupleOf(parsed(text, 'cursor'), 'cursor');
  if (part === 'tasks') {
    return { part, after: integerOf(after, 'place'), tally: tally === null ? null : tallyOf(tally) };
  }
  if (part === 'keys') return { part, after: after === null ? null : keyOf(after) };
  const name = after === null ? null : textOf(after, 'name');
  return { part: part === 'permits' ? 'permits' : 'sessions', after: name };
}

function tallyOf(value: unknown): Tally {
  const [horizon, purges, tombstones, events, highest] = tupleOf(value, 'tally');
  return {
    // What was no number when it was read is none in JSON either.
    horizon: integerOrNull(horizon, 'horizon') ?? Number.NaN,
    purges: integerOrNull(purges, 'purges') ?? Number.NaN,
    tombstones: integerOf(tombstones, 'tombstones'),
    events: integerOrNull(events, 'events'),
    highest: integerOf(highest, 'sequence'),
  };
}

function keyOf(value: unknown): KeyName {
  const [namespace, idempotencyKey] = tupleOf(value, 'key');
  return { namespace: textOf(namespace, 'namespace'), idempotencyKey: textOf(idempotencyKey, 'key') };
}
