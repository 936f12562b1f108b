/**
 * What a worker is told at its making, checked there, and what follows from it: its settings, its Hello, its links.
 */
import { constants, hostname } from 'node:os';
import { ExecutionTarget } from '../../gen/reeve/v1/task_pb.js';
import {
  mismatch,
  optionalFunction,
  optionalSpanMs,
  OptionError,
  requireAddress,
  requireAtLeast,
  requireObject,
  requireOneOf,
  requireRpcOptions,
  requireSpanMs,
  requireText,
  requireTexts,
  requireWhole,
} from '../transport/option-checks.js';
import type { RpcOptions } from '../transport/rpc.js';
import { msToDuration } from '../transport/time.js';
import type { Handler, Handlers } from './handler.js';
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
  /** Signals on which `run` drains; a further one stops at once. Default: SIGTERM and SIGINT; empty for none. */
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

/** What a worker works by, every value checked. */
export interface WorkerSettings {
  readonly hello: HelloInit & { readonly slots: number };
  readonly handlers: ReadonlyMap<string, Handler<never>>;
  readonly drainGraceMs: number;
  readonly drainStopMs: number;
  readonly signals: readonly NodeJS.Signals[];
  readonly unanswered: OutboxLimits;
  /** False: a session ends with its stream. */
  readonly reattaches: boolean;
  /** The streams, where the options want them. */
  readonly linksFor: (host: LinksHost) => Links;
}

type Options = WorkerOptions<Record<string, never>>;

const MAX_SLOTS = 10_000;
const DEFAULT_SLOTS = 10;
/** Longer than a computation without any pause should be, and short enough that a wedged handler is noticed. */
const DEFAULT_WEDGED_AFTER_MS = 300_000;
/** Nobody can listen to them. */
const DEAF_SIGNALS: ReadonlySet<string> = new Set(['SIGKILL', 'SIGSTOP']);

export function requireSlots(slots: unknown): number {
  return requireWhole('slots', slots, 0, MAX_SLOTS);
}

/** @throws OptionError, before anything is started. */
export function readWorkerOptions(options: Options): WorkerSettings {
  requireObject('options', options);
  const { drainGraceMs = 30_000, drainStopMs = 2_000, signals = ['SIGTERM', 'SIGINT'], lingerMs } = options;
  const { maxUnansweredEvents, maxUnansweredBytes } = options;
  if (maxUnansweredEvents !== undefined) requireAtLeast('maxUnansweredEvents', maxUnansweredEvents, 1);
  if (maxUnansweredBytes !== undefined) requireAtLeast('maxUnansweredBytes', maxUnansweredBytes, 1);
  optionalFunction('onNotice', options.onNotice);
  optionalFunction('onSettled', options.onSettled);
  const handlers = readHandlers(options.handlers);
  return {
    hello: toHello(options, [...handlers.keys()]),
    handlers,
    drainGraceMs: requireSpanMs('drainGraceMs', drainGraceMs),
    drainStopMs: requireSpanMs('drainStopMs', drainStopMs),
    signals: readSignals(signals),
    unanswered: {
      ...(maxUnansweredEvents !== undefined && { maxUnansweredEvents }),
      ...(maxUnansweredBytes !== undefined && { maxUnansweredBytes }),
    },
    reattaches: lingerMs !== 0,
    linksFor: readLinks(options),
  };
}

function readLinks(options: Options): (host: LinksHost) => Links {
  const { credentials, tls, headers, lingerMs, wedgedAfterMs: wedged = DEFAULT_WEDGED_AFTER_MS } = options;
  const address = requireAddress('address', options.address);
  requireRpcOptions(options);
  const wedgedAfterMs = requireSpanMs('wedgedAfterMs', wedged);
  const { renewal = credentials === undefined ? 'thread' : 'main' } = options;
  requireOneOf('renewal', renewal, ['thread', 'main']);
  if (renewal === 'main') return (host) => new LocalLinks(address, { tls, credentials, headers }, host);
  if (credentials !== undefined) {
    throw new OptionError('credentials', 'cannot be handed to a thread: use `tls`, or `renewal: "main"`');
  }
  return (host) => new ThreadLinks({ address, tls, headers, wedgedAfterMs, reattaches: lingerMs !== 0 }, host);
}

