// Ends `npm run chaos:stream` with what was put to the test and what became of it: a line per file, in its own words, and
// one for all. A file that could not be run at all reads as failed.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';
import { countTests, plainLine } from '../counting-reporter.js';

const NAME_WIDTH = 24;
const COUNT_WIDTH = 24;

export interface Scenarios {
  readonly name: string;
  /** The first sentence of the file. */
  readonly about: string;
  readonly outcome: string;
}

export function summary(scenarios: readonly Scenarios[], all: string, seconds: number): string {
  const lines = scenarios.map(
    ({ name, about, outcome }) => `${name.padEnd(NAME_WIDTH)}${outcome.padEnd(COUNT_WIDTH)}${about}`,
  );
  const took = `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return ['', 'chaos:stream, at full length', '', ...lines, '', `${all}, in ${took}`, ''].join('\n');
}

/** What the comment at the head of a test file says first. */
export function firstSentence(source: string): string {
  const comment = /^(?:\/\/.*\n)+/.exec(source)?.[0] ?? '';
  const text = comment
    .split('\n')
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join(' ')
    .trim();
  return text.split(/[.:;]/)[0] ?? '';
}

export class ScenarioReporter implements Reporter {
  private begunAtMs = 0;

  onTestRunStart(): void {
    this.begunAtMs = performance.now();
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const scenarios = modules.map((module) => ({
      name: basename(module.moduleId, '.test.ts'),
      about: firstSentence(readFileSync(module.moduleId, 'utf8')),
      outcome: plainLine(countTests([module], [])),
    }));
    const all = plainLine(countTests(modules, errors));
    process.stdout.write(summary(scenarios, all, (performance.now() - this.begunAtMs) / 1_000));
  }
}

// Vitest loads a reporter given by path through its default export.
export default ScenarioReporter;
