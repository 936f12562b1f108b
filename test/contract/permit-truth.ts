// What must hold of permits whatever happened before: judged from the records and what the store says of them alone.

import { expect } from 'vitest';
import { type PermitRules, permitsOf } from '../../src/kernel/permits.js';
import { readyOrder, routeKeyOf } from '../../src/kernel/placement.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { TaskStore } from '../../src/store/task-store.js';

/** @param records every task of the store, in admission order. Limits are those of the rules, and always were. */
export async function checkPermits(
  store: TaskStore,
  records: readonly TaskRecord[],
  rules: PermitRules,
): Promise<void> {
  const order = new Map(records.map(({ admission }, at) => [admission.taskId, at]));
  const before = (one: TaskRecord, other: TaskRecord): boolean => {
    const [left, right] = [readyOrder(one) ?? 0, readyOrder(other) ?? 0];
    if (left !== right) return left < right;
    return (order.get(one.admission.taskId) ?? 0) < (order.get(other.admission.taskId) ?? 0);
  };
  const needs = (name: string) => (record: TaskRecord) =>
    permitsOf(record.admission, rules).some((permit) => permit.name === name);
  const ready = await readyTasks(store, records);
  const queued = records.filter((record) => readyOrder(record) !== null);
  const running = records.filter(({ status }) => status === 'running');

  for (const permit of await store.permits(null, 10_000)) {
    expect(permit.running, permit.name).toBe(running.filter(needs(permit.name)).length);
    expect(permit.running, permit.name).toBeLessThanOrEqual(permit.limit);
    expect(permit.settled, `${permit.name} has room for those who wait, and for no more`).toBe(true);
  }
  for (const record of queued) {
    const { taskId } = record.admission;
    const wait = await store.permitWait(taskId);
    expect([taskId, wait === null], 'it is ready or waits').toEqual([taskId, ready.has(taskId)]);
    for (const holder of wait?.holders ?? []) {
      expect(
        running.map(({ admission }) => admission.taskId),
        `${taskId} waits for`,
      ).toContain(holder);
    }
  }
  expect([...ready].filter((taskId) => !queued.some(({ admission }) => admission.taskId === taskId))).toEqual([]);

  // Where every task of a permit needs nothing else, who is ready needs no history: of each route the first, as many as
  // there is room for.
  const lines = new Map<string, { readonly limit: number; readonly alone: boolean }>();
  for (const { admission } of [...queued, ...running]) {
    const permits = permitsOf(admission, rules);
    for (const { name, limit } of permits) {
      lines.set(name, { limit, alone: (lines.get(name)?.alone ?? true) && permits.length === 1 });
    }
  }
  for (const [name, { limit, alone }] of lines) {
    if (!alone) continue;
    const room = Math.max(limit - running.filter(needs(name)).length, 0);
    for (const route of new Set(queued.map(({ admission }) => routeKeyOf(admission)))) {
      const line = queued.filter((record) => needs(name)(record) && routeKeyOf(record.admission) === route);
      const ids = line.sort((left, right) => (before(left, right) ? -1 : 1)).map(({ admission }) => admission.taskId);
      expect(ids.filter((taskId) => ready.has(taskId))).toEqual(ids.slice(0, room));
    }
  }
}

async function readyTasks(store: TaskStore, records: readonly TaskRecord[]): Promise<ReadonlySet<string>> {
  const routes = new Set(records.map(({ admission }) => routeKeyOf(admission)));
  const ready = await Promise.all([...routes].map((route) => store.readyTasks(route, null, 100_000)));
  return new Set(ready.flat().map(({ taskId }) => taskId));
}
