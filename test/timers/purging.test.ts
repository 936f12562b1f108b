// Automatic purge on a clock of the test's: what goes and when, what stays and is tried again, that nothing blocks the
// others, and that what a crash left is swept.

import { expect, it, onTestFinished } from 'vitest';
import { KEEP_FOR_EVER, MIN_KEPT_MS } from '../../src/kernel/retention.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { KEPT_PERIOD_MS, PURGE_PERIOD_MS, Purging } from '../../src/timers/purging.js';
import type { Given } from '../support/submissions.js';
import { causeOf } from '../support/submissions.js';
import { World, type WorldOptions } from '../support/world.js';

const HOUR_MS = 3_600_000;

interface Rig {
  readonly world: World;
  readonly purged: number[];
  readonly errors: unknown[];
  readonly purging: Purging;
}

async function open(options: WorldOptions = {}): Promise<Rig> {
  const world = await World.open({ dispatcher: null, timers: 'stopped', propagation: 'stopped', ...options });
  const purged: number[] = [];
  const errors: unknown[] = [];
  const { authority } = world;
  const onError = (error: unknown): void => void errors.push(error);
  const purging = new Purging({ authority, onError, onPurged: (count) => void purged.push(count) });
  purging.start();
  onTestFinished(() => purging.stop());
  return { world, purged, errors, purging };
}

async function ended(world: World, key: string, given: Given = {}): Promise<string> {
  const { taskId } = (await world.admit(key, given)).admission;
  await world.cancel(taskId);
  return taskId;
}

const keep = (retentionMs: number): Given => ({ policy: { retentionMs } });
const kindOf = async ({ real }: World, taskId: string): Promise<string | undefined> =>
  (await real.loadTasks([taskId]))[0]?.kind;

it('takes each task when its retention is over, by its own word or the default of its end, and no other', async () => {
  const { world, purged } = await open({ retention: { ...KEEP_FOR_EVER, cancelled: 3 * HOUR_MS } });
  const soon = await ended(world, 'soon', keep(0));
  const later = await ended(world, 'later', keep(HOUR_MS));
  const byDefault = await ended(world, 'default');
  const live = (await world.admit('live', keep(0))).admission.taskId;
  const kinds = () => Promise.all([soon, later, byDefault, live].map((taskId) => kindOf(world, taskId)));
  await world.clock.advance(MIN_KEPT_MS - 1);
  expect(await kinds()).toEqual(['task', 'task', 'task', 'task']);
  await world.clock.advance(PURGE_PERIOD_MS + 1);
  expect(await kinds()).toEqual(['purged', 'task', 'task', 'task']);
  await world.clock.advance(HOUR_MS);
  expect(await kinds()).toEqual(['purged', 'purged', 'task', 'task']);
  await world.clock.advance(2 * HOUR_MS);
  expect(await kinds()).toEqual(['purged', 'purged', 'purged', 'task']);
  expect(purged).toEqual([1, 1, 1]);
});

it('goes by the generation that ended last', async () => {
  const { world } = await open();
  const taskId = await ended(world, 'k', keep(HOUR_MS));
  await world.clock.advance(HOUR_MS / 2);
  const intent = { kind: 'resume', newGenerationId: null, spareGenerationId: 'g2', inputJson: null } as const;
  await world.apply({ taskId, intent: { ...intent, cause: causeOf('operator') } });
  await world.clock.advance(HOUR_MS);
  expect(await kindOf(world, taskId)).toBe('task');
  await world.cancel(taskId);
  await world.clock.advance(HOUR_MS - 1);
  expect(await kindOf(world, taskId)).toBe('task');
  await world.clock.advance(PURGE_PERIOD_MS + 1);
  expect(await kindOf(world, taskId)).toBe('purged');
});

