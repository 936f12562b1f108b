/**
 * Pairing from memory: which ready task goes to which session next (architecture.md, "The dispatcher").
 * Windows of ready tasks by route on one side, pools of sessions on the other. It never asks the store per task, and
 * what it pairs is only a proposal: the claim is judged and committed like everything else.
 */
import type { Authority } from '../authority/authority.js';
import type { Assignment, ClaimFailure, ClaimSource } from '../authority/claim-source.js';
import { type Route, routeKeyOf, readyOrder, routeOf, type Subscription } from '../kernel/placement.js';
import { EXECUTION_TARGETS } from '../kernel/admission/application.js';
import type { TaskRecord } from '../kernel/record.js';
import type { ReadyPosition, ReadyTask } from '../store/task-store.js';
import { Pool, subscriptionKey } from './pool.js';
import { MAX_WINDOW_ENTRIES, type ReadyEntry, RouteWindow } from './route-window.js';
import type { WorkSession } from './work-session.js';

/** How many ready tasks one load brings; a window is refilled when it is empty. */
const LOAD_ENTRIES = MAX_WINDOW_ENTRIES / 4;
/** A route with free slots and nothing to do is looked up again this often: wake-ups are hints only. */
export const POLL_PERIOD_MS = 5_000;
const POLL_TICK_MS = 250;
/** At most this many idle routes are looked up per poll tick. */
const POLLED_ROUTES_PER_TICK = 50;

export class ReadyRoutes implements ClaimSource {
  /** In the order of their turns. */
  private readonly windows = new Map<string, RouteWindow>();
  /** Those with something to claim and, as far as is known, somebody to claim it. */
  private readonly withEntries = new Set<RouteWindow>();
  private readonly pools = new Map<string, Pool>();
  private readonly promised = new Map<Assignment, { window: RouteWindow; session: WorkSession }>();
  private paused = false;
  private waking = false;
  private pollTimer: { cancel(): void } | null = null;

