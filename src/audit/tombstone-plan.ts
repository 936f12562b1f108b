/**
 * Deciding on a repair of what is left of a purged task. There is no record and no history to go on from, so that little
 * can be mended: names, what should be gone, and the horizon. A tombstone that cannot be read is given up at most: its
 * key and its id stay taken, because whoever came again with them would otherwise run the same thing twice. Pure.
 */
import type { RepairKind } from '../kernel/event.js';
import type { AuditedTombstone } from '../store/audit-rows.js';
import type { TombstoneRepair } from '../store/purge-rows.js';
import type { Finding } from './findings.js';
import { invariant } from './invariants.js';
import { lastSequenceOf } from './tombstones.js';

export type TombstonePlan =
  | { readonly kind: 'sound' }
  | { readonly kind: 'impossible'; readonly why: string; readonly mendedBy: readonly RepairKind[] }
  | { readonly kind: 'repair'; readonly repair: TombstoneRepair };

export function planTombstone(
  kind: RepairKind,
  purged: AuditedTombstone,
  findings: readonly Finding[],
  now: number,
): TombstonePlan {
  if (findings.length === 0) return { kind: 'sound' };
  const mends = findings.flatMap(({ invariant: name }) => invariant(name).mendedBy);
  if (!mends.includes(kind)) {
    const mendedBy = [...new Set(mends)];
    return { kind: 'impossible', why: 'it does not mend what is wrong with what is left of the task', mendedBy };
  }
  const { taskId, fingerprint, tombstone } = purged;
  const nothing = { taskId, fingerprint, giveUpAt: null, key: null, horizon: 0, clear: false };
  if (kind === 'accept_record') return { kind: 'repair', repair: { ...nothing, giveUpAt: now } };
  const key = tombstone.ok ? keyOf(tombstone.value) : null;
  const hasSunk = findings.some(({ invariant: name }) => name === 'purged.horizon');
  const horizon = hasSunk ? lastSequenceOf(purged) : 0;
  return { kind: 'repair', repair: { ...nothing, key, horizon, clear: true } };
}

function keyOf({ namespace, idempotencyKey }: { readonly namespace: string; readonly idempotencyKey: string }) {
  return { namespace, idempotencyKey };
}
