// What must hold of a whole world between its transactions, whoever acted last (quality.md, "Invariants": 3, 6, 12, 13
// and 17, and promise C6 for tasks that wait for others). Written from the contract, over the stored rows alone.

import assert from 'node:assert/strict';
import type { TaskRecord } from '../../src/kernel/record.js';
import { isTerminal } from '../../src/kernel/status.js';
import { satisfies } from '../../src/kernel/dependencies.js';
import type { ModelFamily } from './model-store.js';
import { type World, eventsOf, forkOf } from './world.js';

export function checkWorld(world: World): void {
  const { records, sessions } = world.store;
  for (const record of records.values()) {
    if (record.lease !== null) assert.ok(sessions.has(record.lease.sessionId), 'a lease of no session');
    children(world, record);
    waiters(world, record);
  }
  counts(world);
}

/** The records of a world that was not seen before are the folds of their histories, to the last event. */
export function checkHistories({ store, known }: World): void {
  for (const [taskId, record] of store.records) {
    forkOf(known, taskId).checkFold(record, eventsOf(known.histories.get(taskId)));
  }
}

/** 12, 13: an attached child lives under a live, unfenced parent, or somebody is still going to tell it. */
function children({ store, known }: World, record: TaskRecord): void {
  const { taskId, policy } = record.admission;
  const link = policy.parent;
  if (link?.attached !== true) return;
  const parent = store.records.get(link.taskId);
  assert.ok(parent !== undefined, 'a child of nobody');
  assert.equal(store.family.children.get(`${link.taskId} ${taskId}`), !isTerminal(record.status), 'a child counted');
  if (isTerminal(record.status)) return;
  const generation = Number(link.generationId.slice(link.generationId.lastIndexOf('g') + 1));
  const waiting = store.family.propagations.get(`${link.taskId} ${generation}`);
  const end = known.ends.get(`${link.taskId} ${generation}`);
  assert.notEqual(end, 'completed', 'a child lives under a parent that completed');
  if (end !== undefined) assert.equal(waiting?.outcome, end, 'a child lives on, and nobody is going to tell it');
  else if (parent.cancellation !== null && record.cancellation === null) {
    assert.equal(waiting?.outcome, 'cancel_requested', 'a child was not asked, and nobody is going to ask it');
  }
}

/** C6 for what waits: somebody whom it waits for lives, or somebody is going to tell it; and it was let go rightly. */
function waiters({ store, known }: World, record: TaskRecord): void {
  const { taskId, policy } = record.admission;
  const open = [...store.family.edges.keys()].filter((key) => key.endsWith(` ${taskId}`));
  assert.equal(record.openDependencies, open.length > 0, 'edges as the record says');
  if (record.status === 'waiting_dependency') assert.ok(record.openDependencies, 'it waits for nothing');
  for (const key of open) {
    const [upstream, generation] = key.split(' ');
    const name = `${upstream ?? ''} ${generation ?? ''}`;
    if (!known.ends.has(name)) continue;
    assert.ok(store.family.propagations.has(name), `${taskId} waits for ${name}, which is over, and nobody tells it`);
  }
  if (record.openDependencies || record.generation > 1 || !['queued', 'running', 'completed'].includes(record.status))
    return;
  for (const dependency of policy.dependsOn) {
    const end = known.ends.get(`${dependency.taskId} 1`);
    assert.ok(end !== undefined && satisfies(end, dependency.condition), `${taskId} was let go too early`);
  }
}

/** 17: counts are their rows. */
function counts({ store }: World): void {
  const { family, records } = store;
  if (counted.has(family)) return;
  for (const taskId of records.keys()) {
    const live = [...family.children].filter(([key, lives]) => lives && key.startsWith(`${taskId} `)).length;
    assert.equal(family.liveChildren.get(taskId) ?? 0, live, `live children of ${taskId}`);
    const open = [...family.edges.keys()].filter((key) => key.endsWith(` ${taskId}`)).length;
    assert.equal(family.unsatisfied.get(taskId) ?? 0, open, `open dependencies of ${taskId}`);
  }
  counted.add(family);
}

/** Families that were looked at: most moves leave them as they are. */
const counted = new WeakSet<ModelFamily>();
