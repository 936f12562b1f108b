// What followers have still to be told and nobody tells any more: Verify finds it on the leader and on whoever waits, and
// a repair puts it back, so that everybody comes to where they belong.

import Database from 'better-sqlite3';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Auditor } from '../../src/audit/auditor.js';
import { type RepairAnswer, Repairs } from '../../src/audit/repairs.js';
import { MAX_FOLLOWERS_PER_BATCH } from '../../src/authority/followers.js';
import { reason } from '../../src/kernel/reason-codes.js';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { memoryEngine, sqliteEngine, temporaryFolder } from '../contract/engines.js';
import { planOf } from '../contract/sample-plans.js';
import { commit } from '../contract/store-under-test.js';
import { causeOf } from '../support/submissions.js';
import { World } from '../support/world.js';
import { auditAll } from './stored-file.js';

const ALONE = { dispatcher: null, timers: 'stopped', propagation: 'stopped' } as const;
/** So many are not told in the transaction of the fact itself. */
const UNTOLD = 3;
const FOLLOWERS = MAX_FOLLOWERS_PER_BATCH + UNTOLD;

let open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.toReversed()) await close();
  open = [];
});

async function worldOn(store: TaskStore, options: Parameters<typeof World.open>[0]): Promise<World> {
  const world = await World.open({ ...options, real: store });
  open.push(async () => {
    world.kill();
    await world.authority.stop();
  });
  return world;
}

async function stored(engine: typeof memoryEngine): Promise<TaskStore> {
  const store = await engine.open();
  open.push(() => store.close());
  return store;
}

const resume = { kind: 'resume', newGenerationId: null, spareGenerationId: 'g2', inputJson: null } as const;
let keys = 0;

function reindex(world: World, taskId: string): Promise<RepairAnswer> {
  keys += 1;
  return new Repairs(world.authority, new Auditor(world.authority, () => world.clock.nowMs())).repair({
    taskId,
    kind: 'reindex',
    eventNumber: 0,
    key: { key: `reindex-${String(keys)}`, contentHash: 'sha256:reindex' },
    cause: { ...causeOf('admin'), reason: reason('run.repaired.operator', 'a row was lost') },
  });
}

async function found(world: World): Promise<string[]> {
  const { findings } = await auditAll(world.real, world.clock.nowMs());
  return findings.map(({ taskId, invariant }) => `${taskId.replace(/-\d+$/, '')} ${invariant}`);
}

/** The rows of what is still to be told are lost. */
async function forgotten(store: TaskStore): Promise<void> {
  for (const { taskId, generation, outcome, eventNumber } of await store.propagations(null, 10)) {
    const row = { taskId, generation, outcome, eventNumber };
    await commit(store, planOf({ links: [{ kind: 'propagated', row }] }));
  }
}

/** All that is to be told is told, by another process. */
async function told(world: World): Promise<void> {
  const other = await worldOn(world.real, { dispatcher: null, timers: 'stopped', clock: world.clock });
  for (let n = 0; n < 200 && (await world.real.propagations(null, 1)).length > 0; n++) {
    await other.clock.advance(250);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await world.real.propagations(null, 1)).toEqual([]);
}

describe.each([memoryEngine, sqliteEngine])('on $name', (engine) => {
  it('children of a parent that is over are told again', async () => {
    const world = await worldOn(await stored(engine), ALONE);
    const { generationId } = await world.admit('leader', { taskId: 'leader' });
    const policy = { parent: { taskId: 'leader', generationId, attached: true } };
    const children = Array.from({ length: FOLLOWERS }, (_, at) => `child-${String(at)}`);
    await Promise.all(children.map((taskId) => world.admit(taskId, { taskId, policy })));
    await world.cancel('leader');
    expect(await found(world)).toEqual([]);
    await forgotten(world.real);
    const lost = Array<string>(UNTOLD).fill('child family.parent');
    expect(await found(world)).toEqual(['leader family.news', ...lost]);
    // One of them by itself, and all others by their parent.
    const last = children.at(-1) ?? '';
    expect(await reindex(world, last)).toMatchObject({ applied: true, record: { status: 'cancelled' } });
    expect(await found(world)).toEqual(['leader family.news', ...lost.slice(1)]);
    expect(await reindex(world, 'leader')).toMatchObject({
      applied: true,
      findings: [{ invariant: 'family.news' }],
    });
    expect(await found(world)).toEqual([]);
    expect(await reindex(world, 'leader')).toMatchObject({ applied: false });
    await told(world);
    for (const taskId of children.slice(-UNTOLD)) expect((await world.stored(taskId)).status).toBe('cancelled');
    expect(await found(world)).toEqual([]);
  });

  it('children of a parent that is asked to end are told again', async () => {
    const world = await worldOn(await stored(engine), ALONE);
    const { generationId } = await world.admit('leader', { taskId: 'leader' });
    const claim = { sessionId: 's', worker: 'w', sessionTtlMs: 60_000, acceptTimeoutMs: 60_000 };
    const session = { sessionId: 's', state: 'live', attachment: 1, ttlMs: 60_000, lingerMs: null } as const;
    const expiresAt = world.clock.nowMs() + 60_000;
    const hello = { workerName: 'w', helloJson: '{}', createdAt: world.clock.nowMs() };
    await world.authority.writeSession({ kind: 'open', session: { ...session, ...hello, expiresAt } });
    await world.apply({ taskId: 'leader', intent: { kind: 'claim', ...claim, cause: causeOf('worker') } });
    const policy = { parent: { taskId: 'leader', generationId, attached: true } };
    const children = Array.from({ length: FOLLOWERS }, (_, at) => `child-${String(at)}`);
    await Promise.all(children.map((taskId) => world.admit(taskId, { taskId, policy })));
    await world.cancel('leader');
    await forgotten(world.real);
    expect(await found(world)).toContain('leader family.news');
    await reindex(world, 'leader');
    await told(world);
    expect((await world.stored(children.at(-1) ?? '')).status).toBe('cancelled');
    expect(await found(world)).toEqual([]);
  });

  it.each(['over', 'in its next life'])('waiters for a task that is %s are told again', async (now) => {
    const world = await worldOn(await stored(engine), ALONE);
    await world.admit('leader', { taskId: 'leader' });
    const policy = { dependsOn: [{ taskId: 'leader', condition: 'terminal' as const }] };
    const waiters = Array.from({ length: FOLLOWERS }, (_, at) => `waiter-${String(at)}`);
    await Promise.all(waiters.map((taskId) => world.admit(taskId, { taskId, policy })));
    await world.cancel('leader');
    if (now !== 'over') await world.apply({ taskId: 'leader', intent: { ...resume, cause: causeOf('operator') } });
    expect(await found(world)).toEqual([]);
    await forgotten(world.real);
    expect(await found(world)).toEqual(['leader family.news']);
    expect(await reindex(world, 'leader')).toMatchObject({ applied: true });
    expect(await world.real.propagations(null, 10)).toMatchObject([{ generation: 1, outcome: 'cancelled' }]);
    await told(world);
    expect((await world.stored(waiters.at(-1) ?? '')).status).toBe('queued');
    expect(await found(world)).toEqual([]);
  });
});

