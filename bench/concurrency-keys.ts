/**
 * What a full key costs: a few and very many tasks waiting behind it. What other tasks pay for those waiters, and what it
 * costs to start the next of them; both as the ratio of the two sizes, measured in turns in one run.
 *
 *     npm run bench:keys [-- --waiters 200000]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillStore } from './fill-store.js';
import { type Child, besideMe, start } from './processes.js';
import { type ServerProcess, startServerProcess } from './server-process.js';
import { percentile } from './stopwatch.js';

const at = process.argv.indexOf('--waiters');
const MANY = at < 0 ? 200_000 : Number(process.argv[at + 1]);
const FEW = 2_000;
const ROUNDS = 5;
const OTHERS_PER_ROUND = 4_000;
const PROMOTED_PER_ROUND = 300;
const QUEUE = 'line';

interface Place {
  readonly waiters: number;
  readonly server: ServerProcess;
  readonly others: Child;
  readonly admittedMs: number;
  readonly othersMs: number[];
  readonly promotedMs: number[];
}

const folder = mkdtempSync(join(tmpdir(), 'reeve-keys-'));
try {
  const places = [await open(FEW), await open(MANY)] as const;
  for (let round = 0; round < ROUNDS; round++) {
    for (const place of round % 2 === 0 ? places : places.toReversed()) {
      place.othersMs.push(await runOthers(place));
      place.promotedMs.push(await runLine(place));
    }
  }
  const [few, many] = places;
  console.log(
    `${FEW.toLocaleString('en')} and ${MANY.toLocaleString('en')} tasks of one key that lets one run, per task:`,
  );
  report('admitted into the line', few.admittedMs, many.admittedMs);
  report('another task, submitted and completed', median(few.othersMs), median(many.othersMs));
  report('one of the line, started when the one before ends', median(few.promotedMs), median(many.promotedMs));
  for (const { others, server } of places) {
    await others.stop();
    await server.child.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function open(waiters: number): Promise<Place> {
  const path = join(folder, `${String(waiters)}.db`);
  const tookMs = await fillStore({ path, ended: 0, queued: waiters, queue: QUEUE, concurrencyKey: 'tenant' });
  const server = await startServerProcess(path);
  const others = start(besideMe(import.meta.url, 'worker.js'), [server.address, '256', 'others']);
  await others.line((line) => line === 'ready');
  return { waiters, server, others, admittedMs: tookMs / waiters, othersMs: [], promotedMs: [] };
}

/** Another queue is as busy as it can be: submit → claim → completed. Its tasks need no permit. */
async function runOthers({ server, others }: Place): Promise<number> {
  others.process.stdin?.write(`count ${String(OTHERS_PER_ROUND)}\n`);
  const begunAt = performance.now();
  const args = [server.address, 'stream', String(OTHERS_PER_ROUND), '256', '0', 'others'];
  const producer = start(besideMe(import.meta.url, 'producer.js'), args);
  await others.line((line) => line.startsWith('{'));
  await producer.line((line) => line.startsWith('{'));
  return (performance.now() - begunAt) / OTHERS_PER_ROUND;
}

/** A worker with room for many is given one at a time: each end starts the next. */
async function runLine({ server }: Place): Promise<number> {
  const worker = start(besideMe(import.meta.url, 'worker.js'), [server.address, '16', QUEUE]);
  worker.process.stdin?.write(`count ${String(PROMOTED_PER_ROUND)}\n`);
  await worker.line((line) => line === 'ready');
  const begunAt = performance.now();
  await worker.line((line) => line.startsWith('{'));
  const perTask = (performance.now() - begunAt) / PROMOTED_PER_ROUND;
  await worker.stop();
  return perTask;
}

function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}

function report(what: string, few: number, many: number): void {
  console.log(`  ${what.padEnd(52)} ${few.toFixed(3)} ms and ${many.toFixed(3)} ms: ${(many / few).toFixed(2)}×`);
}
