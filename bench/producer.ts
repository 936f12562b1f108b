/**
 * A producer of its own process. Usage: producer ADDRESS MODE COUNT IN_FLIGHT [PER_SECOND [QUEUE]]
 * MODE stream: the client's submit(); unary: one Submit call per task; paced, paced-unary: at a steady rate.
 * Prints one JSON line: {"tasks","seconds"}.
 */
import { connect } from '../src/sdk/client.js';
import { highResolutionNowMs } from './stopwatch.js';

const [address = '', mode = 'stream', count = '1000', inFlight = '256', perSecond = '100', queue = 'default'] =
  process.argv.slice(2);
const client = connect(address);
const run = String(process.pid);
const total = Number(count);
let next = 0;

async function submitOne(index: number): Promise<void> {
  const submission = {
    kind: 'agent',
    key: `${run}-${String(index)}`,
    queue,
    args: { prompt: 'measure', index, sentAt: highResolutionNowMs() },
  };
  if (mode.endsWith('unary')) await client.submitUnary(submission);
  else await client.submit(submission);
}

async function lane(): Promise<void> {
  while (next < total) await submitOne(next++);
}

async function paced(): Promise<void> {
  const periodMs = 1_000 / Number(perSecond);
  const begunAt = performance.now();
  const pending: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      while (next < total && performance.now() - begunAt >= next * periodMs) pending.push(submitOne(next++));
      if (next < total) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(pending);
}

const begunAt = performance.now();
if (mode.startsWith('paced')) await paced();
else await Promise.all(Array.from({ length: Number(inFlight) }, () => lane()));
console.log(JSON.stringify({ tasks: total, seconds: (performance.now() - begunAt) / 1_000 }));
await client.close();
