/**
 * Many workers in one process. Usage: worker-crowd ADDRESS WORKERS SLOTS
 * Prints `ready` when all are attached, then one JSON line per line of its input: `held N` when they hold N claims,
 * `cancel N PER_SECOND` when so many of them were cancelled, `churn N AT_ONCE` when N workers came and went.
 */
import { createInterface } from 'node:readline';
import { connect } from '../src/sdk/client.js';
import { createWorker, type TaskWorker } from '../src/sdk/worker.js';
import { type LoopFigures, LoopWatch, percentile } from './stopwatch.js';

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

export interface CancelLatency {
  /** From the call to the frame at its worker, ms: the commit is somewhere between them. */
  readonly frameMs: Latency;
  /** From the call to its answer, which comes after the same commit. */
  readonly answerMs: Latency;
  /** Of a read sent with it: what the way there and back takes. */
  readonly getMs: Latency;
  /** By how much the frame came later than the answer to the read that was sent with it: what is the cancel's own. */
  readonly beyondGetMs: Latency;
  /** Of this process: what of the above is its own. */
  readonly loop: LoopFigures;
}

const [address = '', workers = '1', slots = '1'] = process.argv.slice(2);
/** Apart from the load beside it. */
const CROWD_QUEUE = 'crowd';
/** Connections are made this many at a time, as after a restart with its jitter. */
const ATTACH_AT_ONCE = 50;
const WARM_CALLS = 200;

const held = new Set<string>();
const onFrame = new Map<string, () => void>();
const client = connect(address);
let heldGoal = Number.POSITIVE_INFINITY;

function worker(name: string, lingerMs?: number): TaskWorker {
  return createWorker({
    address,
    name,
    slots: lingerMs === 0 ? 0 : Number(slots),
    queues: [CROWD_QUEUE],
    signals: [],
    // A thread each would be a thousand of them in this one process.
    renewal: 'main',
    ...(lingerMs === undefined ? {} : { lingerMs }),
    onNotice: (notice) => {
      if (notice.type === 'cancel_requested') onFrame.get(notice.taskId)?.();
    },
    handlers: {
      agent: ({ taskId }, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
          held.add(taskId);
          if (held.size >= heldGoal) tellHeld();
        }),
    },
  });
}

async function many(count: number, atOnce: number, one: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

function tellHeld(): void {
  heldGoal = Number.POSITIVE_INFINITY;
  tell({ held: held.size });
}

async function cancel(count: number, perSecond: number): Promise<CancelLatency> {
  const [frames, answers, gets, beyond]: [number[], number[], number[], number[]] = [[], [], [], []];
  const pending: Promise<unknown>[] = [];
  const ids = [...held].slice(0, count);
  // The first calls of a client make its connection and its code.
  for (const id of ids.slice(0, WARM_CALLS)) await client.get(id);
  const watch = new LoopWatch();
  const begunAtMs = performance.now();
  for (const [index, taskId] of ids.entries()) {
    const dueInMs = begunAtMs + (index * 1_000) / perSecond - performance.now();
    if (dueInMs > 0) await new Promise((resolve) => setTimeout(resolve, dueInMs));
    const calledAtMs = performance.now();
    const took = (samples: number[]) => (): number => {
      const ms = performance.now() - calledAtMs;
      samples.push(ms);
      return ms;
    };
    const framed = new Promise<void>((resolve) => onFrame.set(taskId, resolve)).then(took(frames));
    const answered = client.cancel(taskId).then(took(answers));
    const got = client.get(taskId).then(took(gets));
    pending.push(
      answered,
      Promise.all([framed, got]).then(([frame, get]) => beyond.push(frame - get)),
    );
    held.delete(taskId);
  }
  await Promise.all(pending);
  onFrame.clear();
  return {
    frameMs: both(frames),
    answerMs: both(answers),
    getMs: both(gets),
    beyondGetMs: both(beyond),
    loop: watch.end(),
  };
}

function both(samples: readonly number[]): Latency {
  return { p50: percentile(samples, 0.5), p99: percentile(samples, 0.99) };
}

async function churn(count: number, atOnce: number): Promise<{ readonly loop: LoopFigures }> {
  const watch = new LoopWatch();
  await many(count, atOnce, async (index) => {
    const passing = worker(`passing-${index}`, 0);
    await passing.start();
    await passing.stop();
  });
  return { loop: watch.end() };
}

function tell(said: object): void {
  console.log(JSON.stringify(said));
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const [what, count, rate] = line.split(' ');
  if (what === 'cancel') void cancel(Number(count), Number(rate)).then(tell);
  if (what === 'churn') void churn(Number(count), Number(rate)).then(tell);
  if (what !== 'held') return;
  heldGoal = Number(count);
  if (held.size >= heldGoal) tellHeld();
});

await many(Number(workers), ATTACH_AT_ONCE, async (index) => worker(`crowd-${index}`).start());
console.log('ready');
