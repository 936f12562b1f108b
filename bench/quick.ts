/**
 * The first figures, in one run and in under a minute: everything is worth only its ratio to the raw loop printed
 * above it (this kind of machine is shared, and two of a kind differ by a factor of three).
 *
 *     npm run bench:quick [-- --tasks 40000]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, besideMe, start } from './processes.js';
import { type RawLoopFigures, rawLoop } from './raw-loop.js';
import { startServerProcess } from './server-process.js';

const tasks = Number(process.argv[process.argv.indexOf('--tasks') + 1] || 40_000) || 40_000;
const IN_FLIGHT = 256;
const UNARY_TASKS = Math.ceil(tasks / 8);
const UNARY_IN_FLIGHT = 64;
const PACED_TASKS = 500;
const PACED_PER_SECOND = 100;

interface Produced {
  readonly tasks: number;
  readonly seconds: number;
}

interface Worked {
  readonly tasks: number;
  readonly startLatencyMs: { readonly p50: number; readonly p99: number };
}

const folder = mkdtempSync(join(tmpdir(), 'reeve-bench-'));
try {
  const raw = rawLoop();
  print('raw loop, same rows, batches of 256', `${round(raw.transitionsPerSecond)} transitions/s`);
  print('raw commit of one transition', `p50 ${ms(raw.singleCommitP50Ms)}, p99 ${ms(raw.singleCommitP99Ms)}`);
  await admission(raw);
  await endToEnd(raw);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Admission alone: nobody works. */
async function admission(raw: RawLoopFigures): Promise<void> {
  const server = await startServerProcess(join(folder, 'admission.db'));
  const stream = await produce(server.address, 'stream', tasks, IN_FLIGHT);
  printRate(`admission by SubmitStream, ${IN_FLIGHT} in flight`, stream.tasks / stream.seconds, raw, 1);
  const unary = await produce(server.address, 'unary', UNARY_TASKS, UNARY_IN_FLIGHT);
  printRate(`admission by unary calls, ${UNARY_IN_FLIGHT} in flight`, unary.tasks / unary.seconds, raw, 1);
  await server.child.stop();
}

/** Submit → claim → accepted, started, completed; producer, server and worker are processes of their own. */
async function endToEnd(raw: RawLoopFigures): Promise<void> {
  const server = await startServerProcess(join(folder, 'end-to-end.db'));
  const worker = start(besideMe(import.meta.url, 'worker.js'), [server.address, '512']);
  await worker.line((line) => line === 'ready');
  await run(server.address, worker, 'stream', Math.ceil(tasks / 8), IN_FLIGHT); // warm
  const begunAt = performance.now();
  await run(server.address, worker, 'stream', tasks, IN_FLIGHT);
  const seconds = (performance.now() - begunAt) / 1_000;
  printRate(`end to end, ${IN_FLIGHT} submits in flight`, tasks / seconds, raw, 3);
  for (const mode of ['paced', 'paced-unary']) {
    const { startLatencyMs } = await run(server.address, worker, mode, PACED_TASKS, 1);
    const { p50, p99 } = startLatencyMs;
    const call = mode === 'paced' ? 'submit (stream)' : 'submit (unary)';
    const times = (p50 / raw.singleCommitP50Ms).toFixed(1);
    print(`${call} → start at ${PACED_PER_SECOND}/s`, `p50 ${ms(p50)} = ${times} × raw commit, p99 ${ms(p99)}`);
  }
  await worker.stop();
  await server.child.stop();
}

async function run(address: string, worker: Child, mode: string, count: number, inFlight: number): Promise<Worked> {
  worker.process.stdin?.write(`count ${count}\n`);
  const worked = worker.line((line) => line.startsWith('{'));
  await produce(address, mode, count, inFlight);
  return JSON.parse(await worked) as Worked;
}

async function produce(address: string, mode: string, count: number, inFlight: number): Promise<Produced> {
  const args = [address, mode, String(count), String(inFlight), String(PACED_PER_SECOND)];
  const producer = start(besideMe(import.meta.url, 'producer.js'), args);
  return JSON.parse(await producer.line((line) => line.startsWith('{'))) as Produced;
}

function printRate(what: string, perSecond: number, raw: RawLoopFigures, transitions: number): void {
  const ratio = (perSecond * transitions) / raw.transitionsPerSecond;
  print(what, `${round(perSecond)} tasks/s = ${ratio.toFixed(2)} of the raw loop (${transitions} transitions a task)`);
}

function print(what: string, figure: string): void {
  console.log(`${what.padEnd(52)} ${figure}`);
}

function round(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}
