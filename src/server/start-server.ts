/**
 * The composition root of the service: a store, the engine over it (deployment/engine.ts), the services in front. Owns the
 * order in which they start and stop, and what a store that must not be used any more does to the process. It decides
 * nothing about tasks.
 */
import { createServer } from 'node:net';
import { Server, ServerCredentials, logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { AdminService } from '../gen/reeve/v1/admin_service_pb.js';
import { TaskService } from '../gen/reeve/v1/task_service_pb.js';
import { WorkerService } from '../gen/reeve/v1/worker_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { type Random, systemRandom } from '../lib/random.js';
import { adminService } from '../services/admin-service.js';
import { TaskFeed } from '../services/task-feed.js';
import { taskService } from '../services/task-service.js';
import { WorkStreams } from '../services/worker-service.js';
import { StoreError } from '../store/store-error.js';
import type { TaskStore } from '../store/task-store.js';
import { CursorMint } from '../wire/cursor.js';
import { TokenMint } from '../wire/opaque-token.js';
import { registryOf } from '../deployment/action-kind-registry.js';
import { CallFailures } from './call-failures.js';
import { makeEngine, startEngine } from '../deployment/engine.js';
import { bindService } from './grpc-binding.js';
import { grpcLimits } from './grpc-limits.js';
import { Health } from './health.js';
import { type Log, openLog } from './log.js';
import { openStore } from '../deployment/open-store.js';
import type { ServerConfig } from './options.js';
import { addReflection } from './reflection.js';
import { type RunningParts, drain } from './shutdown.js';
import { StoreHealth } from './store-health.js';

export interface StartOptions {
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Instead of the one that the configuration names; closed at the stop all the same. */
  readonly store?: TaskStore;
  /** The store must not be used any more. Default: the process exits 70 after the log line. */
  readonly onFatal?: (error: unknown) => void;
}

export interface RunningServer {
  /** `host:port` as clients reach it. */
  readonly address: string;
  readonly port: number;
  /**
   * Stops in order: no claims, Drain frames, the grace for workers to finish or move, commits flushed, streams closed,
   * store closed. Resolves when all is closed; a second call waits for the first. Rejects with StopError, within the
   * grace and STOP_PATIENCE_MS, when a step failed or did not end: the process should then end with a failure.
   */
  stop(graceMs: number): Promise<void>;
}

/** EX_SOFTWARE of sysexits.h: the restart tells the truth. */
const FATAL_EXIT_CODE = 70;
/** Long enough for the callers of the last batch to be told that its outcome is not known. */
const FATAL_EXIT_DELAY_MS = 200;

/** The task is refused everything; all others go on (docs/operations/verify.md). */
const DAMAGED = 'what is stored of a task cannot be trusted';

function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.failure === 'damaged';
}

/** Its address is taken, or not this machine's. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

/**
 * Throws ConfigError for what is wrong with the configuration, StoreError when the store cannot be opened, ListenError
 * when nobody can be heard at the address.
 */
export async function startServer(config: ServerConfig, options: StartOptions = {}): Promise<RunningServer> {
  const log = options.log ?? openLog(config.logLevel);
  const clock = options.clock ?? systemClock;
  const kinds = await registryOf(config.actionKinds);
  const onDefect = (error: unknown): void =>
    log.error({ err: error }, isDamage(error) ? DAMAGED : 'an invariant was broken');
  const onFatal = (error: unknown): void => {
    log.fatal({ err: error }, 'the store must not be used any more; the process ends');
    (options.onFatal ?? exitSoon)(error);
  };
  const store = options.store ?? (await openStore(config.store, config.chainKeyFile));
  const parts = await closingOnFailure(store, () =>
    compose(config, options, { log, clock, kinds, store, onDefect, onFatal }),
  );
  let port: number;
  try {
    await startEngine(parts.engine);
    port = await listen(parts.server, config.listen);
  } catch (error) {
    // What goes wrong in the stop is in the log; the caller is told why there is no server.
    await drain(parts, { graceMs: 0, reconnectAfterMs: 0, address: null }).catch(() => undefined);
    throw error;
  }
  const address = `${config.listen.slice(0, config.listen.lastIndexOf(':'))}:${port}`;
  parts.health.serving();
  log.info({ address, store: config.store.split(':')[0] }, 'ready');

  let stopping: Promise<void> | null = null;
  return {
    address,
    port,
    stop: (graceMs) => (stopping ??= drain(parts, { graceMs, reconnectAfterMs: config.drainReconnectMs, address })),
  };
}

