/**
 * Pairing from memory: which ready task goes to which session next (architecture.md, "The dispatcher").
 * Windows of ready tasks by route on one side, pools of sessions on the other. It never asks the store per task, and
 * what it pairs is only a proposal: the claim is judged and committed like everything else.
 */
import type { Authority } from '../authority/authority.js';
import type { Assignment, ClaimFailure, ClaimSource } from '../authority/claim-source.js';
import {
  type PlacementRules,
  type Route,
  type Subscription,
  preference,
  readyOrder,
  routeKeyOf,
  routeOf,
  serves,
} from '../kernel/placement.js';
import { EXECUTION_TARGETS } from '../kernel/admission/application.js';
import type { TaskRecord } from '../kernel/record.js';
import type { TaskReady } from '../store/permit-rows.js';
import type { ReadyPosition, ReadyTask } from '../store/task-store.js';
import { ClaimableWindows } from './claimable-windows.js';
import { DamagedTasks } from './damaged-tasks.js';
import { Pool, subscriptionKey } from './pool.js';
import { MAX_WINDOW_ENTRIES, type ReadyEntry, RouteWindow } from './route-window.js';
import type { WorkSession } from './work-session.js';

/** How many ready tasks one load brings: some for every free slot, within these bounds. A window is refilled when it is empty. */
const MIN_LOAD_ENTRIES = 64;
const MAX_LOAD_ENTRIES = MAX_WINDOW_ENTRIES / 4;
const LOADED_PER_FREE_SLOT = 4;
/** Loads under way: routes are the callers' to make, and their reads must not keep commits waiting. */
export const MAX_LOADS_AT_ONCE = 16;
/** Windows looked at per wake-up for whether they are to be loaded; the others come at the next ones. */
const MAX_LOOKS_PER_WAKE = 1_024;
/** A route with free slots and nothing to do is looked up again this often: wake-ups are hints only. */
export const POLL_PERIOD_MS = 5_000;
const POLL_TICK_MS = 250;
/** At most this many idle routes are looked up per poll tick, and so many more are passed over. */
const POLLED_ROUTES_PER_TICK = 50;
const MAX_LOOKS_PER_TICK = 2_048;

export class ReadyRoutes implements ClaimSource {
  /** In the order of their turns at being polled. What is empty and served by nobody is not kept. */
  private readonly windows = new Map<string, RouteWindow>();
  private readonly claimable = new ClaimableWindows();
  /** Served by somebody, empty, and the store may have more: to be loaded when there is a free slot for them. */
  private readonly hungry = new Set<RouteWindow>();
  /** To be looked up by the last poll ticks, as far as they were not yet. */
  private readonly overdue = new Set<RouteWindow>();
  private loads = 0;
  private readonly damaged: DamagedTasks;
  private readonly pools = new Map<string, Pool>();
  private readonly promised = new Map<Assignment, { window: RouteWindow; session: WorkSession }>();
  /** By id, ready tasks that the batch in the making cannot take. Null: withdrawn since. */
  private readonly crowded = new Map<string, { window: RouteWindow; entry: ReadyEntry } | null>();
  /** The batch in the making failed. */
  private storeAway = false;
  private paused = false;
  private waking = false;
  private pollTimer: { cancel(): void } | null = null;

