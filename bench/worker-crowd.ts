/**
 * Many workers in one process. Usage: worker-crowd ADDRESS WORKERS SLOTS
 * Prints `ready` when all are attached, then one JSON line per line of its input: `held N` when they hold N claims,
 * `cancel N PER_SECOND` when so many of them were cancelled, `churn N AT_ONCE` when N workers came and went.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { connect } from '../src/sdk/client.js';
import { createWorker, type TaskWorker } from '../src/sdk/worker.js';
import { percentile } from './stopwatch.js';

export interface CancelLatency {
  /** From the call to the frame, ms: the commit is somewhere between them. */
  readonly callToFrameMs: { readonly p50: number; readonly p99: number };
  /** Of a read sent with it, ms: what the way there and back takes. */
  readonly getMs: { readonly p50: number; readonly p99: number };
  /** How late the event loop of this process was: what of the above is its own. */
  readonly loopDelayMs: { readonly p50: number; readonly p99: number };
  /** Of one core, of this process. */
  readonly cpuShare: number;
}

const [address = '', workers = '1', slots = '1'] = process.argv.slice(2);
/** Connections are made this many at a time, as after a restart with its jitter. */
const ATTACH_AT_ONCE = 50;
const WARM_CALLS = 200;
const RESOLUTION_MS = 5;

const held = new Set<string>();
const cancelledAtMs = new Map<string, number>();
const client = connect(address);
let heldGoal = Number.POSITIVE_INFINITY;

function worker(name: string, lingerMs?: number): TaskWorker {
  return createWorker({
    address,
    name,
    slots: lingerMs === 0 ? 0 : Number(slots),
    signals: [],
    ...(lingerMs === undefined ? {} : { lingerMs }),
    onNotice: (notice) => {
      if (notice.type === 'cancel_requested') cancelledAtMs.set(notice.taskId, performance.now());
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
  const frames: number[] = [];
  const answers: number[] = [];
  const calls: Promise<void>[] = [];
  const ids = [...held].slice(0, count);
  // The first calls of a client make its connection and its code.
  for (const id of ids.slice(0, WARM_CALLS)) await client.get(id);
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  const cpu = process.cpuUsage();
  const begunAtMs = performance.now();
  for (const [index, taskId] of ids.entries()) {
    const dueInMs = begunAtMs + (index * 1_000) / perSecond - performance.now();
    if (dueInMs > 0) await new Promise((resolve) => setTimeout(resolve, dueInMs));
    const calledAtMs = performance.now();
    const call = client.cancel(taskId, { waitFor: 'settled' }).then(() => {
      frames.push((cancelledAtMs.get(taskId) ?? Number.NaN) - calledAtMs);
      held.delete(taskId);
    });
    calls.push(call);
    void client.get(taskId).then(() => answers.push(performance.now() - calledAtMs));
  }
  await Promise.all(calls);
  const { user, system } = process.cpuUsage(cpu);
  return {
    callToFrameMs: both(frames),
    getMs: both(answers),
    loopDelayMs: { p50: delays.percentile(50) / 1e6 - RESOLUTION_MS, p99: delays.percentile(99) / 1e6 - RESOLUTION_MS },
    cpuShare: (user + system) / 1e3 / (performance.now() - begunAtMs),
  };
}

function both(samples: readonly number[]): { readonly p50: number; readonly p99: number } {
  return { p50: percentile(samples, 0.5), p99: percentile(samples, 0.99) };
}

async function churn(count: number, atOnce: number): Promise<{ readonly churned: number }> {
  await many(count, atOnce, async (index) => {
    const passing = worker(`passing-${index}`, 0);
    await passing.start();
    await passing.stop();
  });
  return { churned: count };
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
