import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Forks, not threads: tests start servers, worker threads and native
    // modules, and kill what they started; one crash must not end the run.
    pool: 'forks',
    maxWorkers: 2,
    // A ceiling for a hung test, not a pace: tests wait on signals.
    testTimeout: 20_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    reporters: ['default', './test/counting-reporter.ts'],
  },
});
