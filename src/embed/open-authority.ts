/**
 * Opening the authority in this process: a store, the kinds and classes of the deployment, and the engine over them.
 * One process per SQLite file: a second one is refused while the first has it open.
 */
import { DEFAULT_ACCEPT_TIMEOUT_MS, DEFAULT_CACHE_BYTES } from '../authority/authority.js';
import { ANONYMOUS, mayClaimActor } from '../kernel/cause.js';
import type { CapabilityClass } from '../kernel/placement.js';
import { malformed, refuse } from '../kernel/refusal.js';
import type { TerminalStatus } from '../kernel/status.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { type Random, systemRandom } from '../lib/random.js';
import { registryOf } from '../deployment/action-kind-registry.js';
import type { ActionKindSetting } from '../deployment/action-kind-setting.js';
import { readCapabilityClasses } from '../deployment/capability-setting.js';
import { makeEngine, startEngine, stopEngine } from '../deployment/engine.js';
import { readKeyLimits } from '../deployment/concurrency-setting.js';
import { openStore } from '../deployment/open-store.js';
import { ConfigError } from '../deployment/option-values.js';
import { readRetention } from '../deployment/retention-option.js';
import { StoreError } from '../store/store-error.js';
import type { TaskStore } from '../store/task-store.js';
import { EmbeddedReeve } from './embedded-reeve.js';
import { ReeveRefusal, asThrown } from './refusal.js';
import type { CallerActor } from './submission.js';

export interface OpenOptions {
  /** `sqlite:PATH`, created if it is not there; or `memory:`, which forgets everything at the end. */
  readonly store: string;
  /** Action kinds beside the built-in agent, flow, fanout, play, flow_yaml and workflow; or more about one of those. */
  readonly kinds?: readonly (string | ActionKindSetting)[];
  /** Classes of capability labels; a label that is not in it is one of eligibility. */
  readonly capabilities?: Readonly<Record<string, CapabilityClass>>;
  /** How many tasks of a concurrency key run at once: the first pattern that fits; one where none does. */
  readonly concurrency?: readonly { readonly key: string; readonly limit: number }[];
  /** How long finished tasks are kept that name no retention of their own: `30d`, `never`, … Default: `never`. */
  readonly retention?: string | Readonly<Partial<Record<TerminalStatus | 'all', string>>>;
  /** A file with the key of the hash chains, at least 32 bytes, if the store was made with one. Default: none. */
  readonly chainKeyFile?: string;
  /** Who this program is, in every fact. At most 255 bytes. Default: `anonymous`. */
  readonly principal?: string;
  /** Who acts where a call names nobody. Default: a producer without a name. */
  readonly actor?: CallerActor;
  /** Memory for records of live tasks, bytes. Default: 256 MiB. */
  readonly cacheBytes?: number;
  /**
   * The store must not be used any more; what was not answered may or may not be committed, and opening it anew tells.
   * Default: the error is thrown as an uncaught exception, which ends the process.
   */
  readonly onFatal?: (error: unknown) => void;
  /** A broken invariant, or what a listener threw; everything else goes on. Default: a warning of the process. */
  readonly onDefect?: (error: unknown) => void;
}

/** What tests put in place of the process's own. */
export interface Surroundings {
  readonly clock?: Clock;
  readonly random?: Random;
  /** Instead of the one that the options name. */
  readonly store?: TaskStore;
}

/**
 * Throws ReeveRefusal: MALFORMED for options that cannot be used (`field` names the option, the message the place),
 * STORE_UNAVAILABLE when the store cannot be opened, as when another process has it.
 */
export async function openEmbedded(options: OpenOptions, around: Surroundings = {}): Promise<EmbeddedReeve> {
  const { principal = ANONYMOUS, actor, onDefect = warn, onFatal = crash } = options;
  if (actor !== undefined && !mayClaimActor(actor.type)) {
    throw new ReeveRefusal(malformed('actor.type', 'a caller may be a producer, an operator or a webhook'));
  }
  const kinds = await configured('kinds', () => registryOf((options.kinds ?? []).map(settingOf)));
  const capabilityClasses = await configured('capabilities', async () =>
    readCapabilityClasses(options.capabilities ?? {}),
  );
  const keyLimits = await configured('concurrency', async () => readKeyLimits(options.concurrency ?? []));
  const retention = await configured('retention', async () => readRetention(options.retention ?? 'never'));
  const store = around.store ?? (await configured('store', () => storeOf(options.store, options.chainKeyFile ?? null)));
  try {
    const engine = await makeEngine({
      store,
      clock: around.clock ?? systemClock,
      random: around.random ?? systemRandom,
      kinds,
      capabilityClasses,
      keyLimits,
      retention,
      acceptTimeoutMs: DEFAULT_ACCEPT_TIMEOUT_MS,
      cacheBytes: options.cacheBytes ?? DEFAULT_CACHE_BYTES,
      onFatal,
      onDefect,
    });
    await startEngine(engine).catch(async (error: unknown) => {
      await stopEngine(engine);
      throw error;
    });
    const closeStore = (): Promise<void> => store.close();
    return new EmbeddedReeve({ engine, kinds, principal, actor: actor ?? null, closeStore, onDefect });
  } catch (error) {
    await store.close().catch(() => undefined);
    throw asThrown(error);
  }
}

function settingOf(kind: string | ActionKindSetting): ActionKindSetting {
  return typeof kind === 'string' ? { name: kind } : kind;
}

/** The memory store is loaded for who asks for it by name, and for nobody else. */
async function storeOf(url: string, chainKeyFile: string | null): Promise<TaskStore> {
  if (url !== 'memory:') return openStore(url, chainKeyFile);
  const { openMemoryStore } = await import('../store/memory/memory-store.js');
  return openMemoryStore();
}

/** Whoever opens the authority is its operator, and is told everything. */
async function configured<Value>(field: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ConfigError) throw new ReeveRefusal(malformed(field, error.message));
    if (error instanceof StoreError) {
      throw new ReeveRefusal(refuse('STORE_UNAVAILABLE', `the store cannot be opened: ${error.message}`), {
        cause: error,
      });
    }
    throw error;
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error), 'ReeveDefect');
}

function crash(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}
