/**
 * Every case of the kit against one worker program, through the command line as its author would run it.
 */
import { expect } from 'vitest';
import { CASES } from '../../src/conformance/catalog.js';
import { Cli, jsonLines } from '../cli/cli-rig.js';

export const CONFORMANCE_TIMEOUT_MS = 120_000;

export async function expectConformance(worker: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const { end, out, err } = await Cli.run(['conformance', '--worker', worker, '--json', '--parallel', '6'], '', env);
  const results = out === '' ? [] : jsonLines(out);
  // The whole entry, so that a failure shows its reason and what the worker printed.
  expect(results.filter(({ outcome }) => outcome !== 'passed')).toEqual([]);
  expect({ count: results.length, err, end }).toEqual({ count: CASES.length, err: '', end: 0 });
}