interface Given extends Pick<RunningParts, 'log' | 'clock' | 'store'> {
  readonly kinds: ActionKindRegistry;
  readonly onDefect: (error: unknown) => void;
  readonly onFatal: (error: unknown) => void;
}

/** Everything made and nothing started. */
async function compose(config: ServerConfig, options: StartOptions, given: Given): Promise<RunningParts> {
  const { log, clock, store, kinds, onDefect, onFatal } = given;
  const engine = await makeEngine({
    store,
    clock,
    random: options.random ?? systemRandom,
    kinds,
    capabilityClasses: config.capabilityClasses,
    acceptTimeoutMs: config.acceptTimeoutMs,
    cacheBytes: config.cacheMib * 1_048_576,
    retention: config.retention,
    keyLimits: config.concurrency,
    onFatal,
    onDefect,
    onPurged: (purged) => log.info({ purged }, 'tasks whose retention is over were purged'),
  });
  const { authority, dispatcher, quiet } = engine;
  const feed = new TaskFeed(authority);
  const tokens = new TokenMint(await store.secret());
  const cursors = new CursorMint(tokens, await store.incarnation());

  const server = new Server(grpcLimits(config));
  const failures = new CallFailures(log);
  const health = new Health([TaskService.typeName, WorkerService.typeName, AdminService.typeName]);
  const storeHealth = new StoreHealth(health, clock, log);
  authority.subscribeToOutages(storeHealth.failed);
  const tasks = taskService({ authority, dispatcher, kinds, feed, tokens, cursors, onDefect });
  bindService(server, TaskService, tasks, failures);
  const streams = new WorkStreams({
    authority,
    dispatcher,
    tokens,
    acceptTimeoutMs: config.acceptTimeoutMs,
    onDefect,
    onDrained: (details) => log.info(details, 'sessions drain by request'),
  });
  bindService(server, WorkerService, streams.handlers(), failures);
  const onPurged = (details: Readonly<Record<string, unknown>>): void => log.info(details, 'purged by request');
  const onRepaired = (details: Readonly<Record<string, unknown>>): void => log.warn(details, 'repaired by request');
  bindService(server, AdminService, adminService({ authority, quiet, tokens, onPurged, onRepaired }), failures);
  health.addTo(server);
  addReflection(server, [TaskService, WorkerService, AdminService]);

  return { log, clock, server, health, storeHealth, engine, streams, feed, store };
}

/** A store that was opened is closed again when nothing comes of it. */
async function closingOnFailure<Value>(store: TaskStore, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

function exitSoon(): void {
  setTimeout(() => process.exit(FATAL_EXIT_CODE), FATAL_EXIT_DELAY_MS);
}

function listen(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    // It writes to stderr by itself what we are about to say better.
    if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.NONE);
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.ERROR);
      if (error === null) return resolve(port);
      void whyNot(address).then((why) => reject(new ListenError(`cannot listen on ${address}: ${why}`)));
    });
  });
}

/** grpc-js does not say why; a plain socket does. */
function whyNot(address: string): Promise<string> {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(LISTEN_FAILURES[error.code ?? ''] ?? 'refused'));
    probe.listen({ host, port: Number(address.slice(at + 1)) }, () => probe.close(() => resolve('refused')));
  });
}

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'no such host',
};
