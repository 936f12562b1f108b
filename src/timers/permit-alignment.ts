/**
 * Permits after a change of the configuration: what the store keeps of limits is brought to what is configured now, once
 * after every start, in bounded steps. Whoever runs goes on to run, also where fewer may than do.
 */
import type { Authority } from '../authority/authority.js';
import { PERMIT_MOVES_PER_STEP } from '../authority/permit-work.js';
import { BEFORE_CAPABILITIES, type PermitRules, permitLimit } from '../kernel/permits.js';
import type { Timer } from '../lib/clock.js';
import type { PermitState, PermitStep } from '../store/permit-rows.js';
import { StoreError } from '../store/store-error.js';

const STATES_PER_PAGE = 256;
/**
 * The first step of a permit: those of a page are taken at once, and share a transaction. What is left of one is gone on
 * with by itself, in larger ones.
 */
const MOVES_AT_FIRST = 8;
const TASKS_PER_PAGE = 256;
/** What could not be read or written is tried again this much later. */
const RETRY_MS = 1_000;

export class PermitAlignment {
  private timer: Timer | null = null;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private readonly rules: PermitRules;

  constructor(
    private readonly authority: Authority,
    private readonly onError: (error: unknown) => void,
  ) {
    this.rules = authority.permitRules;
  }

  /**
   * Before anything is judged under the new rules, nobody stands in line for what is needed no more (a decision that says
   * nothing of permits must not leave a place in a line behind), and running tasks of a capability that came to be
   * serialized hold it. Limits are aligned beside the service. Throws StoreError.
   */
  async start(): Promise<void> {
    await this.dissolveUnneeded();
    if (await this.hasSerializedRoutes()) await this.alignRunning();
    this.running = this.run();
  }

  /** Begins nothing more. Resolves when the step in hand is over: until then the store is in use. */
  stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    return this.running;
  }

  private async run(): Promise<void> {
    let done = false;
    try {
      done = await this.alignLimits();
    } catch (error) {
      this.authority.noteFailure(error);
      this.onError(error);
    }
    if (done || this.stopped) return;
    this.timer = this.authority.clock.after(RETRY_MS, () => {
      this.running = this.run();
    });
  }

  /** Goes through every permit once; false when one of them could not be aligned. */
  private async alignLimits(): Promise<boolean> {
    let all = true;
    for (let after: string | null = null; ;) {
      const page: readonly PermitState[] = await this.authority.store.permits(after, STATES_PER_PAGE);
      for (const state of page) {
        if (this.stopped) return true;
        if (state.aside && !(await this.recall(state))) all = false;
        after = state.name;
      }
      if (this.stopped) return true;
      const done = await Promise.all(page.map((state) => this.alignOne(state)));
      all &&= done.every((one) => one);
      if (page.length < STATES_PER_PAGE) return all;
    }
  }

  private async dissolveUnneeded(): Promise<void> {
    for (let after = BEFORE_CAPABILITIES; ;) {
      const [state] = await this.authority.store.permits(after, 1);
      if (state === undefined) return;
      if (permitLimit(state.name, this.rules) !== null) {
        after = state.name;
        continue;
      }
      const step = { kind: 'dissolved', name: state.name, most: PERMIT_MOVES_PER_STEP } as const;
      if (!(await this.take(step))) {
        throw new StoreError('unavailable', 'a permit that nobody needs any more could not be dissolved');
      }
    }
  }

  /** What could not be read before this start may be readable now; what still is damaged is set aside by its next claim. */
  private recall({ name }: PermitState): Promise<boolean> {
    return this.take({ kind: 'recalled', name, most: PERMIT_MOVES_PER_STEP });
  }

  private async alignOne({ name, limit: known, queued, settled, aside }: PermitState): Promise<boolean> {
    const limit = permitLimit(name, this.rules);
    if (limit === null) return true;
    // Where nobody queues, the next who needs it brings its limit along. Who was recalled queues since.
    if (!aside && (!queued || (settled && limit === known))) return true;
    return this.take({ kind: 'limited', name, limit, most: MOVES_AT_FIRST });
  }

  private async take(step: PermitStep): Promise<boolean> {
    return (await this.authority.upkeep.changePermit(step)) === 'done';
  }

  private async hasSerializedRoutes(): Promise<boolean> {
    const serialized = [...this.rules.capabilities].filter(([, meaning]) => meaning === 'serialization');
    if (serialized.length === 0) return false;
    const lines = new Set((await this.authority.store.routeKeys()).flatMap((key) => key.split('\n')));
    return serialized.some(([label]) => lines.has(label));
  }

  /** One that runs and is not counted would have another one run beside it: it is aligned, or nothing starts. */
  private async alignRunner(taskId: string): Promise<void> {
    if ((await this.authority.upkeep.alignPermits(taskId)) === 'done') return;
    const read = await this.authority.reads.get(taskId);
    const isHopeless = !read.ok && ['RECORD_DAMAGED', 'TASK_NOT_FOUND'].includes(read.refusal.reason);
    if (!isHopeless) throw new StoreError('unavailable', 'what runs could not be given its permits');
  }

  private async alignRunning(): Promise<void> {
    const { store } = this.authority;
    for (const sessionId of await store.leaseHolders()) {
      for (let after = 0; ;) {
        const page = await store.tasksOfSession(sessionId, after, TASKS_PER_PAGE);
        await Promise.all(page.map(({ taskId }) => this.alignRunner(taskId)));
        const last = page[page.length - 1];
        if (last === undefined || page.length < TASKS_PER_PAGE) break;
        after = last.order;
      }
    }
  }
}
