/**
 * What every process that owns tasks is made of, whatever stands in front: the authority over a store, the dispatcher,
 * the timers and the propagation (architecture.md). The one place where an authority is made; the server and the
 * embedding library both compose it from here. It decides nothing about tasks.
 */
import { Authority } from '../authority/authority.js';
import { Dispatcher } from '../dispatcher/dispatcher.js';
import { QuietPeriod } from '../dispatcher/quiet-period.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import type { CapabilityClasses } from '../kernel/placement.js';
import type { Clock } from '../lib/clock.js';
import type { Random } from '../lib/random.js';
import type { TaskStore } from '../store/task-store.js';
import { Propagation } from '../timers/propagation.js';
import { TaskTimers } from '../timers/task-timers.js';

export interface EngineOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly kinds: ActionKindRegistry;
  readonly capabilityClasses: CapabilityClasses;
  readonly acceptTimeoutMs: number;
  readonly cacheBytes: number;
  /** The store must not be used any more; the process is expected to end. */
  readonly onFatal: (error: unknown) => void;
  /** A broken invariant or a failing listener; the service goes on. */
  readonly onDefect: (error: unknown) => void;
}

export interface Engine {
  readonly authority: Authority;
  readonly quiet: QuietPeriod;
  readonly dispatcher: Dispatcher;
  readonly timers: TaskTimers;
  readonly propagation: Propagation;
}

/** Everything made and nothing started. Throws StoreError when the store does not answer. */
export async function makeEngine(options: EngineOptions): Promise<Engine> {
  const { store, clock, random, kinds, capabilityClasses, acceptTimeoutMs, cacheBytes, onFatal, onDefect } = options;
  const authority = await Authority.open({ store, clock, random, acceptTimeoutMs, cacheBytes, onFatal, onDefect });
  const quiet = new QuietPeriod(clock);
  const rules = { actionKinds: kinds, capabilityClasses };
  const dispatcher = new Dispatcher({ authority, quiet, rules, onError: onDefect });
  const timers = new TaskTimers(authority, () => quiet.quietSince(), onDefect);
  const propagation = new Propagation(authority, onDefect);
  return { authority, quiet, dispatcher, timers, propagation };
}

/** Takes up what a crash left, and whatever comes. Throws StoreError when the store does not answer. */
export async function startEngine({ quiet, dispatcher, timers, propagation }: Engine): Promise<void> {
  quiet.start();
  await dispatcher.start();
  timers.start();
  propagation.start();
}

/** No more claims, everything accepted committed and answered, nothing left running. The store stays open. */
export async function stopEngine({ authority, quiet, dispatcher, timers, propagation }: Engine): Promise<void> {
  dispatcher.beginDrain(0, 0);
  timers.stop();
  propagation.stop();
  await authority.stop();
  dispatcher.stop();
  quiet.stop();
}
