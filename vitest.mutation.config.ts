import { defineConfig } from 'vitest/config';

// What a mutant of the kernel is put before: the kernel's own tests, but for the random histories. Those run for
// seconds, and a mutant that only they notice is one that no test explains.
export default defineConfig({
  test: {
    include: ['test/kernel/**/*.test.ts'],
    exclude: ['test/kernel/history.property.test.ts'],
    testTimeout: 20_000,
  },
});