it('passes over those that are needed or damaged, tries them later, and takes all the others', async () => {
  const { world, errors } = await open();
  const parent = await world.admit('parent');
  const link = { taskId: parent.admission.taskId, generationId: parent.generationId, attached: true };
  const children = [];
  for (let at = 0; at < 300; at++) {
    children.push(await ended(world, `child ${String(at)}`, { policy: { parent: link, retentionMs: 0 } }));
  }
  const damaged = await ended(world, 'damaged', keep(0));
  world.probe.damaged.add(damaged);
  const plain = [];
  for (let at = 0; at < 300; at++) plain.push(await ended(world, `plain ${String(at)}`, keep(0)));
  const kinds = async (taskIds: readonly string[]) =>
    new Set((await world.real.loadTasks(taskIds)).map((task) => task?.kind));
  await world.clock.advance(MIN_KEPT_MS + PURGE_PERIOD_MS);
  expect(await kinds(plain)).toEqual(new Set(['purged']));
  expect(await kinds([...children, damaged])).toEqual(new Set(['task']));
  // Those that are kept are not judged at every scan.
  const batches = world.probe.batches.length;
  const loads = world.probe.calls.get('loadTasks');
  await world.clock.advance(PURGE_PERIOD_MS * 3);
  expect(world.probe.batches.length).toBe(batches);
  expect(world.probe.calls.get('loadTasks')).toBe(loads);
  world.probe.damaged.clear();
  await world.cancel(link.taskId);
  await world.clock.advance(KEPT_PERIOD_MS + PURGE_PERIOD_MS);
  expect(await kinds([...children, damaged])).toEqual(new Set(['purged']));
  expect(errors).toEqual([]);
});

it('backs off while the store does not answer, and goes on when it does', async () => {
  const { world, errors } = await open();
  const taskId = await ended(world, 'k', keep(0));
  await world.clock.advance(MIN_KEPT_MS - PURGE_PERIOD_MS);
  world.probe.down = true;
  const before = errors.length;
  await world.clock.advance(300_000);
  const failures = errors.length - before;
  expect(failures).toBeGreaterThan(2);
  expect(failures).toBeLessThan(12);
  world.probe.down = false;
  await world.clock.advance(60_000);
  expect(await kindOf(world, taskId)).toBe('purged');
});

it('sweeps what is left of purged tasks, of this run and of the one before', async () => {
  let left = 5;
  const leaves = (store: TaskStore): TaskStore =>
    new Proxy(store, {
      get: (target, name: keyof TaskStore) =>
        name === 'sweepPurged' ? () => Promise.resolve(left-- > 1) : Reflect.get(target, name),
    });
  const first = await open();
  const { world } = await open({ real: leaves(first.world.real), clock: first.world.clock });
  await world.clock.advance(1);
  expect(left).toBe(0);
  left = 3;
  await ended(world, 'k', keep(0));
  await world.clock.advance(MIN_KEPT_MS + PURGE_PERIOD_MS);
  expect(left).toBeLessThanOrEqual(0);
});

it('leaves no timer behind, and nothing is purged after its stop', async () => {
  const { world, purging } = await open();
  const taskId = await ended(world, 'k', keep(0));
  const armed = world.clock.armedTimers;
  void purging.stop();
  expect(world.clock.armedTimers).toBe(armed - 1);
  await world.clock.advance(HOUR_MS);
  expect(await kindOf(world, taskId)).toBe('task');
});

it('a stop is over when the step in hand is, and nothing is begun after it', async () => {
  const { world, purging, errors } = await open();
  const ids = [await ended(world, 'a', keep(0)), await ended(world, 'b', keep(0))];
  const committing = world.probe.hold();
  void world.clock.advance(MIN_KEPT_MS + PURGE_PERIOD_MS);
  await committing;
  let over = false;
  const stopped = purging.stop().then(() => (over = true));
  await world.settle();
  expect(over).toBe(false);
  world.probe.release();
  await stopped;
  expect(await Promise.all(ids.map((taskId) => kindOf(world, taskId)))).toEqual(['purged', 'purged']);
  const calls = [...world.probe.calls];
  await world.clock.advance(10 * PURGE_PERIOD_MS);
  expect([...world.probe.calls]).toEqual(calls);
  expect(errors).toEqual([]);
});

it('a task that cannot be purged for what is stored of it is put off, and the scan of the others is not', async () => {
  const { world, errors } = await open();
  const bad = await ended(world, 'bad', keep(0));
  const good = await ended(world, 'good', keep(0));
  let tried = 0;
  world.probe.overrule = (plan) => {
    if (plan.purge?.taskId !== bad) return null;
    tried += 1;
    return { kind: 'damaged', detail: 'told to be' };
  };
  await world.clock.advance(MIN_KEPT_MS + PURGE_PERIOD_MS);
  expect([tried, await kindOf(world, good)]).toEqual([1, 'purged']);
  await world.clock.advance(KEPT_PERIOD_MS - 2 * PURGE_PERIOD_MS);
  expect(tried).toBe(1);
  await world.clock.advance(3 * PURGE_PERIOD_MS);
  expect([tried, errors]).toEqual([2, []]);
});
