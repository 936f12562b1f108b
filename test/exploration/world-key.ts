// What makes two worlds the same: everything that a decision reads, with ids as they are (they are symbols), numbers
// that only grow left out or taken relative to one another, and times by their order alone. The spans of the worlds are
// so far apart that their order says what comes first; exact sums of them are not told apart.

import type { TaskRecord } from '../../src/kernel/record.js';
import { timersOf } from '../../src/kernel/timers.js';
import type { ModelFamily } from './model-store.js';
import { type Cast, isTimed } from './moves.js';
import type { SentClaim, World } from './world.js';

export class WorldKeys {
  /** Values are never changed, so what was written of one stays right. */
  private readonly written = new WeakMap<object, string>();
  private readonly timed: boolean;

  constructor(private readonly cast: Cast) {
    this.timed = isTimed(cast);
  }

  keyOf(world: World): string {
    const { store, claims, telling, clockSteps } = world;
    const { sessions, ledger, family } = store;
    const parts: unknown[] = [clockSteps];
    for (const taskId of this.cast.roles.keys()) {
      const record = store.records.get(taskId);
      parts.push(record === undefined ? '-' : this.once(record, () => this.partsOf(record)));
    }
    if (this.timed) parts.push(orderOfTimes(world));
    parts.push(claims.map((claim) => claimKey(claim, store.records.get(claim.taskId))).sort());
    parts.push(this.once(sessions, () => [...sessions.values()].map(({ state, attachment }) => [state, attachment])));
    parts.push(this.once(ledger, () => [...ledger.keys()].sort()));
    parts.push(this.once(family, () => familyParts(family)));
    if (telling !== null) {
      const { taskId, generation, outcome, eventNumber } = telling.row;
      const current = family.propagations.get(`${taskId} ${generation}`)?.eventNumber === eventNumber;
      parts.push(taskId, generation, outcome, current, telling.pending);
    }
    return JSON.stringify(parts);
  }

  private once(value: object, parts: () => readonly unknown[]): string {
    const known = this.written.get(value);
    if (known !== undefined) return known;
    const key = JSON.stringify(parts());
    this.written.set(value, key);
    return key;
  }

  private partsOf(record: TaskRecord): readonly unknown[] {
    const { lease, endedLease, cancellation, policy } = record;
    const bounded = this.cast.roles.get(record.admission.taskId)?.claims !== null;
    const isSet = (value: unknown): boolean => value !== null;
    return [
      record.status,
      record.generation,
      record.aep,
      // Where claims have no end, attempts spent beyond the last that counts are all the same.
      bounded ? [record.epoch, record.attempt] : Math.min(record.attempt, policy.retry.maxAttempts),
      record.handBacks,
      record.everClaimed,
      record.ownerStopped,
      record.hasChildren,
      record.hasWaiters,
      record.openDependencies,
      isSet(record.startedAt),
      isSet(record.notBeforeAt),
      lease && [lease.sessionId, lease.attemptState, isSet(lease.acceptedAt)],
      endedLease && [endedLease.sessionId, record.epoch - endedLease.epoch],
      cancellation && [
        isSet(cancellation.graceEndsAt),
        isSet(cancellation.deliveredAt),
        isSet(cancellation.acknowledgedAt),
      ],
    ];
  }
}

function familyParts(family: ModelFamily): readonly unknown[] {
  const rows = [family.children, family.edges, family.liveChildren, family.unsatisfied];
  const propagations = [...family.propagations].map(([key, { outcome }]) => `${key} ${outcome}`).sort();
  return [...rows.map((table) => [...table].map(([key, value]) => `${key} ${value}`).sort()), propagations];
}

function claimKey(
  { taskId, sessionId, generation, epoch, answered }: SentClaim,
  record: TaskRecord | undefined,
): string {
  const lease = [record?.lease, record?.endedLease].find((candidate) => candidate?.epoch === epoch);
  const behind = lease === undefined || lease === null ? 0 : Math.sign(answered - lease.eventSeq);
  return `${taskId} ${sessionId} ${generation} ${(record?.epoch ?? 0) - epoch} ${behind}`;
}

/** Every timer and the present moment, in their order. */
function orderOfTimes({ store, now }: World): string {
  const times: { readonly name: string; readonly at: number }[] = [{ name: 'now', at: now }];
  for (const [taskId, record] of store.records) {
    for (const { kind, dueAt } of timersOf(record)) times.push({ name: `${taskId} ${kind}`, at: dueAt });
  }
  times.sort((left, right) => left.at - right.at || (left.name < right.name ? -1 : 1));
  let order = '';
  times.forEach(({ name, at }, index) => (order += `${at === times[index - 1]?.at ? '=' : '<'}${name}`));
  return order;
}
