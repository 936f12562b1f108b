/**
 * A steady load of whole tasks: submitted, claimed, accepted, started, completed. Usage: paced-load ADDRESS
 * Prints `ready` when its workers are attached, then one JSON line per line of its input: `load RATE SECONDS` when so
 * many a second were submitted for so long and all of them were settled.
 */
import { createInterface } from 'node:readline';
import { connect } from '../src/sdk/client.js';
import { createWorker } from '../src/sdk/worker.js';
import { LoopWatch, type LoopFigures, highResolutionNowMs, percentile } from './stopwatch.js';

export interface PacedLoad {
  readonly settledPerSecond: number;
  /** From the call of submit to the handler, ms. */
  readonly startMs: { readonly p50: number; readonly p99: number };
  /** Of this process. */
  readonly loop: LoopFigures;
}

const [address = ''] = process.argv.slice(2);
const QUEUE = 'load';
const WORKERS = 20;
const SLOTS = 10;

const client = connect(address);
let started: number[] = [];
let settled = 0;
let onSettled = (): void => undefined;

for (let index = 0; index < WORKERS; index++) {
  const worker = createWorker({
    address,
    name: `load-${index}`,
    slots: SLOTS,
    queues: [QUEUE],
    signals: [],
    // A thread each is for handlers that compute; these do not.
    renewal: 'main',
    handlers: {
      agent: ({ args }) => {
        if (typeof args.sentAt === 'number') started.push(highResolutionNowMs() - args.sentAt);
        return {};
      },
    },
    onSettled: () => {
      settled += 1;
      onSettled();
    },
  });
  await worker.start();
}

async function load(rate: number, seconds: number): Promise<PacedLoad> {
  const total = rate * seconds;
  started = [];
  settled = 0;
  const all = new Promise<void>((resolve) => {
    onSettled = () => {
      if (settled >= total) resolve();
    };
  });
  const watch = new LoopWatch();
  const begunAtMs = performance.now();
  const run = `${process.pid}-${begunAtMs}`;
  const pending: Promise<unknown>[] = [];
  for (let next = 0; next < total;) {
    for (; next < total && performance.now() - begunAtMs >= (next * 1_000) / rate; next++) {
      const args = { prompt: 'load', index: next, sentAt: highResolutionNowMs() };
      pending.push(client.submit({ kind: 'agent', key: `${run}-${next}`, queue: QUEUE, args }));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  await all;
  return {
    settledPerSecond: total / ((performance.now() - begunAtMs) / 1_000),
    startMs: { p50: percentile(started, 0.5), p99: percentile(started, 0.99) },
    loop: watch.end(),
  };
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [what, rate, seconds] = line.split(' ');
  if (what === 'load') void load(Number(rate), Number(seconds)).then((said) => console.log(JSON.stringify(said)));
});
console.log('ready');
