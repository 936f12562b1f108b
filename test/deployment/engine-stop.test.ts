// The stop of an engine: nothing that goes on beside the calls is cut off in the middle of a step. Until it is over the
// store is in use, so the flush waits for it, and no further step is begun.

import { expect, it, vi } from 'vitest';
import { DEFAULT_ACCEPT_TIMEOUT_MS, DEFAULT_CACHE_BYTES } from '../../src/authority/authority.js';
import { registryOf } from '../../src/deployment/action-kind-registry.js';
import { engineStop, makeEngine, startEngine } from '../../src/deployment/engine.js';
import { readRetention } from '../../src/deployment/retention-option.js';
import { systemRandom } from '../../src/lib/random.js';
import { openMemoryStore } from '../../src/store/memory/memory-store.js';
import type { TaskStore } from '../../src/store/task-store.js';
import { FORGET_QUIET_MS } from '../../src/timers/session-forgetting.js';
import { ManualClock } from '../support/manual-clock.js';
import { Signal, turns } from '../support/turns.js';

interface Step {
  readonly of: string;
  /** What it asks the store first. */
  readonly method: 'purgeable' | 'dueTasks' | 'propagations' | 'permits' | 'forgetSessions';
  readonly answer: readonly never[] | boolean;
  /** How long after the start it comes, ms. */
  readonly afterMs: number;
}

const STEPS: readonly Step[] = [
  { of: 'the timers', method: 'dueTasks', answer: [], afterMs: 1_000 },
  { of: 'the propagation', method: 'propagations', answer: [], afterMs: 0 },
  { of: 'the purges', method: 'purgeable', answer: [], afterMs: 0 },
  { of: 'the forgetting of sessions', method: 'forgetSessions', answer: true, afterMs: FORGET_QUIET_MS },
  { of: 'the alignment of permits', method: 'permits', answer: [], afterMs: 0 },
];
/** The alignment of permits asks for one at a time before it lets the engine start, and for pages beside the calls. */
const ASKED_AT_START = 1;

it.each(STEPS)('a step of $of is let end before the store may be closed', async ({ method, answer, afterMs }) => {
  const begun = new Signal();
  const released = new Signal();
  const store = openMemoryStore();
  const held = vi.fn(async () => {
    begun.reach();
    await released.reached;
    return answer;
  });
  const clock = new ManualClock();
  const told: unknown[] = [];
  const engine = await makeEngine({
    store: replacing(store, method, held),
    clock,
    random: systemRandom,
    kinds: await registryOf([]),
    capabilityClasses: new Map(),
    keyLimits: [],
    retention: readRetention('never'),
    acceptTimeoutMs: DEFAULT_ACCEPT_TIMEOUT_MS,
    cacheBytes: DEFAULT_CACHE_BYTES,
    onFatal: (error) => void told.push(error),
    onDefect: (error) => void told.push(error),
  });
  await startEngine(engine);
  await clock.advance(afterMs);
  await begun.reached;

  const { background, flush } = engineStop(engine);
  engine.dispatcher.beginDrain(0, 0);
  for (const [, stop] of background) stop();
  let flushed = false;
  const flushing = flush().then(() => (flushed = true));
  await turns();
  expect(flushed).toBe(false);
  released.reach();
  await flushing;
  engine.dispatcher.stop();
  engine.quiet.stop();
  await clock.advance(60_000);
  expect(held).toHaveBeenCalledOnce();
  expect(clock.armedTimers).toBe(0);
  expect(told).toEqual([]);
});

function replacing(store: TaskStore, method: Step['method'], replaced: () => Promise<unknown>): TaskStore {
  const held = (...asked: readonly unknown[]): Promise<unknown> =>
    asked[1] === ASKED_AT_START ? Promise.resolve([]) : replaced();
  return new Proxy(store, {
    get: (target, name: keyof TaskStore) => {
      const value: unknown = name === method ? held : Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
