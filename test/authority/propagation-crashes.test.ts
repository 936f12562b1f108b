// A process dies at every commit of telling the followers of a task, before it and after it: of a parent that is
// cancelled, of a parent that is asked, of a task that others wait for, and of one that begins anew meanwhile. The next
// process brings all of them to where they belong, and nothing is left behind.

import { describe, expect, it } from 'vitest';
import { MAX_FOLLOWERS_PER_BATCH } from '../../src/authority/followers.js';
import type { Intent } from '../../src/kernel/intent.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import { World } from '../support/world.js';
import { Situation, asHolder, cancel, resume, settle } from './edges/situations.js';

const ALONE = { dispatcher: null, timers: 'stopped', propagation: 'stopped' } as const;
const TELLING = { dispatcher: null, timers: 'stopped' } as const;
/** More than one transaction holds, and more than one page of the loop. */
const FOLLOWERS = MAX_FOLLOWERS_PER_BATCH * 2 + 40;

interface Scene {
  readonly followers: 'children' | 'waiters';
  /** The leader runs, with its worker. */
  readonly runs?: true;
  /** What happens to the leader, each under a key of its own. */
  readonly acts: (leader: Situation) => readonly Intent[];
  /** What becomes of every follower. */
  readonly end: Partial<Pick<TaskRecord, 'status'>>;
}

const SCENES: Readonly<Record<string, Scene>> = {
  'a parent that is cancelled': { followers: 'children', acts: () => [cancel], end: { status: 'cancelled' } },
  'a parent that fails': { followers: 'children', acts: () => [settle('failed')], end: { status: 'failed' } },
  'a parent that runs and is asked to end': {
    followers: 'children',
    runs: true,
    acts: () => [cancel],
    end: { status: 'cancelled' },
  },
  'a task that others wait for': {
    followers: 'waiters',
    runs: true,
    acts: (leader) => [asHolder(leader).settles('completed')],
    end: { status: 'queued' },
  },
  'a task that others waited for in vain, and that begins anew': {
    followers: 'waiters',
    acts: () => [settle('failed'), resume('again')],
    end: { status: 'skipped' },
  },
};

async function begin({ followers, runs }: Scene): Promise<{ readonly world: World; readonly leader: Situation }> {
  const world = await World.open(ALONE);
  const leader = await Situation.admit(world, 'leader');
  if (runs === true) await leader.started();
  const { generationId } = await world.stored('leader');
  const parent = { taskId: 'leader', generationId, attached: true };
  const dependsOn = [{ taskId: 'leader', condition: 'succeeded' as const }];
  const policy = followers === 'children' ? { parent } : { dependsOn };
  const all = Array.from({ length: FOLLOWERS }, (_, at) => at);
  await Promise.all(all.map((at) => world.admit(nameOf(at), { taskId: nameOf(at), policy })));
  world.kill();
  return { world, leader };
}

function nameOf(follower: number): string {
  return `follower-${String(follower)}`;
}

/** Goes on until nothing is to be told any more, or the process has lost an answer. False: it lost one. */
async function goOn(world: World, scene: Scene, leader: Situation): Promise<boolean> {
  const lost = (): boolean => (world.probe.calls.get('outcomeOf') ?? 0) > 0;
  for (const [at, intent] of scene.acts(leader).entries()) {
    const key = { key: `act ${String(at)}`, contentHash: 'sha256:00' };
    let done = false;
    void world.apply({ taskId: 'leader', intent, key }).then(() => (done = true));
    while (!done && !lost()) await world.settle();
  }
  while (!lost() && (await world.real.propagations(null, 1)).length > 0) await world.settle();
  await world.settle();
  return !lost();
}

/** Where the process died, told from what it left. */
async function pointOf(world: World, { followers }: Scene): Promise<string> {
  const rows = await world.real.propagations(null, 1);
  const left =
    followers === 'children'
      ? await world.real.liveChildren('leader', 0, FOLLOWERS)
      : await world.real.waitersOf('leader', 1, 0, FOLLOWERS);
  const asked = await Promise.all(left.map(({ taskId }) => world.stored(taskId)));
  const untold = asked.filter(({ cancellation }) => cancellation === null).length;
  if (rows.length === 0) return untold === 0 ? 'after the row' : 'before the fact';
  if (untold === FOLLOWERS - MAX_FOLLOWERS_PER_BATCH) return 'after the fact and the followers of its transaction';
  return untold === 0 ? 'after the last follower' : 'between two followers';
}

async function assertQuiet(world: World, scene: Scene): Promise<void> {
  expect(await world.real.propagations(null, 10)).toEqual([]);
  expect(await world.real.liveChildren('leader', 0, 10)).toEqual([]);
  expect(await world.real.waitersOf('leader', 1, 0, 10)).toEqual([]);
  const names = Array.from({ length: FOLLOWERS }, (_, at) => nameOf(at));
  for (const counts of await world.real.familyCounts(['leader', ...names])) {
    expect(counts).toEqual({ liveChildren: 0, unsatisfied: 0 });
  }
  for (const name of names) expect([name, await world.stored(name)]).toMatchObject([name, scene.end]);
  await world.assertHistories(['leader', ...names]);
  expect([world.defects, world.errors, world.fatals]).toEqual([[], [], []]);
}

const POINTS = [
  'before the fact',
  'after the fact and the followers of its transaction',
  'between two followers',
  'after the last follower',
  'after the row',
];

describe.each(Object.entries(SCENES))('%s', (_, scene) => {
  it('is told to all its followers, wherever the process died', async () => {
    const points = new Set<string>();
    for (const fault of ['lost_request', 'lost_answer'] as const) {
      for (let commits = 0, survived = false; !survived; commits++) {
        const { world, leader } = await begin(scene);
        const dying = await world.replica(TELLING);
        dying.probe.outcomeHidden = true;
        dying.probe.failAfter(commits, fault);
        survived = await goOn(dying, scene, leader);
        dying.kill();
        if (!survived) points.add(await pointOf(world, scene));
        const next = await world.replica(TELLING);
        // Whoever lost the answer asks again under the same key.
        expect(await goOn(next, scene, leader)).toBe(true);
        await assertQuiet(next, scene);
        next.kill();
      }
    }
    expect([...points].sort()).toEqual([...POINTS].sort());
  });
});

describe('a child that is resumed', () => {
  it('by a process that dies at any commit of it is under its parent again once, or not at all', async () => {
    for (const fault of ['lost_request', 'lost_answer'] as const) {
      const world = await World.open(ALONE);
      await Situation.admit(world, 'parent');
      const { generationId } = await world.stored('parent');
      const policy = { parent: { taskId: 'parent', generationId, attached: true } };
      const child = await Situation.admit(world, 'child', policy);
      await child.applied(cancel);
      world.probe.outcomeHidden = true;
      world.probe.failNext(fault);
      const again = (by: World) => child.apply(by, resume('again'), { key: 'again', contentHash: 'sha256:00' });
      void again(world);
      while ((world.probe.calls.get('outcomeOf') ?? 0) === 0) await world.settle();
      world.kill();
      const next = await world.replica(TELLING);
      expect(await again(next)).toMatchObject({ kind: fault === 'lost_answer' ? 'replayed' : 'applied' });
      expect(await next.real.familyCounts(['parent'])).toEqual([{ liveChildren: 1, unsatisfied: 0 }]);
      expect(await next.stored('child')).toMatchObject({ status: 'queued', generation: 2 });
      await next.cancel('parent');
      expect(await next.stored('child')).toMatchObject({ status: 'cancelled', generation: 2 });
      await next.assertHistories(['parent', 'child']);
      next.kill();
    }
  });
});
