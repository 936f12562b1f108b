/**
 * The server in a process that can tell about itself. Usage: measured-server STORE_PATH (with --expose-gc)
 * Prints `ready ADDRESS`, then one JSON line per line of its input: `mark` tells what happened since the last one,
 * `gc` collects first.
 */
import { createInterface } from 'node:readline';
import { loadConfig } from '../src/server/load-config.js';
import { startServer } from '../src/server/start-server.js';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.js';
import { type LoopFigures, LoopWatch, percentile } from './stopwatch.js';

export interface Measured {
  readonly seconds: number;
  readonly loop: LoopFigures;
  /** Transactions of the store, and how long each took as the server saw it, ms. */
  readonly commits: number;
  readonly commitMs: { readonly p50: number; readonly p99: number };
  readonly residentMib: number;
  readonly heapMib: number;
  /** Sockets, timers and the like that keep the event loop alive. */
  readonly handles: number;
}

const store = await openSqliteStore({ path: process.argv[2] ?? '' });
let commitMs: number[] = [];
const commit = store.commit.bind(store);
store.commit = async (batch) => {
  const begunAtMs = performance.now();
  try {
    return await commit(batch);
  } finally {
    commitMs.push(performance.now() - begunAtMs);
  }
};
const config = { ...loadConfig({ env: {} }), listen: '127.0.0.1:0', logLevel: 'warn' as const };
const server = await startServer(config, { store });

let watch = new LoopWatch();
let markedAtMs = performance.now();

function mark(): Measured {
  const { rss, heapUsed } = process.memoryUsage();
  const measured = {
    seconds: (performance.now() - markedAtMs) / 1_000,
    loop: watch.end(),
    commits: commitMs.length,
    commitMs: { p50: percentile(commitMs, 0.5), p99: percentile(commitMs, 0.99) },
    residentMib: rss / 1_048_576,
    heapMib: heapUsed / 1_048_576,
    handles: process.getActiveResourcesInfo().length,
  };
  markedAtMs = performance.now();
  commitMs = [];
  watch = new LoopWatch();
  return measured;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  // Twice, because the first collection only lets go of what the second takes.
  if (line === 'gc') for (let times = 0; times < 2; times++) globalThis.gc?.();
  console.log(JSON.stringify(mark()));
});
process.once('SIGTERM', () => void server.stop(0).finally(() => process.exit()));
console.log(`ready ${server.address}`);
