// One process of the service without its wire: store, authority, quiet period, dispatcher and timers on a clock and a
// chance of the test's. Several worlds over one store are several replicas.

import { invariant } from '../../src/audit/invariants.js';
import { auditTask } from '../../src/audit/task-audit.js';
import { Authority } from '../../src/authority/authority.js';
import type { IntentAnswer, IntentRequest } from '../../src/authority/intent-work.js';
import type { Committed } from '../../src/authority/publisher.js';
import type { SubmitAnswer } from '../../src/authority/submit-work.js';
import { Dispatcher } from '../../src/dispatcher/dispatcher.js';
import { QuietPeriod } from '../../src/dispatcher/quiet-period.js';
import type { TaskEvent } from '../../src/kernel/event.js';
import type { TaskRecord } from '../../src/kernel/record.js';
import type { PermitRules } from '../../src/kernel/permits.js';
import type { PlacementRules } from '../../src/kernel/placement.js';
import type { RetentionDefaults } from '../../src/kernel/retention.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { PermitAlignment } from '../../src/timers/permit-alignment.js';
import { Propagation } from '../../src/timers/propagation.js';
import { TaskTimers } from '../../src/timers/task-timers.js';
import { ManualClock } from './manual-clock.js';
import { SeededRandom } from './seeded-random.js';
import { type StoreProbe, probeStore } from './store-probe.js';
import { type Given, causeOf, submission } from './submissions.js';
import { turns } from './turns.js';

export interface WorldOptions {
  readonly real?: TaskStore;
  readonly clock?: ManualClock;
  readonly seed?: number;
  readonly cacheBytes?: number;
  readonly retention?: RetentionDefaults;
  readonly permitRules?: PermitRules;
  readonly rules?: PlacementRules;
  /** Null: the authority alone, nobody dispatches. */
  readonly dispatcher?: null;
  /** Started by default. */
  readonly timers?: 'stopped';
  /** Started by default; stopped, followers are told only in the transactions themselves. */
  readonly propagation?: 'stopped';
}

let worlds = 0;

export class World {
  readonly published: Committed[] = [];
  readonly defects: unknown[] = [];
  readonly fatals: unknown[] = [];
  /** What dispatcher and timers reported. */
  readonly errors: unknown[] = [];

  private constructor(
    readonly real: TaskStore,
    readonly clock: ManualClock,
    readonly random: SeededRandom,
    readonly probe: StoreProbe,
    readonly authority: Authority,
    readonly quiet: QuietPeriod,
  ) {}

  dispatcher!: Dispatcher;
  timers!: TaskTimers;
  propagation!: Propagation;
  permits!: PermitAlignment;

  static async open(options: WorldOptions = {}): Promise<World> {
    const real = options.real ?? openMemoryStore();
    const clock = options.clock ?? new ManualClock();
    const random = new SeededRandom(options.seed ?? ++worlds);
    const probe = probeStore(real);
    const defects: unknown[] = [];
    const fatals: unknown[] = [];
    const authority = await Authority.open({
      store: probe.store,
      clock,
      random,
      ...(options.cacheBytes === undefined ? {} : { cacheBytes: options.cacheBytes }),
      ...(options.retention === undefined ? {} : { retention: options.retention }),
      ...(options.permitRules === undefined ? {} : { permitRules: options.permitRules }),
      onFatal: (error) => fatals.push(error),
      onDefect: (error) => defects.push(error),
    });
    const world = new World(real, clock, random, probe, authority, new QuietPeriod(clock));
    Object.assign(world, { defects, fatals });
    authority.subscribe((commit) => world.published.push(commit));
    await world.begin(options);
    return world;
  }

  private async begin(options: WorldOptions): Promise<void> {
    const onError = (error: unknown): void => void this.errors.push(error);
    this.quiet.start();
    this.permits = new PermitAlignment(this.authority, onError);
    await this.permits.start();
    if (options.dispatcher !== null) {
      const rules = options.rules === undefined ? {} : { rules: options.rules };
      this.dispatcher = new Dispatcher({ authority: this.authority, quiet: this.quiet, ...rules, onError });
      await this.dispatcher.start();
    }
    this.timers = new TaskTimers(this.authority, () => this.quiet.quietSince(), onError);
    if (options.timers !== 'stopped') this.timers.start();
    this.propagation = new Propagation(this.authority, onError);
    if (options.propagation === 'stopped') await this.propagation.stop();
    else this.propagation.start();
  }

  /** Another process on the same store and the same clock. */
  replica(options: Omit<WorldOptions, 'real' | 'clock'> = {}): Promise<World> {
    return World.open({ ...options, real: this.real, clock: this.clock });
  }

  /** Ends the process without ceremony, as a kill does: what it had in memory is gone. */
  kill(): void {
    this.quiet.stop();
    void this.timers.stop();
    void this.propagation.stop();
    void this.permits.stop();
    this.probe.down = true;
    (this.dispatcher as Dispatcher | undefined)?.stop();
  }

  submit(key: string, given: Given = {}): Promise<SubmitAnswer> {
    return new Promise((resolve) => this.authority.submit(submission(key, given), resolve));
  }

  /** Submits and is sure that it created the task. */
  async admit(key: string, given: Given = {}): Promise<TaskRecord> {
    const answer = await this.submit(key, given);
    if (answer.kind !== 'created') throw new Error(`${key} was ${JSON.stringify(answer)}`);
    return answer.record;
  }

  apply(request: IntentRequest): Promise<IntentAnswer> {
    return this.authority.apply(request);
  }

  cancel(taskId: string, graceMs: number | null = null): Promise<IntentAnswer> {
    return this.apply({ taskId, intent: { kind: 'request_cancellation', graceMs, cause: causeOf('operator') } });
  }

  /** As the store has it. */
  async stored(taskId: string): Promise<TaskRecord> {
    const [task] = await this.real.loadTasks([taskId]);
    if (task?.kind !== 'task') throw new Error(`${taskId} is ${JSON.stringify(task)}`);
    return task.record;
  }

  async events(taskId: string): Promise<readonly TaskEvent[]> {
    const stored = await this.real.readHistory(taskId, 0, 100_000, Number.MAX_SAFE_INTEGER);
    return stored.map(({ event }) => event);
  }

  async eventTypes(taskId: string): Promise<string[]> {
    return (await this.events(taskId)).map(({ type }) => type.replace(/^reeve\.task\.|^task\./, ''));
  }

  /** Everything that must hold of these tasks, but for what is only about to be seen to. */
  async assertHistories(taskIds: readonly string[]): Promise<void> {
    const moment = { now: this.clock.nowMs(), quietSince: this.clock.nowMs() };
    for (const taskId of taskIds) {
      const [task] = (await this.real.auditTasks({ taskIds: [taskId], after: 0, limit: 1 })).entries;
      if (task?.kind !== 'task') throw new Error(`there is no ${taskId}`);
      const { findings } = await auditTask(task, this.real.auditHistory.bind(this.real), moment);
      const lasting = findings.filter(({ invariant: name }) => invariant(name).passes !== true);
      if (lasting.length > 0) throw new Error(`${taskId}: ${JSON.stringify(lasting)}`);
    }
  }

  settle(): Promise<void> {
    return turns();
  }
}