function readHandlers(handlers: Options['handlers']): ReadonlyMap<string, Handler<never>> {
  const byKind = new Map<string, Handler<never>>();
  for (const [name, handler] of Object.entries<Handler<never>>(requireRecord(handlers))) {
    if (typeof handler !== 'function') throw mismatch(`handlers.${name}`, 'must be a function', handler);
    // Claims say the kind as it is stored (task.proto, action_kind): under its old name no handler would be found.
    const kind = name === 'playbook' ? 'play' : name;
    if (byKind.has(kind)) throw new OptionError(`handlers.${name}`, 'is the old name of `play`, which has a handler');
    byKind.set(kind, handler);
  }
  if (byKind.size === 0) throw new OptionError('handlers', 'must name at least one kind; `*` serves every kind');
  return byKind;
}

/** A Map is an object too, and has no kinds. */
function requireRecord(handlers: Options['handlers']): Options['handlers'] {
  requireObject('handlers', handlers);
  if (handlers instanceof Map) throw mismatch('handlers', 'must be an object with a function per kind', handlers);
  return handlers;
}

function readSignals(signals: unknown): NodeJS.Signals[] {
  const known = Object.keys(constants.signals).filter((name): name is NodeJS.Signals => !DEAF_SIGNALS.has(name));
  return requireTexts('signals', signals).map((signal, index) => {
    const found = known.find((name) => name === signal);
    if (found === undefined) throw mismatch(`signals[${index}]`, 'must be a signal that can be listened to', signal);
    return found;
  });
}

function toHello(options: Options, kinds: string[]): WorkerSettings['hello'] {
  const { name = `${hostname()}-${process.pid}`, executionTargets = [] } = options;
  const ttlMs = optionalSpanMs('ttlMs', options.ttlMs);
  const lingerMs = optionalSpanMs('lingerMs', options.lingerMs);
  if (requireText('name', name) === '') throw mismatch('name', 'must not be empty', name);
  if (!Array.isArray(executionTargets)) {
    throw mismatch('executionTargets', 'must be an array of strings', executionTargets);
  }
  return {
    workerName: name,
    version: requireText('version', options.version ?? ''),
    buildId: requireText('buildId', options.buildId ?? ''),
    namespaces: requireTexts('namespaces', options.namespaces ?? []),
    queues: requireTexts('queues', options.queues ?? []),
    // `*` stands alone.
    actionKinds: kinds.includes('*') ? ['*'] : kinds,
    executionTargets: executionTargets.map(targetOf),
    capabilities: requireTexts('capabilities', options.capabilities ?? []),
    slots: requireSlots(options.slots ?? DEFAULT_SLOTS),
    ...(ttlMs !== undefined && { ttl: msToDuration(ttlMs, 'ttlMs') }),
    ...(lingerMs !== undefined && { linger: msToDuration(lingerMs, 'lingerMs') }),
  };
}

const targets: ReadonlyMap<ExecutionTargetWord, ExecutionTarget> = new Map([
  ['host', ExecutionTarget.HOST],
  ['local_worktree', ExecutionTarget.LOCAL_WORKTREE],
  ['daytona', ExecutionTarget.DAYTONA],
  ['remote_agent', ExecutionTarget.REMOTE_AGENT],
  ['process', ExecutionTarget.PROCESS],
]);

function targetOf(word: ExecutionTargetWord, index: number): ExecutionTarget {
  const target = targets.get(word);
  if (target !== undefined) return target;
  const words = [...targets.keys()].map((each) => `'${each}'`).join(', ');
  throw mismatch(`executionTargets[${index}]`, `must be one of ${words}`, word);
}
