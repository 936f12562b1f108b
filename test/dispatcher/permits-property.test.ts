// Whatever submits, settles, comes, goes, fails or changes its mind, in the whole service: never more tasks of a permit
// hold a lease than may, nobody waits for what is free, and in the end everything was done.

import { describe, expect, it, onTestFinished } from 'vitest';
import type { Committed } from '../../src/authority/publisher.js';
import { type PermitRules, permitsOf } from '../../src/kernel/permits.js';
import { isTerminal } from '../../src/kernel/status.js';
import { memoryEngine, sqliteEngine } from '../contract/engines.js';
import type { Engine } from '../contract/store-under-test.js';
import { type Given, causeOf, subscription } from '../support/submissions.js';
import { type TestWorker, openWorker } from '../support/test-worker.js';
import { turns } from '../support/turns.js';
import { World } from '../support/world.js';

const RULES: PermitRules = {
  keyLimits: [{ pattern: 'two', limit: 2 }],
  capabilities: new Map([['gpu', 'serialization']]),
};
const ALL = subscription({ capabilities: ['gpu'] });
const KEYS = [null, 'one', 'other', 'two'];
const STEPS = 100;
/** Back-offs last up to five minutes; a beat is nine seconds. */
const MAX_BEATS = 100;

/** A store in a thread answers in its own time: reads that are answered have everything before them behind them. */
async function quiet(world: World, engine: Engine): Promise<void> {
  for (let round = 0; round < (engine.name === 'memory' ? 1 : 8); round++) {
    await world.real.routeKeys();
    await turns(6);
  }
}

class Town {
  readonly tasks: string[] = [];
  readonly workers: TestWorker[] = [];
  readonly violations: string[] = [];
  private readonly running = new Map<string, Set<string>>();

  constructor(readonly world: World) {
    world.authority.subscribe((commit) => this.watch(commit));
  }

  /** Commits are published in their order: who ends comes before who may begin by that. */
  private watch({ taskId, record }: Committed): void {
    for (const { name, limit } of permitsOf(record.admission, RULES)) {
      const holders = this.running.get(name) ?? new Set<string>();
      this.running.set(name, holders);
      if (record.lease === null) holders.delete(taskId);
      else holders.add(taskId);
      if (holders.size > limit) this.violations.push(`${name} is held by ${[...holders].join()}`);
    }
  }

  async step(): Promise<void> {
    const { world } = this;
    const { random } = world;
    const task = this.tasks.length === 0 ? null : random.pick(this.tasks);
    const worker = this.workers.length === 0 ? null : random.pick(this.workers);
    const operator = causeOf('operator');
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        return this.submit();
      case 3:
        return this.arrive();
      case 4:
      case 5:
      case 6:
        return worker === null ? undefined : this.work(worker);
      case 7:
        if (worker === null) return;
        worker.drop();
        this.workers.splice(this.workers.indexOf(worker), 1);
        return;
      case 8:
        if (task !== null) void world.cancel(task, random.pick([null, 0]));
        return;
      case 9: {
        if (task === null) return;
        const resume = { newGenerationId: null, spareGenerationId: world.random.uuidV7(), inputJson: null };
        void world.apply({ taskId: task, intent: { kind: 'suspend', lease: null, cause: operator } });
        if (random.chance() < 0.7) {
          void world.apply({ taskId: task, intent: { kind: 'resume', ...resume, cause: operator } });
        }
        return;
      }
      case 10:
        world.probe.failNext(random.pick(['unavailable', 'lost_answer', 'lost_request']));
        this.submit();
        await world.clock.advance(500);
        return;
      default:
        await world.clock.advance(random.below(3_000));
    }
  }

  private submit(): void {
    const { random } = this.world;
    for (let n = random.below(3); n >= 0; n--) {
      const delayed = random.chance() < 0.15 ? { notBeforeAtMs: this.world.clock.nowMs() + random.below(4_000) } : {};
      const policy = { concurrencyKey: random.pick(KEYS), priority: random.below(3), ...delayed };
      const given: Given = {
        capabilities: random.chance() < 0.3 ? ['gpu'] : [],
        policy: { ...policy, retry: { initialMs: random.below(2_000), maxAttempts: 20 } },
      };
      void this.world.submit(`k${String(random.below(1_000_000_000))}`, given).then((answer) => {
        if (answer.kind === 'created') this.tasks.push(answer.record.admission.taskId);
      });
    }
  }

  private async arrive(): Promise<void> {
    if (this.workers.length > 3) return;
    try {
      const lingerMs = this.world.random.chance() < 0.7 ? 0 : null;
      this.workers.push(await openWorker(this.world, { slots: 1 + this.world.random.below(4), lingerMs, serves: ALL }));
    } catch {
      // The store was told to fail.
    }
  }

  private work(worker: TestWorker): void {
    for (const { taskId, epoch } of worker.holding) {
      const end = this.world.random.pick(['completed', 'failed', 'progress', 'suspended'] as const);
      const saying = end === 'suspended' ? ({ kind: end, reason: null } as const) : end;
      void worker.sayIn(taskId, epoch, 'accepted', 'started', saying);
    }
    void this.world.dispatcher.heartbeat(worker.session, worker.attachment, worker.holding);
  }

  /** What is not over yet; what is suspended goes on. */
  async resumeAll(): Promise<string[]> {
    const open: string[] = [];
    for (const taskId of this.tasks) {
      const { status } = await this.world.stored(taskId);
      if (!isTerminal(status)) open.push(`${taskId} ${status}`);
      if (status !== 'suspended') continue;
      const resume = { newGenerationId: null, spareGenerationId: this.world.random.uuidV7(), inputJson: null };
      await this.world.apply({ taskId, intent: { kind: 'resume', ...resume, cause: causeOf('operator') } });
    }
    return open;
  }

  /** Permits that somebody waits for in a line that has room. */
  async idlePermits(): Promise<string[]> {
    const permits = await this.world.real.permits(null, 100);
    return permits.filter(({ settled }) => !settled).map(({ name }) => name);
  }
}

async function live(engine: Engine, seed: number): Promise<void> {
  const real = await engine.open();
  const world = await World.open({ real, seed, permitRules: RULES });
  onTestFinished(async () => {
    world.kill();
    await real.close();
  });
  const town = new Town(world);
  for (let step = 0; step < STEPS; step++) {
    await town.step();
    if (world.random.chance() < 0.5) await quiet(world, engine);
    expect(town.violations).toEqual([]);
  }
  world.probe.heal();
  await world.clock.advance(1_000);
  await quiet(world, engine);
  expect(await town.idlePermits()).toEqual([]);
  for (const worker of town.workers) worker.drop();
  const last = (await openWorker(world, { slots: 50, serves: ALL })).completeAll();
  let open: string[] = [];
  for (let beat = 0; beat === 0 || (open.length > 0 && beat < MAX_BEATS); beat++) {
    await world.clock.advance(9_000);
    await last.heartbeat();
    await quiet(world, engine);
    open = await town.resumeAll();
  }
  expect(open, 'forgotten').toEqual([]);
  expect(await real.permits(null, 100)).toEqual([]);
  expect([town.violations, world.defects, world.fatals]).toEqual([[], [], []]);
  await world.assertHistories(town.tasks);
}

describe('permits under churn', () => {
  it.each(Array.from({ length: 16 }, (_, n) => n + 1))('memory, seed %d', { timeout: 60_000 }, (seed) =>
    live(memoryEngine, seed),
  );

  it.each([101, 102, 103])('sqlite, seed %d', { timeout: 60_000 }, (seed) => live(sqliteEngine, seed));
});
