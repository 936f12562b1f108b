/**
 * A worker of its own process. Usage: worker ADDRESS SLOTS [QUEUE]
 * Prints `ready`, then for each line `count N` on its input one JSON line when N further tasks have been settled and
 * acknowledged: {"tasks","startLatencyMs":{"p50","p99"}}.
 */
import { createInterface } from 'node:readline';
import { createWorker } from '../src/sdk/worker.js';
import { highResolutionNowMs, percentile } from './stopwatch.js';

const [address = '', slots = '512', queue = 'default'] = process.argv.slice(2);
let settled = 0;
let latencies: number[] = [];
let goal = Number.POSITIVE_INFINITY;

const worker = createWorker({
  address,
  name: 'bench',
  slots: Number(slots),
  queues: [queue],
  handlers: {
    agent: (claim) => {
      const { sentAt } = claim.args;
      if (typeof sentAt === 'number') latencies.push(highResolutionNowMs() - sentAt);
      return {};
    },
  },
  onSettled: () => {
    settled += 1;
    if (settled >= goal) report();
  },
});

function report(): void {
  const startLatencyMs = { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
  console.log(JSON.stringify({ tasks: settled, startLatencyMs }));
  settled = 0;
  latencies = [];
  goal = Number.POSITIVE_INFINITY;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  goal = Number(line.split(' ')[1]);
  if (settled >= goal) report();
});
await worker.start();
console.log('ready');
// What it was given at the last moment goes back at once, and is not waited for by whoever measures next.
process.once('SIGTERM', () => void worker.stop().then(() => process.exit(0)));
