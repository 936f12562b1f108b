/**
 * Runs cases against a worker program, several at a time, each in a world of its own, and tells how each ended.
 */
import { CaseFailure, CaseSkipped, type ConformanceCase } from './case.js';
import { Kit, type KitOptions } from './kit.js';

export type Outcome = 'passed' | 'failed' | 'skipped';

export interface CaseResult {
  readonly id: string;
  readonly title: string;
  readonly outcome: Outcome;
  /** Why it failed or was skipped; empty when it passed. */
  readonly reason: string;
  /** What the worker printed last, when it failed. */
  readonly workerOutput: string;
  readonly durationMs: number;
}

export interface RunOptions extends KitOptions {
  /** Cases at a time. */
  readonly parallel: number;
  readonly onResult?: (result: CaseResult) => void;
}

/** Results in the order of `cases`. */
export async function runCases(cases: readonly ConformanceCase[], options: RunOptions): Promise<CaseResult[]> {
  const results = new Array<CaseResult | undefined>(cases.length);
  let next = 0;
  const runNext = async (): Promise<void> => {
    for (let at = next++; at < cases.length; at = next++) {
      const each = cases[at];
      if (each === undefined) return;
      const result = await runCase(each, options);
      results[at] = result;
      options.onResult?.(result);
    }
  };
  await Promise.all(Array.from({ length: options.parallel }, runNext));
  return results.filter((result) => result !== undefined);
}

async function runCase({ id, title, run }: ConformanceCase, options: KitOptions): Promise<CaseResult> {
  const startedAt = performance.now();
  const kit = await Kit.open(options);
  const result = (outcome: Outcome, reason: string, workerOutput = ''): CaseResult => {
    return { id, title, outcome, reason, workerOutput, durationMs: Math.round(performance.now() - startedAt) };
  };
  try {
    await run(kit);
    // What was heard while nobody waited counts too.
    kit.signals.check();
    return result('passed', '');
  } catch (error) {
    if (error instanceof CaseSkipped) return result('skipped', error.message);
    if (error instanceof CaseFailure) return result('failed', error.message, kit.worker.lastWords);
    throw error;
  } finally {
    await kit.close();
  }
}
