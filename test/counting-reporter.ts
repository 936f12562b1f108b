// Closes a run with one plain line, `N passed, N failed`, that any CI can read.
// Everything that makes a run fail counts as failed, a file that could not be
// loaded and an error outside any test included: a broken run must never read
// as "0 failed".

import type { Reporter, SerializedError, TestModule } from 'vitest/node';

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function plainLine(counts: TestCounts): string {
  const line = `${counts.passed} passed, ${counts.failed} failed`;
  return counts.skipped > 0 ? `${line}, ${counts.skipped} skipped` : line;
}

export function countTests(modules: readonly TestModule[], errorsOutsideTests: readonly unknown[]): TestCounts {
  const counts = { passed: 0, failed: errorsOutsideTests.length, skipped: 0 };
  for (const module of modules) {
    let failedTests = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') counts.passed += 1;
      else if (state === 'skipped') counts.skipped += 1;
      else failedTests += 1;
    }
    // A module fails without a failed test when it can't be loaded or a hook throws.
    counts.failed += failedTests === 0 && !module.ok() ? 1 : failedTests;
  }
  return counts;
}

export class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    process.stdout.write(`\n${plainLine(countTests(modules, errors))}\n`);
  }
}

// Vitest loads a reporter given by path through its default export.
export default CountingReporter;
