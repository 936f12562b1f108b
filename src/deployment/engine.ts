/**
 * What every process that owns tasks is made of, whatever stands in front: the authority over a store, the dispatcher,
 * the timers, the propagation, the purges and the permits (architecture.md). The one place where an authority is made; the
 * server and the embedding library both compose it from here. It decides nothing about tasks.
 */
import { Authority } from '../authority/authority.js';
import { Dispatcher } from '../dispatcher/dispatcher.js';
import { QuietPeriod } from '../dispatcher/quiet-period.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import type { KeyLimit } from '../kernel/permits.js';
import type { CapabilityClasses } from '../kernel/placement.js';
import type { RetentionDefaults } from '../kernel/retention.js';
import type { Clock } from '../lib/clock.js';
import type { Random } from '../lib/random.js';
import type { TaskStore } from '../store/task-store.js';
import { PermitAlignment } from '../timers/permit-alignment.js';
import { Propagation } from '../timers/propagation.js';
import { Purging } from '../timers/purging.js';
import { SessionForgetting } from '../timers/session-forgetting.js';
import { TaskTimers } from '../timers/task-timers.js';

export interface EngineOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly kinds: ActionKindRegistry;
  readonly capabilityClasses: CapabilityClasses;
  /** How many tasks of a concurrency key may run at once: the first pattern that fits; one where none does. */
  readonly keyLimits: readonly KeyLimit[];
  /** Of tasks that name no retention of their own. */
  readonly retention: RetentionDefaults;
  readonly acceptTimeoutMs: number;
  readonly cacheBytes: number;
  /** The store must not be used any more; the process is expected to end. */
  readonly onFatal: (error: unknown) => void;
  /** A broken invariant or a failing listener; the service goes on. */
  readonly onDefect: (error: unknown) => void;
  /** So many tasks whose retention was over are gone. */
  readonly onPurged?: (tasks: number) => void;
}

export interface Engine {
  readonly authority: Authority;
  readonly quiet: QuietPeriod;
  readonly dispatcher: Dispatcher;
  readonly timers: TaskTimers;
  readonly propagation: Propagation;
  readonly purging: Purging;
  readonly forgetting: SessionForgetting;
  readonly permits: PermitAlignment;
}

/** Everything made and nothing started. Throws StoreError when the store does not answer. */
export async function makeEngine(options: EngineOptions): Promise<Engine> {
  const { store, clock, random, kinds, capabilityClasses, keyLimits, retention, acceptTimeoutMs, cacheBytes } = options;
  const { onFatal, onDefect, onPurged = () => undefined } = options;
  const permitRules = { keyLimits, capabilities: capabilityClasses };
  const limits = { acceptTimeoutMs, cacheBytes, retention, permitRules };
  const authority = await Authority.open({ store, clock, random, ...limits, onFatal, onDefect });
  const quiet = new QuietPeriod(clock);
  const rules = { actionKinds: kinds, capabilityClasses };
  const dispatcher = new Dispatcher({ authority, quiet, rules, onError: onDefect });
  const quietSince = (): number => quiet.quietSince();
  const timers = new TaskTimers(authority, quietSince, onDefect);
  const propagation = new Propagation(authority, onDefect);
  const purging = new Purging({ authority, onError: onDefect, onPurged });
  const forgetting = new SessionForgetting({ authority, quietSince, onError: onDefect });
  const permits = new PermitAlignment(authority, onDefect);
  return { authority, quiet, dispatcher, timers, propagation, purging, forgetting, permits };
}

/** Takes up what a crash left, and whatever comes. Throws StoreError when the store does not answer. */
export async function startEngine(engine: Engine): Promise<void> {
  engine.quiet.start();
  await engine.permits.start();
  await engine.dispatcher.start();
  engine.timers.start();
  engine.propagation.start();
  engine.purging.start();
  engine.forgetting.start();
}

export interface EngineStop {
  /** What goes on beside the calls, in the order in which it stops; none of it waits. */
  readonly background: readonly (readonly [step: string, stop: () => void])[];
  /** Everything accepted is committed and answered, and what was under way beside it too. */
  readonly flush: () => Promise<void>;
}

/** The one order of a stop, behind the end of claims and before that of the sessions. */
export function engineStop({ authority, timers, propagation, purging, forgetting, permits }: Engine): EngineStop {
  // What is under way goes on to its next step, and needs its commits and the store.
  const underWay: Promise<void>[] = [];
  return {
    background: [
      ['stop the timers', () => void underWay.push(timers.stop())],
      ['stop the propagation', () => void underWay.push(propagation.stop())],
      ['stop the purges', () => void underWay.push(purging.stop())],
      ['stop the forgetting of sessions', () => void underWay.push(forgetting.stop())],
      ['stop the alignment of permits', () => void underWay.push(permits.stop())],
    ],
    flush: async () => {
      await Promise.all([authority.stop(), ...underWay]);
    },
  };
}

/** No more claims, everything accepted committed and answered, nothing left running. The store stays open. */
export async function stopEngine(engine: Engine): Promise<void> {
  const { dispatcher, quiet } = engine;
  const { background, flush } = engineStop(engine);
  dispatcher.beginDrain(0, 0);
  for (const [, stop] of background) stop();
  await flush();
  dispatcher.stop();
  quiet.stop();
}
