/**
 * The server in a process that can tell about itself. Usage: measured-server STORE_PATH (with --expose-gc)
 * Prints `ready ADDRESS`, then one JSON line per line of its input: `mark` tells what happened since the last one,
 * `gc` collects first.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { loadConfig } from '../src/server/load-config.js';
import { startServer } from '../src/server/start-server.js';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.js';

/** Delays finer than this are not told apart. */
const RESOLUTION_MS = 5;

export interface Measured {
  readonly seconds: number;
  /** Of one core, all threads together. */
  readonly cpuShare: number;
  /** How late timers of the event loop were, ms. */
  readonly loopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Transactions of the store. */
  readonly commits: number;
  readonly residentMib: number;
  readonly heapMib: number;
  /** Sockets, timers and the like that keep the event loop alive. */
  readonly handles: number;
}

const store = await openSqliteStore({ path: process.argv[2] ?? '' });
let commits = 0;
const commit = store.commit.bind(store);
store.commit = (batch) => {
  commits += 1;
  return commit(batch);
};
const config = { ...loadConfig({ env: {} }), listen: '127.0.0.1:0', logLevel: 'warn' as const };
const server = await startServer(config, { store });

const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();
let markedAtMs = performance.now();
let cpu = process.cpuUsage();

function mark(): Measured {
  const seconds = (performance.now() - markedAtMs) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const { rss, heapUsed } = process.memoryUsage();
  const measured = {
    seconds,
    cpuShare: (user + system) / 1e6 / seconds,
    loopDelayMs: { p50: late(50), p99: late(99), max: Math.max(delays.max / 1e6 - RESOLUTION_MS, 0) },
    commits,
    residentMib: rss / 1_048_576,
    heapMib: heapUsed / 1_048_576,
    handles: process.getActiveResourcesInfo().length,
  };
  markedAtMs = performance.now();
  cpu = process.cpuUsage();
  commits = 0;
  delays.reset();
  return measured;
}

/** The histogram counts the whole interval between two timers; what is beyond its resolution is delay. */
function late(percentile: number): number {
  return Math.max(delays.percentile(percentile) / 1e6 - RESOLUTION_MS, 0);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  // Twice, because the first collection only lets go of what the second takes.
  if (line === 'gc') for (let times = 0; times < 2; times++) globalThis.gc?.();
  console.log(JSON.stringify(mark()));
});
process.once('SIGTERM', () => void server.stop(0).finally(() => process.exit()));
console.log(`ready ${server.address}`);
