/**
 * What many workers cost one server: 1,000 of them with 10,000 running tasks between them; cancels that reach them, with
 * nothing beside them and under a steady load of whole tasks; and 10,000 workers that come and go.
 *
 *     npm run bench:workers [-- --workers 1000 --load 300 --only crowd|passing]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Measured } from './measured-server.js';
import type { PacedLoad } from './paced-load.js';
import { type Child, besideMe, start } from './processes.js';
import { CoresWatch, type LoopFigures } from './stopwatch.js';
import type { CancelLatency } from './worker-crowd.js';

const workers = option('workers', 1_000);
const loadPerSecond = option('load', 300);
const only = process.argv[process.argv.indexOf('--only') + 1] ?? '';
const SLOTS = 10;
const QUIET_MS = 30_000;
const CANCELS = 500;
const CANCELS_PER_SECOND = 20;
const PASSING_WORKERS = 10_000;
const PASSING_AT_ONCE = 20;
const SETTLE_MS = 3_000;
/** The load begins before the cancels, and goes on until they are through. */
const LOAD_AHEAD_MS = 2_000;
const LOAD_SECONDS = CANCELS / CANCELS_PER_SECOND + (2 * LOAD_AHEAD_MS) / 1_000;

const folder = mkdtempSync(join(tmpdir(), 'reeve-bench-'));
const server = start(besideMe(import.meta.url, 'measured-server.js'), [join(folder, 'workers.db')], {
  NODE_OPTIONS: '--expose-gc',
});
try {
  const address = (await server.line((line) => line.startsWith('ready '))).slice('ready '.length);
  if (only !== 'passing') await crowd(address);
  if (only !== 'crowd') await passing(address);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Ten thousand tasks run: with nothing but heartbeats, while some are cancelled, and while others come and go. */
async function crowd(address: string): Promise<void> {
  const child = start(besideMe(import.meta.url, 'worker-crowd.js'), [address, String(workers), String(SLOTS)]);
  await child.line((line) => line === 'ready');
  const tasks = workers * SLOTS;
  const holding = ask(child, `held ${tasks}`);
  const given = [address, 'stream', String(tasks), '256', '0', 'crowd'];
  const producer = start(besideMe(import.meta.url, 'producer.js'), given);
  await producer.line((line) => line.startsWith('{'));
  await holding;
  await pass(SETTLE_MS);
  await ask(server, 'mark');
  await pass(QUIET_MS);
  const quiet = (await ask(server, 'mark')) as Measured;
  print(`${workers} workers, ${tasks} running tasks, heartbeats: CPU of the server`, share(quiet.loop));
  print('event loop late, p50 / p99 / max', late(quiet.loop));
  print('renewal transactions', `${(quiet.commits / quiet.seconds).toFixed(1)}/s`);
  print('memory', `${quiet.residentMib.toFixed(0)} MiB resident, ${quiet.heapMib.toFixed(0)} MiB heap`);
  heading(`${CANCELS_PER_SECOND} cancels a second beside that`);
  const cores = new CoresWatch();
  const cancelled = (await ask(child, `cancel ${CANCELS} ${CANCELS_PER_SECOND}`)) as CancelLatency;
  const busyCores = cores.busy();
  const calm = (await ask(server, 'mark')) as Measured;
  cancelFigures(cancelled);
  serverFigures(calm);
  othersFigure(busyCores, calm.loop, cancelled.loop);
  if (loadPerSecond > 0) await cancelsUnderLoad(address, child);
  await child.stop();
}

async function cancelsUnderLoad(address: string, child: Child): Promise<void> {
  const load = start(besideMe(import.meta.url, 'paced-load.js'), [address]);
  await load.line((line) => line === 'ready');
  // The first of them make code and connections.
  await ask(load, `load ${loadPerSecond} ${SETTLE_MS / 1_000}`);
  const loading = ask(load, `load ${loadPerSecond} ${LOAD_SECONDS}`);
  await pass(LOAD_AHEAD_MS);
  await ask(server, 'mark');
  const cores = new CoresWatch();
  const cancelled = (await ask(child, `cancel ${CANCELS} ${CANCELS_PER_SECOND}`)) as CancelLatency;
  const busyCores = cores.busy();
  const busy = (await ask(server, 'mark')) as Measured;
  const loaded = (await loading) as PacedLoad;
  heading(`${CANCELS_PER_SECOND} cancels a second beside that and ${loadPerSecond} whole tasks a second`);
  print('load: tasks settled', `${loaded.settledPerSecond.toFixed(0)}/s`);
  print('load: submit → handler start, p50 / p99', pair(loaded.startMs));
  cancelFigures(cancelled);
  serverFigures(busy);
  othersFigure(busyCores, busy.loop, cancelled.loop, loaded.loop);
  print("load's process: event loop late, p50 / p99 / max; CPU", `${late(loaded.loop)}; ${share(loaded.loop)}`);
  await load.stop();
}

function cancelFigures({ frameMs, answerMs, getMs, beyondGetMs, loop }: CancelLatency): void {
  print('cancel call → frame at the worker, p50 / p99', pair(frameMs));
  print('the same call → its answer, p50 / p99', pair(answerMs));
  print('a Get sent with it → its answer, p50 / p99', pair(getMs));
  print('the frame later than that answer by, p50 / p99', pair(beyondGetMs));
  print("workers' process: event loop late, p50 / p99 / max; CPU", `${late(loop)}; ${share(loop)}`);
}

function serverFigures({ loop, commits, commitMs, seconds }: Measured): void {
  print('server: event loop late, p50 / p99 / max; CPU', `${late(loop)}; ${share(loop)}`);
  print('server: transactions; each, p50 / p99', `${(commits / seconds).toFixed(0)}/s; ${pair(commitMs)}`);
}

/** Without it nobody could tell a slow server from a busy machine. */
function othersFigure(busyCores: number, ...known: readonly LoopFigures[]): void {
  const ours = known.reduce((sum, { cpuShare }) => sum + cpuShare, 0);
  print('cores busy with something else', Math.max(busyCores - ours, 0).toFixed(2));
}

/** Workers that come and go leave nothing behind. */
async function passing(address: string): Promise<void> {
  const child = start(besideMe(import.meta.url, 'worker-crowd.js'), [address, '0', '0']);
  await child.line((line) => line === 'ready');
  // What the first of them need for ever, code and caches, is not what is looked for.
  await ask(child, `churn ${PASSING_WORKERS / 10} ${PASSING_AT_ONCE}`);
  await pass(SETTLE_MS);
  const before = (await ask(server, 'gc')) as Measured;
  const cores = new CoresWatch();
  const begunAtMs = performance.now();
  const churned = (await ask(child, `churn ${PASSING_WORKERS} ${PASSING_AT_ONCE}`)) as { readonly loop: LoopFigures };
  const seconds = (performance.now() - begunAtMs) / 1_000;
  const busyCores = cores.busy();
  const busy = (await ask(server, 'mark')) as Measured;
  await pass(SETTLE_MS);
  const after = (await ask(server, 'gc')) as Measured;
  heading(`${PASSING_WORKERS} workers attached, drained and gone, ${PASSING_AT_ONCE} at a time`);
  print('workers', `${(PASSING_WORKERS / seconds).toFixed(0)}/s`);
  serverFigures(busy);
  print("workers' process: event loop late, p50 / p99 / max; CPU", `${late(churned.loop)}; ${share(churned.loop)}`);
  othersFigure(busyCores, busy.loop, churned.loop);
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

function option(name: string, otherwise: number): number {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function share({ cpuShare }: LoopFigures): string {
  return `${cpuShare.toFixed(2)} of a core`;
}

function late({ delayMs: { p50, p99, max } }: LoopFigures): string {
  return `${[p50, p99, max].map((ms) => ms.toFixed(1)).join(' / ')} ms`;
}

function pair({ p50, p99 }: { readonly p50: number; readonly p99: number }): string {
  return `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
}

function heading(what: string): void {
  console.log(`\n${what}`);
}

function print(what: string, figure: string): void {
  console.log(`${what.padEnd(72)} ${figure}`);
}
