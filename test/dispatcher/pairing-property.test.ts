// Whatever submits, settles, comes, goes, fails or changes its mind: no session is ever given more than its slots, no
// task has two owners, every history folds to its record, and nothing that could run is left lying.

import { describe, expect, it } from 'vitest';
import type { Committed } from '../../src/authority/publisher.js';
import { type Subscription, routeOf, serves } from '../../src/kernel/placement.js';
import { isTerminal } from '../../src/kernel/status.js';
import { causeOf, subscription } from '../support/submissions.js';
import { type TestWorker, openWorker } from '../support/test-worker.js';
import { World } from '../support/world.js';

const QUEUES = ['red', 'green', 'blue'];
const CAPABILITIES = ['gpu', 'disk'];
const SEEDS = Array.from({ length: 24 }, (_, n) => n + 1);
const STEPS = 120;

interface Present {
  worker: TestWorker;
  readonly serves: Subscription;
  slots: number;
  attached: boolean;
}

class Town {
  readonly owners = new Map<string, string>();
  readonly present: Present[] = [];
  readonly tasks: string[] = [];
  readonly violations: string[] = [];

  constructor(readonly world: World) {
    world.authority.subscribe((commit) => this.watch(commit));
  }

  private watch({ taskId, record, events }: Committed): void {
    const claimed = events.filter(({ type }) => type === 'reeve.task.claimed');
    if (claimed.length > 1) this.violations.push(`${taskId} was claimed twice in one commit`);
    if (record.lease === null) this.owners.delete(taskId);
    else this.owners.set(taskId, record.lease.sessionId);
    for (const { worker, slots } of claimed.length > 0 ? this.present : []) {
      const held = [...this.owners.values()].filter((owner) => owner === worker.sessionId).length;
      if (owned(record.lease?.sessionId, worker) && held > slots) {
        this.violations.push(`${worker.sessionId} holds ${String(held)} of ${String(slots)}`);
      }
    }
  }

  async step(): Promise<void> {
    const { world } = this;
    const { random } = world;
    const one = this.present.length === 0 ? null : random.pick(this.present);
    switch (random.below(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return this.submit();
      case 4:
        return this.arrive();
      case 5:
      case 6:
      case 7:
        return one === null ? undefined : this.work(one);
      case 8:
        if (one === null) return;
        // What is promised already stays promised: fewer slots count from what is under way.
        await world.settle();
        one.slots = random.below(4);
        world.dispatcher.setSlots(one.worker.session, one.slots);
        return;
      case 9:
        return one === null ? undefined : this.comeAndGo(one);
      case 10:
        if (this.tasks.length > 0) void world.cancel(random.pick(this.tasks));
        return;
      case 11:
        world.probe.failNext(random.pick(['unavailable', 'lost_answer', 'lost_request']));
        this.submit();
        await world.clock.advance(500);
        return;
      case 12:
        if (this.tasks.length > 0) {
          const taskId = random.pick(this.tasks);
          void world.apply({ taskId, intent: { kind: 'suspend', lease: null, cause: causeOf('operator') } });
        }
        return;
      default:
        await world.clock.advance(random.below(3_000));
    }
  }

  private submit(): void {
    const { random } = this.world;
    for (let n = random.below(4); n >= 0; n--) {
      const key = `k${String(this.tasks.length)}-${String(random.below(1_000_000))}`;
      const capabilities = CAPABILITIES.filter(() => random.chance() < 0.2);
      const policy = { priority: random.below(3), retry: { initialMs: random.below(2_000) } };
      void this.world.submit(key, { queue: random.pick(QUEUES), capabilities, policy }).then((answer) => {
        if (answer.kind === 'created') this.tasks.push(answer.record.admission.taskId);
      });
    }
  }

  private async arrive(): Promise<void> {
    const { random } = this.world;
    if (this.present.length > 6) return;
    const queues = QUEUES.filter(() => random.chance() < 0.6);
    const wanted = subscription({
      ...(queues.length === 0 ? {} : { queues }),
      capabilities: CAPABILITIES.filter(() => random.chance() < 0.5),
    });
    const slots = random.below(4);
    const lingerMs = random.chance() < 0.3 ? 0 : null;
    try {
      const worker = await openWorker(this.world, { slots, lingerMs, serves: wanted });
      this.present.push({ worker, serves: wanted, slots, attached: true });
    } catch {
      // The store was told to fail.
    }
  }

  private work(one: Present): void {
    const { random } = this.world;
    for (const { taskId, epoch } of one.worker.holding) {
      const end = random.pick(['completed', 'failed', 'progress', 'cancelled'] as const);
      void one.worker.sayIn(taskId, epoch, 'accepted', 'started', end);
    }
    void this.world.dispatcher.heartbeat(one.worker.session, one.worker.attachment, one.worker.holding);
  }

  private async comeAndGo(one: Present): Promise<void> {
    const { random } = this.world;
    if (one.attached && random.chance() < 0.6) {
      one.worker.drop();
      one.attached = false;
      return;
    }
    await this.world.settle();
    one.slots = random.below(4);
    try {
      one.worker = await one.worker.reattach({ given: { ...one.worker.given, slots: one.slots } });
      one.attached = true;
    } catch {
      this.present.splice(this.present.indexOf(one), 1);
    }
  }

  /** What could be claimed and is not: queued and ready, with a free slot that serves it. */
  async forgotten(): Promise<string[]> {
    const forgotten: string[] = [];
    for (const taskId of this.tasks) {
      const record = await this.world.stored(taskId);
      if (record.status !== 'queued' || record.notBeforeAt !== null) continue;
      const free = this.present.find(
        ({ worker, serves: wanted }) => worker.session.credit > 0 && serves(wanted, routeOf(record.admission)),
      );
      if (free !== undefined) forgotten.push(`${taskId} for ${free.worker.sessionId}`);
    }
    return forgotten;
  }
}

function owned(owner: string | undefined, worker: TestWorker): boolean {
  return owner === worker.sessionId;
}

describe('pairing under churn', () => {
  it.each(SEEDS)('seed %d', { timeout: 60_000 }, async (seed) => {
    const world = await World.open({ seed });
    const town = new Town(world);
    for (let step = 0; step < STEPS; step++) {
      await town.step();
      if (world.random.chance() < 0.4) await world.settle();
      expect(town.violations).toEqual([]);
    }
    world.probe.heal();
    await world.clock.advance(12_000);
    expect(await town.forgotten()).toEqual([]);
    expect([world.defects, world.fatals]).toEqual([[], []]);
    await world.assertHistories(town.tasks);
    // Credit is not lost either: who holds nothing has all its slots.
    for (const { worker, slots } of town.present) {
      const { session } = worker;
      if (session.attached && !session.draining) expect(session.credit).toBe(slots - session.held.size);
    }
    // In the end a worker that serves everything finds nothing left that could not be done.
    const last = await openWorker(world, { slots: 50, serves: subscription({ capabilities: CAPABILITIES }) });
    last.completeAll();
    for (let beat = 0; beat < 20; beat++) {
      await world.clock.advance(9_000);
      await last.heartbeat();
    }
    for (const taskId of town.tasks) {
      const { status } = await world.stored(taskId);
      expect([taskId, isTerminal(status) || status === 'suspended']).toEqual([taskId, true]);
    }
  });
});