describe('in a file', () => {
  async function withFile(): Promise<{ readonly world: World; readonly tamper: (...sql: string[]) => void }> {
    const path = join(temporaryFolder(), 'reeve.db');
    const store = await openSqliteStore({ path });
    open.push(() => store.close());
    const world = await worldOn(store, { ...ALONE, cacheBytes: 0 });
    const tamper = (...statements: readonly string[]): void => {
      const db = new Database(path);
      for (const statement of statements) db.prepare(statement).run();
      db.close();
    };
    return { world, tamper };
  }

  it('a row that says what is not so keeps nobody from being told, and goes', async () => {
    const { world, tamper } = await withFile();
    await world.admit('bad', { taskId: 'bad' });
    await world.admit('leader', { taskId: 'leader' });
    const policy = { dependsOn: [{ taskId: 'leader', condition: 'terminal' as const }] };
    await world.admit('waiter', { taskId: 'waiter', policy });
    tamper('INSERT INTO propagations SELECT task_order, 1, 77, 1 FROM tasks', 'UPDATE propagations SET outcome = 77');
    expect(await found(world)).toEqual(['bad family.news', 'leader family.news', 'waiter family.news']);
    await world.cancel('leader');
    expect(await found(world)).toEqual(['bad family.news', 'waiter family.news']);
    await told(world);
    for (const taskId of ['bad', 'waiter']) expect(await reindex(world, taskId)).toMatchObject({ applied: true });
    expect(await found(world)).toEqual([]);
  });

  it('a waiter for a task that was purged under it is told how that ended', async () => {
    const { world, tamper } = await withFile();
    await world.admit('leader', { taskId: 'leader' });
    const policy = { dependsOn: [{ taskId: 'leader', condition: 'terminal' as const }] };
    await world.admit('waiter', { taskId: 'waiter', policy });
    // Hidden from the end of its leader and from the purge, and there again.
    tamper('UPDATE dependencies SET upstream_order = 99');
    await world.cancel('leader');
    await forgotten(world.real);
    const { lastEvent: version } = await world.stored('leader');
    expect(await world.authority.upkeep.purge({ taskId: 'leader', version })).toEqual({ kind: 'purged' });
    expect(await found(world)).toEqual(['waiter family.edges']);
    tamper('UPDATE dependencies SET upstream_order = 1');
    expect(await found(world)).toEqual(['waiter family.purged']);
    expect(await reindex(world, 'waiter')).toMatchObject({ applied: true, record: { status: 'queued' } });
    expect(await found(world)).toEqual([]);
  });

  it('a task that stands under another parent, or is to be swept, is put where it belongs', async () => {
    const { world, tamper } = await withFile();
    const { generationId } = await world.admit('parent', { taskId: 'parent' });
    await world.admit('other', { taskId: 'other' });
    const policy = { parent: { taskId: 'parent', generationId, attached: true } };
    await world.admit('child', { taskId: 'child', policy });
    tamper(
      'UPDATE children SET parent_order = 2',
      'UPDATE family_counts SET live_children = 0',
      'INSERT INTO family_counts VALUES (2, 1, 0)',
      'INSERT INTO purging VALUES (3)',
    );
    expect(await found(world)).toEqual(['child store.sweep', 'child family.child']);
    expect(await reindex(world, 'child')).toMatchObject({ applied: true });
    expect(await found(world)).toEqual([]);
    expect(await world.real.familyCounts(['parent', 'other'])).toMatchObject([
      { liveChildren: 1 },
      { liveChildren: 0 },
    ]);
  });
});
