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

  for (const { name, limit, held, waited } of await store.permits(null, 10_000)) {
    expect(held, name).toBeLessThanOrEqual(limit);
    expect(running.filter(needs(name)).length, name).toBeLessThanOrEqual(limit);
    if (waited) expect(held, `${name} is free and waited for`).toBe(limit);
  }
  for (const record of queued) {
    const { taskId } = record.admission;
    const wait = await store.permitWait(taskId);
    expect([taskId, wait === null], 'it is ready or waits').toEqual([taskId, ready.has(taskId)]);
    // Nobody who only queues holds what somebody before it waits for.
    const behind = queued.find((other) => wait?.holders.includes(other.admission.taskId) && before(record, other));
    expect(behind?.admission.taskId, `${taskId} waits for`).toBeUndefined();
  }
  expect([...ready].filter((taskId) => !queued.some(({ admission }) => admission.taskId === taskId))).toEqual([]);

  // Where every task of a permit needs nothing else, who is ready needs no history: the first, as many as have room.
  const lines = new Map<string, { readonly limit: number; readonly alone: boolean }>();
  for (const { admission } of [...queued, ...running]) {
    const permits = permitsOf(admission, rules);
    for (const { name, limit } of permits) {
      lines.set(name, { limit, alone: (lines.get(name)?.alone ?? true) && permits.length === 1 });
    }
  }
  for (const [name, { limit, alone }] of lines) {
    if (!alone) continue;
    const line = queued.filter(needs(name)).sort((left, right) => (before(left, right) ? -1 : 1));
    const ids = line.map(({ admission }) => admission.taskId);
    const room = Math.max(limit - running.filter(needs(name)).length, 0);
    expect(ids.filter((taskId) => ready.has(taskId))).toEqual(ids.slice(0, room));
  }
}

async function readyTasks(store: TaskStore, records: readonly TaskRecord[]): Promise<ReadonlySet<string>> {
  const routes = new Set(records.map(({ admission }) => routeKeyOf(admission)));
  const ready = await Promise.all([...routes].map((route) => store.readyTasks(route, null, 100_000)));
  return new Set(ready.flat().map(({ taskId }) => taskId));
}