  constructor(
    private readonly authority: Authority,
    /** A session lost a race for its own standing: look at its row again. */
    private readonly onSuspect: (session: WorkSession) => void,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** Learns the routes the store knows and starts polling. */
  async start(): Promise<void> {
    for (const key of await this.authority.store.routeKeys()) {
      const route = parseRouteKey(key);
      if (route !== null) this.windowOf(key, route);
    }
    this.poll();
  }

  /** No further claims; resolves nothing, cancels nothing. */
  pause(): void {
    this.paused = true;
    this.pollTimer?.cancel();
  }

  /** The pool of a subscription, made when it is the first of its kind. */
  poolOf(subscription: Subscription): Pool {
    const key = subscriptionKey(subscription);
    let pool = this.pools.get(key);
    if (pool === undefined) {
      pool = new Pool(subscription, () => this.dropPool(key));
      this.pools.set(key, pool);
      for (const window of this.windows.values()) if (pool.serves(window.route)) window.pools.push(pool);
    }
    return pool;
  }

  private dropPool(key: string): void {
    const pool = this.pools.get(key);
    this.pools.delete(key);
    for (const { pools } of this.windows.values()) {
      const at = pools.findIndex((candidate) => candidate === pool);
      if (at >= 0) pools.splice(at, 1);
    }
  }

  /** Credit came back or a session arrived: there may be something to claim. Looked at once per turn. */
  wake(): void {
    if (this.paused || this.waking) return;
    this.waking = true;
    queueMicrotask(() => this.lookForWork());
  }

  private lookForWork(): void {
    this.waking = false;
    if (this.paused) return;
    for (const window of this.windows.values()) {
      if (!window.hasCredit) continue;
      if (window.size > 0) this.withEntries.add(window);
      else if (window.wantsLoad) this.load(window);
    }
    if (this.withEntries.size > 0) this.authority.wakeForClaims();
  }

  offer(record: TaskRecord): void {
    const order = readyOrder(record);
    if (order === null) return;
    const key = routeKeyOf(record.admission);
    const window = this.windows.get(key) ?? this.windowOf(key, routeOf(record.admission));
    window.offer({ taskId: record.admission.taskId, readyOrder: order });
    if (window.size > 0) this.withEntries.add(window);
    else if (window.wantsLoad && window.hasCredit) this.load(window);
  }

  next(): Assignment | null {
    if (this.paused) return null;
    for (const window of this.withEntries) {
      const pool = window.pools.find((candidate) => candidate.hasCredit);
      if (pool === undefined) {
        // Until credit comes back: routes that nobody serves must not cost every claim a look.
        this.withEntries.delete(window);
        continue;
      }
      const entry = window.take();
      this.toTheEnd(window);
      this.withEntries.delete(window);
      if (window.size > 0) this.withEntries.add(window);
      else if (window.wantsLoad) this.load(window);
      const session = entry === null ? null : pool.take();
      if (entry === null || session === null) continue;
      return this.promise(entry, window, session);
    }
    return null;
  }

  failed(assignment: Assignment, why: ClaimFailure): void {
    const promised = this.promised.get(assignment);
    if (promised === undefined) return;
    this.promised.delete(assignment);
    const { window, session } = promised;
    if (why !== 'stale') window.forget();
    if (why === 'session' && !session.suspect) {
      session.suspect = true;
      this.onSuspect(session);
    }
    session.unreserve();
    // Not when the store is away: the poll asks it again soon enough.
    if (why !== 'store') this.wake();
  }

  kept(assignment: Assignment): void {
    const promised = this.promised.get(assignment);
    this.promised.delete(assignment);
    promised?.session.unreserve();
  }

  private promise(entry: ReadyEntry, window: RouteWindow, session: WorkSession): Assignment {
    const { identity, attachment } = session;
    const assignment: Assignment = {
      taskId: entry.taskId,
      sessionId: identity.sessionId,
      attachment,
      worker: identity.workerName,
      sessionTtlMs: identity.ttlMs,
      readyOrder: entry.readyOrder,
    };
    this.promised.set(assignment, { window, session });
    return assignment;
  }

  private windowOf(key: string, route: Route): RouteWindow {
    const known = this.windows.get(key);
    if (known !== undefined) return known;
    const window = new RouteWindow(key, route);
    for (const pool of this.pools.values()) if (pool.serves(route)) window.pools.push(pool);
    this.windows.set(key, window);
    return window;
  }

  /** Routes take turns, at being served and, where there are more than a tick has room for, at being looked up. */
  private toTheEnd(window: RouteWindow): void {
    this.windows.delete(window.key);
    this.windows.set(window.key, window);
  }

  private load(window: RouteWindow): void {
    window.beginLoad();
    // A window that were filled from before the batch in the making would miss what that batch makes ready.
    this.authority.readBehindBatch(() => this.fill(window));
  }

  private fill(window: RouteWindow): void {
    this.readEntries(window).then(
      ({ entries, all }) => {
        window.endLoad(entries, all, this.authority.clock.monotonicMs());
        if (window.size === 0) return;
        this.withEntries.add(window);
        this.authority.wakeForClaims();
      },
      (error: unknown) => {
        window.failLoad();
        this.onError(error);
      },
    );
  }

  /** The first ready tasks of the route that can be trusted; damaged ones are stepped over. */
  private async readEntries(window: RouteWindow): Promise<{ entries: ReadyEntry[]; all: boolean }> {
    let after: ReadyPosition | null = null;
    for (;;) {
      const tasks: readonly ReadyTask[] = await this.readPage(window.key, after);
      const entries: ReadyEntry[] = [];
      for (const { task, position } of tasks) {
        after = position;
        if (task.kind === 'task') entries.push({ taskId: task.taskId, readyOrder: position.readyOrder });
      }
      const all = tasks.length < LOAD_ENTRIES;
      if (all || entries.length > 0) return { entries, all };
    }
  }

  private async readPage(key: string, after: ReadyPosition | null): Promise<readonly ReadyTask[]> {
    const read = this.authority.beginRead();
    try {
      const tasks = await this.authority.store.readyTasks(key, after, LOAD_ENTRIES);
      for (const { task } of tasks) if (task.kind === 'task') read.keep(task.record);
      return tasks;
    } finally {
      read.end();
    }
  }

  private poll(): void {
    if (this.paused) return;
    this.pollTimer = this.authority.clock.after(POLL_TICK_MS, () => {
      const staleBefore = this.authority.clock.monotonicMs() - POLL_PERIOD_MS;
      let room = POLLED_ROUTES_PER_TICK;
      for (const window of this.windows.values()) {
        if (room === 0) break;
        if (window.loading || window.size > 0 || !window.hasCredit) continue;
        if (!window.wantsLoad && window.loadedAt > staleBefore) continue;
        room -= 1;
        this.toTheEnd(window);
        this.load(window);
      }
      this.lookForWork();
      this.poll();
    });
  }
}

function parseRouteKey(key: string): Route | null {
  const [namespace, queue, actionKind, executionTarget, ...capabilities] = key.split('\n');
  if (namespace === undefined || queue === undefined || actionKind === undefined) return null;
  const target = EXECUTION_TARGETS.find((known) => known === executionTarget);
  if (target === undefined) return null;
  return {
    namespace,
    queue,
    actionKind,
    executionTarget: target,
    requiredCapabilities: capabilities.filter((label) => label !== ''),
  };
}
