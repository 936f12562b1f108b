/**
 * What a worker is told at its making, and the Hello that follows from it.
 */
import { hostname } from 'node:os';
import { ExecutionTarget } from '../../gen/reeve/v1/task_pb.js';
import type { RpcOptions } from '../transport/rpc.js';
import { msToDuration } from '../transport/time.js';
import type { Handlers } from './handler.js';
import type { Settled, WorkerNotice } from './notices.js';
import type { OutboxLimits } from './outbox.js';
import type { HelloInit } from './stream/attachment.js';
import { LocalLinks } from './stream/local-links.js';
import type { Links, LinksHost } from './stream/link.js';
import { ThreadLinks } from './stream/thread-links.js';

export type ExecutionTargetWord = Lowercase<Exclude<keyof typeof ExecutionTarget, 'UNSPECIFIED'>>;

export interface WorkerOptions<Kinds> extends RpcOptions, OutboxLimits {
  /** `host:port`. */
  readonly address: string;
  /** By action kind; `*` for all that have no handler of their own. At most 100. */
  readonly handlers: Handlers<Kinds>;
  /** Claims to hold, and handlers to run, at once. 0 … 10,000; default 10. */
  readonly slots?: number;
  /** For people. Default: host name and process id. */
  readonly name?: string;
  readonly version?: string;
  readonly buildId?: string;
  /** Default: `default` only. */
  readonly namespaces?: readonly string[];
  /** Default: all. */
  readonly queues?: readonly string[];
  /** Default: all. */
  readonly executionTargets?: readonly ExecutionTargetWord[];
  /** What this worker has. */
  readonly capabilities?: readonly string[];
  /** Life of the session without a heartbeat, ms. 2,000 … 600,000; default 30,000. */
  readonly ttlMs?: number;
  /** How long the session waits for a lost stream to come back, ms. 0: not at all. Default: the TTL. */
  readonly lingerMs?: number;
  /**
   * Where the session is renewed. `thread` (the default): in a thread, so that a handler which computes without a
   * pause keeps its lease. `main`: on the main loop, which costs no thread, and a handler that computes for longer
   * than the TTL loses its lease; also the default with `credentials`, which cannot be handed to a thread (`tls` can).
   */
  readonly renewal?: 'thread' | 'main';
  /**
   * How long the thread renews for a main loop that says nothing, ms; then the leases are lost, and the tasks go to
   * somebody whose handlers are not wedged. 0: for ever. Default 300,000.
   */
  readonly wedgedAfterMs?: number;
  /** Signals on which `run` drains; a second one stops at once. Default: SIGTERM and SIGINT. */
  readonly signals?: readonly NodeJS.Signals[];
  /** How long a drain lets handlers finish before it asks them to stop, ms. Default 30,000. */
  readonly drainGraceMs?: number;
  /** How long they then have to save a checkpoint, ms. Default 2,000. */
  readonly drainStopMs?: number;
  /** What happens to the worker, for logs and metrics. */
  readonly onNotice?: (notice: WorkerNotice) => void;
  /** A settlement was committed. */
  readonly onSettled?: (settled: Settled) => void;
}

const MAX_SLOTS = 10_000;
/** Longer than a computation without any pause should be, and short enough that a wedged handler is noticed. */
const DEFAULT_WEDGED_AFTER_MS = 300_000;

export function requireSlots(slots: number): number {
  if (Number.isInteger(slots) && slots >= 0 && slots <= MAX_SLOTS) return slots;
  throw new RangeError(`slots must be a whole number from 0 to ${MAX_SLOTS}, not ${slots}`);
}

/** The streams of a worker, where its options want them. @throws RangeError, TypeError. */
export function linksFor(options: WorkerOptions<Record<string, never>>, host: LinksHost): Links {
  const { address, credentials, tls, headers, lingerMs, wedgedAfterMs = DEFAULT_WEDGED_AFTER_MS } = options;
  const { renewal = credentials === undefined ? 'thread' : 'main' } = options;
  if (!(wedgedAfterMs >= 0)) throw new RangeError(`wedgedAfterMs must not be negative, not ${wedgedAfterMs}`);
  if (renewal === 'main') return new LocalLinks(address, { tls, credentials, headers }, host);
  if (credentials !== undefined) {
    throw new TypeError('credentials cannot be handed to a thread: use `tls`, or `renewal: "main"`');
  }
  return new ThreadLinks({ address, tls, headers, wedgedAfterMs, reattaches: lingerMs !== 0 }, host);
}

/** @throws RangeError, TypeError for what the contract does not allow. */
export function toHello(options: WorkerOptions<Record<string, never>>): HelloInit {
  const { name = `${hostname()}-${process.pid}`, ttlMs, lingerMs } = options;
  const kinds = Object.keys(options.handlers);
  if (kinds.length === 0) throw new TypeError('a worker without handlers serves nothing; `*` serves every kind');
  return {
    workerName: name,
    version: options.version ?? '',
    buildId: options.buildId ?? '',
    namespaces: [...(options.namespaces ?? [])],
    queues: [...(options.queues ?? [])],
    // `*` stands alone.
    actionKinds: kinds.includes('*') ? ['*'] : kinds,
    executionTargets: (options.executionTargets ?? []).map(targetOf),
    capabilities: [...(options.capabilities ?? [])],
    slots: requireSlots(options.slots ?? 10),
    ...(ttlMs !== undefined && { ttl: msToDuration(ttlMs) }),
    ...(lingerMs !== undefined && { linger: msToDuration(lingerMs) }),
  };
}

const targets: Readonly<Record<ExecutionTargetWord, ExecutionTarget>> = {
  host: ExecutionTarget.HOST,
  local_worktree: ExecutionTarget.LOCAL_WORKTREE,
  daytona: ExecutionTarget.DAYTONA,
  remote_agent: ExecutionTarget.REMOTE_AGENT,
  process: ExecutionTarget.PROCESS,
};

function targetOf(word: ExecutionTargetWord): ExecutionTarget {
  return targets[word];
}
