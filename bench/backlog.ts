/**
 * Does it matter how much is stored? A million tasks stored, a hundred thousand of them queued, against a thousand:
 * restart to ready, start latency of new work, and the cost of claiming from the backlog.
 *
 *     npm run bench:backlog [-- --stored 1000000 --queued 100000]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fillStore } from './fill-store.js';
import { besideMe, start } from './processes.js';
import { startServerProcess } from './server-process.js';

const stored = option('--stored', 1_000_000);
const queued = option('--queued', 100_000);
const DRAINED = 1_000;
const folder = mkdtempSync(join(tmpdir(), 'reeve-backlog-'));

try {
  await measure('small', 1_000, 1_000);
  await measure('large', stored, queued);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function measure(name: string, all: number, waiting: number): Promise<void> {
  const path = join(folder, `${name}.db`);
  await fillStore({ path, ended: all - waiting, queued: waiting, queue: 'backlog' });
  console.log(`${all.toLocaleString('en')} tasks stored, ${waiting.toLocaleString('en')} queued`);
  const server = await startServerProcess(path);
  console.log(`  process start to ready             ${server.readyMs.toFixed(0)} ms`);
  const fresh = start(besideMe(import.meta.url, 'worker.js'), [server.address, '16', 'fresh']);
  await fresh.line((line) => line === 'ready');
  fresh.process.stdin?.write('count 500\n');
  const producer = start(besideMe(import.meta.url, 'producer.js'), [
    server.address,
    'paced',
    '500',
    '1',
    '100',
    'fresh',
  ]);
  console.log(`  submit → start at 100/s            ${await fresh.line((line) => line.startsWith('{'))}`);
  await producer.line((line) => line.startsWith('{'));
  await fresh.stop();
  const drain = start(besideMe(import.meta.url, 'worker.js'), [server.address, '16', 'backlog']);
  drain.process.stdin?.write(`count ${DRAINED}\n`);
  await drain.line((line) => line === 'ready');
  const begunAt = performance.now();
  await drain.line((line) => line.startsWith('{'));
  const perTask = (performance.now() - begunAt) / DRAINED;
  console.log(`  first ${DRAINED} of the backlog, 16 slots  ${perTask.toFixed(3)} ms a task`);
  await drain.stop();
  await server.child.stop();
}

function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(name);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
}
