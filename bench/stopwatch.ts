/**
 * Time for the benchmarks: comparable between processes of one machine, finer than a millisecond; and how late the
 * event loop of a process was meanwhile, which is what of a latency is its own.
 */
import { cpus } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Delays finer than this are not told apart. */
const RESOLUTION_MS = 5;

/** Epoch ms with fractions. */
export function highResolutionNowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The value below which the share `p` (0..1) of the sorted samples lies. */
export function percentile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((left, right) => left - right);
  return sorted[Math.min(Math.floor(sorted.length * p), sorted.length - 1)] ?? Number.NaN;
}

/** What the cores of the machine did since it was made, whoever asked them to. */
export class CoresWatch {
  private readonly busyMs = busyMsOfAll();
  private readonly begunAtMs = performance.now();

  /** How many were busy, on average. */
  busy(): number {
    return (busyMsOfAll() - this.busyMs) / (performance.now() - this.begunAtMs);
  }
}

function busyMsOfAll(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.nice + times.irq, 0);
}

export interface LoopFigures {
  /** How late timers of the event loop were, ms. */
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Of one core, all threads together. */
  readonly cpuShare: number;
}

export class LoopWatch {
  private readonly delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private readonly cpu = process.cpuUsage();
  private readonly begunAtMs = performance.now();

  constructor() {
    this.delays.enable();
  }

  end(): LoopFigures {
    this.delays.disable();
    const { user, system } = process.cpuUsage(this.cpu);
    // The histogram counts the whole interval between two timers; what is beyond its resolution is delay.
    const late = (ns: number): number => Math.max(ns / 1e6 - RESOLUTION_MS, 0);
    const { delays } = this;
    return {
      delayMs: { p50: late(delays.percentile(50)), p99: late(delays.percentile(99)), max: late(delays.max) },
      cpuShare: (user + system) / 1e3 / (performance.now() - this.begunAtMs),
    };
  }
}
