/**
 * The audit of what is left of purged tasks, and of what is left of no task at all: names, what should be gone, and the
 * horizon (docs/decisions/0009). Pure.
 */
import type { Tombstone } from '../kernel/tombstone.js';
import { type AuditedRemains, type AuditedTombstone, SWEPT } from '../store/audit-rows.js';
import { type Finding, Findings, findingBeside } from './findings.js';

/**
 * The last purges of a store may have lost their horizon, and what was given is then less than they say. No further than
 * this: beyond it the tombstone is what is wrong, and no horizon follows it there.
 */
const MAX_SEQUENCES_LOST = 1_000_000;

export function auditRemains({ order, left }: AuditedRemains): readonly Finding[] {
  return [findingBeside('store.rows', `admission order ${order}`, `what is left is ${left.join(', ')}`)];
}

export function auditTombstone(purged: AuditedTombstone): readonly Finding[] {
  const { taskId, tombstone, isGivenUp, order, keyOrder, horizon, given } = purged;
  const findings = new Findings(taskId);
  const left = rowsOfNoUse(purged);
  if (left.length > 0) findings.add('purged.rows', `what is left is ${left.join(', ')}`);
  if (!tombstone.ok) {
    if (!isGivenUp) findings.add('purged.tombstone', tombstone.detail);
    return findings.list();
  }
  const last = lastSequenceOf(purged);
  const isBeyond = last > given + MAX_SEQUENCES_LOST;
  const beyond = `its last event lay at ${last} or above, and ${given} is the highest there is`;
  const contradiction = isBeyond ? beyond : contradictionIn(tombstone.value);
  if (contradiction !== null) findings.add('purged.tombstone', contradiction);
  if (keyOrder !== order) {
    findings.add('purged.key', keyOrder === null ? 'the key leads nowhere' : 'the key leads to another task');
  }
  if (!isBeyond && !(horizon >= last)) {
    findings.add('purged.horizon', `the horizon is ${horizon}, and its last event lay at ${last} or above`);
  }
  return findings.list();
}

/** Below this none of its events can have ended; 0 when that cannot be told. */
export function lastSequenceOf({ tombstone, firstSequence }: AuditedTombstone): number {
  return tombstone.ok && firstSequence > 0 ? firstSequence + tombstone.value.lastEvent - 1 : 0;
}

/** Beside the tombstone. */
function rowsOfNoUse({ left, awaitsSweep }: AuditedTombstone): readonly string[] {
  return awaitsSweep ? left.filter((name) => !SWEPT.includes(name)) : left;
}

const HASH = /^sha256:[0-9a-f]{64}$/;

function contradictionIn(tombstone: Tombstone): string | null {
  const { generation, revision, lastEvent, finishedAt, purgedAt, applicationHash, fieldHashes } = tombstone;
  if (generation < 1) return `generation ${generation}`;
  if (revision < 1 || revision > lastEvent) return `revision ${revision} at event ${lastEvent}`;
  if (purgedAt < finishedAt) return 'it was purged before it had ended';
  if (![applicationHash, ...Object.values(fieldHashes)].every((hash) => HASH.test(hash))) return 'a hash is none';
  return null;
}