  constructor(
    private readonly authority: Authority,
    private readonly rules: PlacementRules,
    /** A session lost a race for its own standing: look at its row again. */
    private readonly onSuspect: (session: WorkSession) => void,
    private readonly onError: (error: unknown) => void,
  ) {
    this.damaged = new DamagedTasks(authority.clock);
  }

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
      for (const window of this.windows.values()) {
        if (this.join(window, pool)) this.sort(window);
      }
    }
    return pool;
  }

  /** True when the sessions of the pool may run what the window holds. */
  private join(window: RouteWindow, pool: Pool): boolean {
    const { subscription } = pool;
    const fits = serves(subscription, window.route, this.rules);
    if (fits) window.addPool(pool, preference(subscription, window.route, this.rules));
    return fits;
  }

  private dropPool(key: string): void {
    const pool = this.pools.get(key);
    this.pools.delete(key);
    for (const window of this.windows.values()) {
      if (pool !== undefined && window.removePool(pool) && window.pools.length === 0) this.sort(window);
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
    this.claimable.recheck();
    this.loadMore();
    if (!this.claimable.isEmpty) this.authority.wakeForClaims();
  }

  /** Those looked at in vain go behind the others, so that the next look finds others. */
  private loadMore(): void {
    let looks = Math.min(this.hungry.size, MAX_LOOKS_PER_WAKE);
    for (const window of this.hungry) {
      if (this.loads >= MAX_LOADS_AT_ONCE || looks === 0) return;
      looks -= 1;
      this.hungry.delete(window);
      if (!window.wantsLoad) continue;
      if (window.hasCredit) this.load(window);
      else this.hungry.add(window);
    }
    for (const window of this.overdue) {
      if (this.loads >= MAX_LOADS_AT_ONCE) return;
      this.overdue.delete(window);
      if (!window.loading && window.size === 0) this.load(window);
    }
  }

  /** Puts a window where it belongs after something about it has changed. */
  private sort(window: RouteWindow): void {
    const { pools } = window;
    if (pools.length > 0 && window.size > 0) this.claimable.add(window);
    else this.claimable.remove(window);
    if (pools.length > 0 && window.wantsLoad) this.hungry.add(window);
    else this.hungry.delete(window);
    if (window.isIdle && this.windows.get(window.key) === window) this.windows.delete(window.key);
  }

  offer(record: TaskRecord): void {
    const order = readyOrder(record);
    if (order === null) return;
    this.damaged.forget(record.admission.taskId);
    const key = routeKeyOf(record.admission);
    const window = this.windows.get(key) ?? this.windowOf(key, routeOf(record.admission));
    this.offerTo(window, { taskId: record.admission.taskId, readyOrder: order });
  }

  offerReady({ taskId, routeKey, readyOrder }: TaskReady): void {
    this.damaged.forget(taskId);
    const known = this.windows.get(routeKey);
    const route = known === undefined ? parseRouteKey(routeKey) : null;
    const window = known ?? (route && this.windowOf(routeKey, route));
    if (window !== null) this.offerTo(window, { taskId, readyOrder });
  }

  withdraw({ taskId, routeKey, readyOrder }: TaskReady): void {
    if (this.crowded.has(taskId)) this.crowded.set(taskId, null);
    const window = this.windows.get(routeKey);
    if (window === undefined) return;
    window.remove({ taskId, readyOrder });
    if (window.size === 0) this.sort(window);
  }

  private offerTo(window: RouteWindow, entry: ReadyEntry): void {
    window.offer(entry);
    if (window.size > 0) this.claimable.add(window);
    else if (window.wantsLoad && window.hasCredit) this.load(window);
  }

  next(): Assignment | null {
    if (this.paused) return null;
    for (let claimable = this.claimable.next(); claimable !== null; claimable = this.claimable.next()) {
      const { window, pool } = claimable;
      const entry = window.take();
      if (window.size === 0) {
        this.claimable.remove(window);
        if (window.wantsLoad) this.load(window);
      }
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
    const { taskId, readyOrder } = assignment;
    if (why === 'damaged') this.damaged.add(taskId);
    else if (why === 'crowded') this.crowded.set(taskId, { window, entry: { taskId, readyOrder } });
    else if (why !== 'stale') this.forget(window);
    if (why === 'session' && !session.suspect) {
      session.suspect = true;
      this.onSuspect(session);
    }
    session.unreserve();
    // Not when the store is away: the poll asks it again soon enough.
    if (why === 'store') this.storeAway = true;
    else if (why !== 'crowded') this.wake();
  }

  /** Who was in the way of those that it could not take has got the place, or has not. */
  batchOver(): void {
    const { storeAway } = this;
    this.storeAway = false;
    if (this.crowded.size === 0) return;
    for (const turnedAway of this.crowded.values()) {
      if (turnedAway === null) continue;
      const { window, entry } = turnedAway;
      this.offerTo(this.windows.get(window.key) ?? this.windowOf(window.key, window.route), entry);
    }
    this.crowded.clear();
    if (!storeAway) this.wake();
  }

  kept(assignment: Assignment): void {
    const promised = this.promised.get(assignment);
    this.promised.delete(assignment);
    promised?.session.unreserve();
  }

  /** What is known of the route no longer holds; nor that there is nothing to know, should it have been let go. */
  private forget(window: RouteWindow): void {
    const current = this.windows.get(window.key) ?? this.windowOf(window.key, window.route);
    current.forget();
    this.sort(current);
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
    for (const pool of this.pools.values()) this.join(window, pool);
    this.windows.set(key, window);
    this.sort(window);
    return window;
  }

  /** Routes take turns at being looked up, where there are more than a tick has room for. */
  private toTheEnd(window: RouteWindow): void {
    this.windows.delete(window.key);
    this.windows.set(window.key, window);
  }

  private load(window: RouteWindow): void {
    if (this.loads >= MAX_LOADS_AT_ONCE) {
      this.hungry.add(window);
      return;
    }
    this.loads += 1;
    this.hungry.delete(window);
    window.beginLoad();
    // A window that were filled from before the batch in the making would miss what that batch makes ready.
    this.authority.readBehindBatch(() => this.fill(window));
  }

  private fill(window: RouteWindow): void {
    this.readEntries(window).then(
      ({ entries, all }) => {
        this.loads -= 1;
        const served = window.pools.length > 0;
        // Of a route that nobody serves only whether there is anything is worth knowing.
        window.endLoad(
          served ? entries : [],
          all && (served || entries.length === 0),
          this.authority.clock.monotonicMs(),
        );
        this.sort(window);
        if (!this.paused) this.loadMore();
        if (window.size > 0) this.authority.wakeForClaims();
      },
      (error: unknown) => {
        this.loads -= 1;
        window.failLoad();
        // Not at once: the poll asks the store again soon enough.
        this.onError(error);
      },
    );
  }

  /** The first ready tasks of the route; those that were found to be damaged are stepped over. */
  private async readEntries(window: RouteWindow): Promise<{ entries: ReadyEntry[]; all: boolean }> {
    const limit = this.entriesFor(window);
    let after: ReadyPosition | null = null;
    for (;;) {
      const tasks: readonly ReadyTask[] = await this.authority.store.readyTasks(window.key, after, limit);
      const entries: ReadyEntry[] = [];
      for (const { taskId, position } of tasks) {
        after = position;
        if (!this.damaged.has(taskId)) entries.push({ taskId, readyOrder: position.readyOrder });
      }
      const all = tasks.length < limit;
      if (all || entries.length > 0) return { entries, all };
    }
  }

  private entriesFor({ pools }: RouteWindow): number {
    if (pools.length === 0) return 1;
    let free = 0;
    for (const pool of pools) {
      free += pool.freeSlots(MAX_LOAD_ENTRIES);
      if (free >= MAX_LOAD_ENTRIES) break;
    }
    return Math.min(Math.max(free * LOADED_PER_FREE_SLOT, MIN_LOAD_ENTRIES), MAX_LOAD_ENTRIES);
  }

  private poll(): void {
    if (this.paused) return;
    this.pollTimer = this.authority.clock.after(POLL_TICK_MS, () => {
      this.lookUpIdle();
      this.lookForWork();
      this.poll();
    });
  }

  /** Those that have been thought empty for long, and those that failed to load or that nobody serves any more. */
  private lookUpIdle(): void {
    const staleBefore = this.authority.clock.monotonicMs() - POLL_PERIOD_MS;
    let room = POLLED_ROUTES_PER_TICK - this.overdue.size;
    let looks = Math.min(this.windows.size, MAX_LOOKS_PER_TICK);
    for (const window of this.windows.values()) {
      if (room <= 0 || looks === 0) return;
      looks -= 1;
      this.toTheEnd(window);
      if (window.loading || window.size > 0) continue;
      // One that nobody serves is looked up too, so as to be let go when there is nothing left of it.
      const served = window.pools.length > 0;
      if (served && !window.hasCredit) continue;
      if (window.loadedAt > staleBefore && !(served && window.wantsLoad)) continue;
      room -= 1;
      this.overdue.add(window);
    }
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
