/**
 * What many workers cost one server: 1,000 of them with 10,000 running tasks between them, cancels that reach them,
 * and 10,000 that come and go.
 *
 *     npm run bench:workers [-- --workers 1000]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Measured } from './measured-server.js';
import { type Child, besideMe, start } from './processes.js';
import type { CancelLatency } from './worker-crowd.js';

const workers = Number(process.argv[process.argv.indexOf('--workers') + 1] || 1_000) || 1_000;
const SLOTS = 10;
const QUIET_MS = 30_000;
const CANCELS = 500;
const CANCELS_PER_SECOND = 20;
const PASSING_WORKERS = 10_000;
const PASSING_AT_ONCE = 20;
const SETTLE_MS = 3_000;

const folder = mkdtempSync(join(tmpdir(), 'reeve-bench-'));
const server = start(besideMe(import.meta.url, 'measured-server.js'), [join(folder, 'workers.db')], {
  NODE_OPTIONS: '--expose-gc',
});
try {
  const address = (await server.line((line) => line.startsWith('ready '))).slice('ready '.length);
  await crowd(address);
  await passing(address);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Ten thousand tasks run, and nothing happens but heartbeats; then some of them are cancelled. */
async function crowd(address: string): Promise<void> {
  const child = start(besideMe(import.meta.url, 'worker-crowd.js'), [address, String(workers), String(SLOTS)]);
  await child.line((line) => line === 'ready');
  const tasks = workers * SLOTS;
  const holding = ask(child, `held ${tasks}`);
  const producer = start(besideMe(import.meta.url, 'producer.js'), [address, 'stream', String(tasks), '256', '0']);
  await producer.line((line) => line.startsWith('{'));
  await holding;
  await pass(SETTLE_MS);
  await ask(server, 'mark');
  await pass(QUIET_MS);
  const quiet = (await ask(server, 'mark')) as Measured;
  print(`${workers} workers, ${tasks} running tasks, heartbeats: CPU of the server`, `${share(quiet)} of a core`);
  print('event loop late, p50 / p99 / max', loop(quiet));
  print('renewal transactions', `${(quiet.commits / quiet.seconds).toFixed(1)}/s`);
  print('memory', `${quiet.residentMib.toFixed(0)} MiB resident, ${quiet.heapMib.toFixed(0)} MiB heap`);
  const cancelled = (await ask(child, `cancel ${CANCELS} ${CANCELS_PER_SECOND}`)) as CancelLatency;
  const busy = (await ask(server, 'mark')) as Measured;
  const { callToFrameMs, getMs, loopDelayMs, cpuShare } = cancelled;
  print(`cancel call → frame at the worker, at ${CANCELS_PER_SECOND}/s, p50 / p99`, pair(callToFrameMs));
  print('a Get sent with it → its answer, p50 / p99', pair(getMs));
  print('event loop late meanwhile, p50 / p99 / max', loop(busy));
  print('CPU of the server meanwhile', `${share(busy)} of a core`);
  print("event loop of the workers' process late meanwhile, p50 / p99", pair(loopDelayMs));
  print("CPU of the workers' process meanwhile", `${cpuShare.toFixed(2)} of a core`);
  await child.stop();
}

/** Workers that come and go leave nothing behind. */
async function passing(address: string): Promise<void> {
  const child = start(besideMe(import.meta.url, 'worker-crowd.js'), [address, '0', '0']);
  await child.line((line) => line === 'ready');
  // What the first of them need for ever, code and caches, is not what is looked for.
  await ask(child, `churn ${PASSING_WORKERS / 10} ${PASSING_AT_ONCE}`);
  await pass(SETTLE_MS);
  const before = (await ask(server, 'gc')) as Measured;
  const begunAtMs = performance.now();
  await ask(child, `churn ${PASSING_WORKERS} ${PASSING_AT_ONCE}`);
  const seconds = (performance.now() - begunAtMs) / 1_000;
  const busy = (await ask(server, 'mark')) as Measured;
  await pass(SETTLE_MS);
  const after = (await ask(server, 'gc')) as Measured;
  print(`${PASSING_WORKERS} workers attached, drained and gone`, `${(PASSING_WORKERS / seconds).toFixed(0)}/s`);
  print('event loop late meanwhile, p50 / p99 / max', loop(busy));
  print('handles before → after', `${before.handles} → ${after.handles}`);
  print('heap before → after', `${before.heapMib.toFixed(1)} → ${after.heapMib.toFixed(1)} MiB`);
  print('resident before → after', `${before.residentMib.toFixed(0)} → ${after.residentMib.toFixed(0)} MiB`);
  await child.stop();
}

async function ask(child: Child, what: string): Promise<unknown> {
  const answer = child.line((line) => line.startsWith('{'));
  child.process.stdin?.write(`${what}\n`);
  return JSON.parse(await answer) as unknown;
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function share({ cpuShare }: Measured): string {
  return cpuShare.toFixed(2);
}

function loop({ loopDelayMs: { p50, p99, max } }: Measured): string {
  return [p50, p99, max].map((ms) => `${ms.toFixed(1)} ms`).join(' / ');
}

function pair({ p50, p99 }: { readonly p50: number; readonly p99: number }): string {
  return `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
}

function print(what: string, figure: string): void {
  console.log(`${what.padEnd(72)} ${figure}`);
}
